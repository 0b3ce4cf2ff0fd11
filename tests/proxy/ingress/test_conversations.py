"""/v1/conversations, by the official client."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI, BadRequestError, NotFoundError
from openai.types.conversations import Conversation

from parser import write_call
from proxy.contracts import TextPiece, TurnEnded
from tests.support.talking import TOOLS, GatedBackend, shown, talking

HELLO: Any = {"type": "message", "role": "user", "content": "Hello"}


def texts_of(items: list[Any]) -> list[str]:
    return [item.content[0].text for item in items if item.type == "message"]


async def listed(client: AsyncOpenAI, conversation_id: str, **query: Any) -> list[Any]:
    return [item async for item in client.conversations.items.list(conversation_id, **query)]


async def test_a_conversation_is_made_read_changed_and_deleted() -> None:
    async with talking() as (client, _):
        made = await client.conversations.create(metadata={"topic": "beans"}, items=[HELLO])
        assert made.id.startswith("conv_")
        assert (made.object, made.metadata) == ("conversation", {"topic": "beans"})
        assert await client.conversations.retrieve(made.id) == made
        with pytest.raises(BadRequestError, match="Missing required parameter: 'metadata'"):
            await client.post(f"/conversations/{made.id}", body={}, cast_to=object)
        assert (await client.conversations.retrieve(made.id)).metadata == made.metadata
        changed = await client.conversations.update(made.id, metadata={"topic": "peas"})
        assert (changed.id, changed.created_at, changed.metadata) == (made.id, made.created_at, {"topic": "peas"})
        assert texts_of(await listed(client, made.id)) == ["Hello"]
        deleted = await client.conversations.delete(made.id)
        assert (deleted.id, deleted.object, deleted.deleted) == (made.id, "conversation.deleted", True)
        for call in (client.conversations.retrieve, client.conversations.delete):
            with pytest.raises(NotFoundError, match=f"Conversation with id '{made.id}' not found"):
                await call(made.id)
        with pytest.raises(NotFoundError):
            await client.conversations.items.list(made.id)


async def test_what_a_query_of_items_includes_is_held_to_the_names_of_a_request() -> None:
    async with talking() as (client, _):
        made = await client.conversations.create(items=[HELLO])
        (item,) = await listed(client, made.id, include=["reasoning.encrypted_content"])
        unknown: Any = ["everything"]
        for ask in (
            client.conversations.items.list(made.id, include=unknown),
            client.conversations.items.retrieve(item.id, conversation_id=made.id, include=unknown),
            client.conversations.items.create(made.id, items=[HELLO], include=unknown),
        ):
            with pytest.raises(BadRequestError, match="Invalid value: 'everything'") as refused:
                await ask
            assert refused.value.param == "include[0]"
        assert await listed(client, made.id) == [item]


async def test_a_bare_conversation_is_empty() -> None:
    async with talking() as (client, _):
        made = await client.conversations.create()
        page = await client.conversations.items.list(made.id)
        assert (made.metadata, page.data, page.has_more) == ({}, [], False)


async def test_a_conversation_is_made_without_a_body() -> None:
    async with talking() as (client, _):
        made = await client.post("/conversations", cast_to=Conversation)
        assert await client.conversations.retrieve(made.id) == made


async def test_its_items_are_added_read_and_deleted_one_by_one() -> None:
    async with talking() as (client, _):
        made = await client.conversations.create()
        added = await client.conversations.items.create(
            made.id,
            items=[
                HELLO,
                {"role": "assistant", "content": "Hi"},
                {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
            ],
        )
        assert (added.object, added.has_more, len(added.data)) == ("list", False, 3)
        assert (added.first_id, added.last_id) == (added.data[0].id, added.data[2].id)
        data: list[Any] = list(added.data)
        user, assistant, call = data
        assert user.to_dict() == {
            "id": user.id, "type": "message", "role": "user", "status": "completed",
            "content": [{"type": "input_text", "text": "Hello"}],
        }  # fmt: skip
        assert assistant.to_dict()["content"] == [
            {"type": "output_text", "text": "Hi", "annotations": [], "logprobs": []}
        ]
        assert (call.type, call.status) == ("function_call", "completed")
        await client.conversations.items.create(
            made.id, items=[{"type": "function_call_output", "call_id": "call_1", "output": "done"}]
        )
        assert await client.conversations.items.retrieve(user.id, conversation_id=made.id) == user
        left = await client.conversations.items.delete(user.id, conversation_id=made.id)
        assert left == made
        with pytest.raises(NotFoundError, match="Item with id"):
            await client.conversations.items.retrieve(user.id, conversation_id=made.id)
        with pytest.raises(NotFoundError, match="Item with id"):
            await client.conversations.items.delete(user.id, conversation_id=made.id)
        kinds = [item.type for item in await listed(client, made.id, order="asc")]
        assert kinds == ["message", "function_call", "function_call_output"]


@pytest.mark.parametrize("written", ["msg_notes/today.md", "msg_notes%2Ftoday.md"])
async def test_an_item_whose_id_has_a_slash_is_read_and_deleted(written: str) -> None:
    async with talking() as (client, _):
        item: Any = {**HELLO, "id": "msg_notes/today.md"}
        made = await client.conversations.create(items=[item])
        path = f"/conversations/{made.id}/items/{written}"
        assert [await client.get(path, cast_to=object)] == [each.to_dict() for each in await listed(client, made.id)]
        await client.delete(path, cast_to=object)
        assert await listed(client, made.id) == []


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_its_items_are_listed_page_by_page(order: Any) -> None:
    async with talking() as (client, _):
        made = await client.conversations.create()
        for start in range(0, 45, 15):
            items: list[Any] = [{"role": "user", "content": f"{number}"} for number in range(start, start + 15)]
            await client.conversations.items.create(made.id, items=items)
        expected = [f"{number}" for number in range(45)]
        for limit in (1, 7, 100):
            texts = texts_of(await listed(client, made.id, order=order, limit=limit))
            assert texts == (expected if order == "asc" else expected[::-1])
        first = await client.conversations.items.list(made.id)
        assert (len(first.data), first.has_more) == (20, True)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([HELLO] * 21, "maximum length 20"),
        ([{"type": "magic"}], "Supported values are"),
        ([{"type": "function_call_output", "call_id": "c", "output": "x"}], "No tool call found"),
        ([{**HELLO, "id": "msg_1"}] * 2, "Duplicate item"),
        (None, "Missing required parameter: 'items'"),
    ],
)
async def test_items_that_cannot_stand_there_are_refused(items: Any, message: str) -> None:
    async with talking() as (client, _):
        made = await client.conversations.create()
        with pytest.raises(BadRequestError, match=message):
            await client.conversations.items.create(made.id, items=items)
        assert await listed(client, made.id) == []


@pytest.mark.parametrize(
    ("item", "prefix"),
    [
        ({**HELLO, "id": "item_1"}, "msg"),
        ({"role": "user", "content": "Hello", "id": "fc_1"}, "msg"),
        ({"type": "function_call", "id": "msg_1", "call_id": "call_1", "name": "f", "arguments": "{}"}, "fc"),
    ],
)
async def test_an_item_with_the_id_of_another_kind_is_refused(item: Any, prefix: str) -> None:
    async with talking() as (client, _):
        made = await client.conversations.create()
        with pytest.raises(BadRequestError) as caught:
            await client.conversations.items.create(made.id, items=[HELLO, item])
        assert await listed(client, made.id) == []
    wrong = f"Invalid 'items[1].id': '{item['id']}'. Expected an ID that begins with '{prefix}'."
    assert (caught.value.body, caught.value.param) == (
        {"message": wrong, "type": "invalid_request_error", "param": "items[1].id", "code": "invalid_value"},
        "items[1].id",
    )


async def test_an_item_that_stands_there_already_is_refused() -> None:
    async with talking("Hi") as (client, _):
        made = await client.conversations.create(items=[HELLO])
        answer = await client.responses.create(model="m", input="x", conversation=made.id)
        again: list[Any] = [
            {**HELLO, "id": (await listed(client, made.id, order="asc"))[0].id, "content": "Goodbye"},
            {"type": "item_reference", "id": answer.output[0].id},
        ]
        for item in again:
            with pytest.raises(BadRequestError, match="Item already in conversation") as caught:
                await client.conversations.items.create(made.id, items=[item])
            assert (caught.value.param, caught.value.code) == ("items", "item_already_in_conversation")
        assert texts_of(await listed(client, made.id, order="asc")) == ["Hello", "x", "Hi"]


async def test_metadata_is_checked() -> None:
    async with talking() as (client, _):
        with pytest.raises(BadRequestError, match="metadata"):
            await client.conversations.create(metadata={str(number): "x" for number in range(17)})


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("store", [True, False])
async def test_a_request_goes_on_where_the_conversation_ended(stream: bool, store: bool) -> None:
    call = write_call("read_note", '{"path": "a.md"}')
    async with talking(call, "It says A.") as (client, backend):
        made = await client.conversations.create(items=[{"role": "developer", "content": "Be brief."}])

        async def ask(conversation: Any, question: Any) -> Any:
            if not stream:
                return await client.responses.create(
                    model="m", input=question, conversation=conversation, tools=TOOLS, store=store
                )
            events = await client.responses.create(
                model="m", input=question, conversation=conversation, tools=TOOLS, store=store, stream=True
            )
            last: Any = [event async for event in events][-1]
            return last.response

        first = await ask(made.id, "What is in a.md?")
        assert first.conversation.id == made.id
        output = {"type": "function_call_output", "call_id": first.output[0].call_id, "output": "# A"}
        second = await ask({"id": made.id}, [output])
        assert second.output_text == "It says A."
        items = await listed(client, made.id, order="asc")
    text = shown(backend)
    assert text.index("What is in a.md?") < text.index(call.partition("{")[2]) < text.index("# A")
    assert (backend.prompts[-1].developer or "").startswith("Be brief.")
    assert [item.type for item in items] == ["message", "message", "function_call", "function_call_output", "message"]
    assert items[2].id == first.output[0].id


async def test_a_conversation_goes_on_over_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/r.db"
    async with talking("I am A.", store=store) as (client, _):
        made = await client.conversations.create()
        await client.responses.create(model="m", input="Who are you?", conversation=made.id)
    async with talking("A, I said.", store=store) as (client, backend):
        await client.responses.create(model="m", input="Who?", conversation=made.id)
        assert "I am A." in shown(backend)


async def test_an_open_call_must_be_answered_first_and_nothing_is_added() -> None:
    async with talking(write_call("read_note", "{}"), history="strict") as (client, _):
        made = await client.conversations.create()
        await client.responses.create(model="m", input="x", tools=TOOLS, conversation=made.id)
        with pytest.raises(BadRequestError, match="No tool output found for function call"):
            await client.responses.create(model="m", input="y", conversation=made.id)
        assert len(await listed(client, made.id)) == 2


async def test_what_is_not_there_is_refused() -> None:
    async with talking("x") as (client, _):
        with pytest.raises(NotFoundError, match="Conversation with id 'conv_x' not found"):
            await client.responses.create(model="m", input="x", conversation="conv_x")
        made = await client.conversations.create()
        nameless: Any = {}
        with pytest.raises(BadRequestError, match="only providing one of"):
            await client.responses.create(model="m", input="x", conversation=made.id, previous_response_id="resp_x")
        with pytest.raises(BadRequestError, match=r"conversation\.id"):
            await client.responses.create(model="m", input="x", conversation=nameless)


async def test_two_requests_on_one_conversation_do_not_run_at_once() -> None:
    backend = GatedBackend([[TextPiece("one"), TurnEnded(None)], "two"])
    async with talking(backend=backend) as (client, _):
        made = await client.conversations.create()
        async with asyncio.TaskGroup() as group:
            first = group.create_task(client.responses.create(model="m", input="first", conversation=made.id))
            await backend.asked.wait()
            with pytest.raises(BadRequestError) as caught:
                await client.responses.create(model="m", input="second", conversation=made.id)
            assert caught.value.code == "conversation_locked"
            with pytest.raises(BadRequestError, match="Another process"):
                await client.conversations.items.create(made.id, items=[HELLO])
            backend.gate.set()
        await client.responses.create(model="m", input="second", conversation=made.id)
        assert texts_of(await listed(client, made.id, order="asc")) == ["first", "one", "second", "two"]
        assert first.result().output_text == "one"


async def test_a_failed_or_refused_request_frees_its_conversation_and_adds_nothing() -> None:
    async with talking(lambda _: str(1 // 0), "fine") as (client, _):
        made = await client.conversations.create()
        wrong: Any
        for wrong in ("x", 5):
            with pytest.raises(Exception, match=r"Error code: (500|400)"):
                await client.responses.create(model="m", conversation=made.id, input=wrong)
        await client.responses.create(model="m", input="y", conversation=made.id)
        assert texts_of(await listed(client, made.id, order="asc")) == ["y", "fine"]


async def test_a_background_response_joins_its_conversation_when_it_is_done() -> None:
    backend = GatedBackend([[TextPiece("one"), TurnEnded(None)]] * 2)
    async with talking(backend=backend) as (client, _):
        made = await client.conversations.create()
        queued = await client.responses.create(model="m", input="first", conversation=made.id, background=True)
        with pytest.raises(BadRequestError, match="Another process"):
            await client.responses.create(model="m", input="second", conversation=made.id)
        await client.responses.cancel(queued.id)
        assert await listed(client, made.id) == []
        backend.gate.set()
        stream = await client.responses.create(
            model="m", input="second", conversation=made.id, background=True, stream=True
        )
        assert [event.type async for event in stream][-1] == "response.completed"
        assert texts_of(await listed(client, made.id, order="asc")) == ["second", "one"]


async def test_one_key_does_not_find_what_is_anothers() -> None:
    async with talking("x") as (client, _):
        made = await client.conversations.create(items=[HELLO])
        other = client.with_options(api_key="yours")
        with pytest.raises(NotFoundError):
            await other.conversations.retrieve(made.id)
        with pytest.raises(NotFoundError):
            await other.conversations.items.create(made.id, items=[HELLO])
        with pytest.raises(NotFoundError):
            await other.responses.create(model="m", input="x", conversation=made.id)


async def test_without_a_store_there_are_no_conversations() -> None:
    async with talking(store="none") as (client, _):
        with pytest.raises(BadRequestError, match="--store none") as refused:
            await client.conversations.create()
        assert refused.value.code == "unsupported_parameter"
