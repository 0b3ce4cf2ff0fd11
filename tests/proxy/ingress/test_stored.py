"""/v1/responses/{id}/input_items; the rest of it is in test_history and test_background."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from openai import BadRequestError, NotFoundError

from parser import write_call
from tests.support.patience import PATIENCE
from tests.support.talking import TOOLS, GatedBackend, talking


async def test_input_items_are_listed_in_parts_with_ids() -> None:
    items: list[Any] = [
        {"role": "system", "content": "Be kind."},
        {"role": "assistant", "content": "Hi"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}", "id": "fc_1"},
        {"type": "function_call_output", "call_id": "call_1", "output": "done"},
    ]
    async with talking("one") as (client, _):
        response = await client.responses.create(model="m", input=items)
        page = await client.responses.input_items.list(response.id, order="asc")
    listed: list[dict[str, Any]] = [item.to_dict() for item in page.data]
    assert [(item["type"], item["status"]) for item in listed] == [
        ("message", "completed"), ("message", "completed"), ("message", "completed"),
        ("function_call", "completed"), ("function_call_output", "completed"),
    ]  # fmt: skip
    assert [part["type"] for item in listed[:3] for part in item["content"]] == [
        "input_text", "output_text", "input_text",
    ]  # fmt: skip
    assert listed[3]["id"] == "fc_1"
    assert len({item["id"] for item in listed}) == 5


async def test_with_a_previous_response_the_whole_chain_is_listed() -> None:
    async with talking(write_call("read_note", "{}"), "It says A.") as (client, _):
        first = await client.responses.create(model="m", input="Read", tools=TOOLS)
        output: Any = {"type": "function_call_output", "call_id": first.output[0].to_dict()["call_id"], "output": "A"}
        second = await client.responses.create(model="m", input=[output], previous_response_id=first.id)
        kinds = [item.type async for item in client.responses.input_items.list(second.id, limit=1)]
        assert kinds == ["function_call_output", "function_call", "message"]
        await client.responses.delete(first.id)
        assert [item.type async for item in client.responses.input_items.list(second.id)] == ["function_call_output"]


async def test_what_a_client_sends_again_is_listed_as_the_same_items() -> None:
    question: Any = {"role": "user", "content": "Read"}
    async with talking(*(write_call("read_note", f'{{"n": {n}}}') for n in range(3)), "It says A.") as (client, _):
        history, listed, ids = [question], [], []
        for step in range(3):
            response = await client.responses.create(model="m", input=history, tools=TOOLS)
            ids.append(response.id)
            page: Any = await client.responses.input_items.list(response.id, order="asc", limit=100)
            listed.append([item.id for item in page.data])
            call = response.output[0].to_dict()
            result = {"type": "function_call_output", "call_id": call["call_id"], "output": f"note {step}"}
            history = [*history, call, result]
        assert [len(items) for items in listed] == [1, 3, 5]
        assert listed[2][:3] == listed[1]
        assert listed[1][:1] == listed[0]
        for response_id in ids[:2]:
            await client.responses.delete(response_id)
        last: Any = await client.responses.input_items.list(ids[2], order="asc", limit=100)
        assert [item.id for item in last.data] == listed[2]
        onward = await client.responses.create(model="m", input="And?", previous_response_id=ids[2])
        assert onward.output_text == "It says A."


async def test_with_a_conversation_what_stood_in_it_is_listed() -> None:
    """OpenAI: "Items from this conversation are prepended to `input_items` for this response request." """
    backend = GatedBackend(["one", "two", "three"])
    async with talking(backend=backend) as (client, _):

        async def listed(response_id: str) -> list[str]:
            page: Any = await client.responses.input_items.list(response_id, order="asc")
            return [item.content[0].text for item in page.data]

        begun: Any = {"type": "message", "role": "user", "content": "begun"}
        kept = (await client.conversations.create(items=[begun])).id
        backend.gate.set()
        first = await client.responses.create(model="m", input="first", conversation=kept)
        assert await listed(first.id) == ["begun", "first"]
        backend.gate.clear()
        second = await client.responses.create(model="m", input="second", conversation=kept, background=True)
        assert await listed(second.id) == ["begun", "first", "one", "second"]
        backend.gate.set()
        async with asyncio.timeout(PATIENCE):
            while (await client.responses.retrieve(second.id)).status != "completed":
                pass
        assert await listed(second.id) == ["begun", "first", "one", "second"]
        assert await listed(first.id) == ["begun", "first"]
        third = await client.responses.create(model="m", input="third", conversation=kept)
        await client.conversations.delete(kept)
        assert await listed(third.id) == ["third"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"limit": 0}, "'limit'"),
        ({"limit": 101}, "'limit'"),
        ({"limit": "x"}, "'limit'"),
        ({"order": "up"}, "'asc', 'desc'"),
    ],
)
async def test_a_page_that_cannot_be_is_refused(query: Any, message: str) -> None:
    async with talking("one") as (client, _):
        response = await client.responses.create(model="m", input="x")
        with pytest.raises(BadRequestError, match=message):
            await client.responses.input_items.list(response.id, **query)


@pytest.mark.parametrize("param", ["after", "before"])
async def test_behind_an_item_that_is_not_there_nothing_is_listed(param: str) -> None:
    async with talking("one") as (client, _):
        response = await client.responses.create(model="m", input="x")
        with pytest.raises(NotFoundError, match="No item found with id 'msg_x'") as caught:
            await client.responses.input_items.list(response.id, extra_query={param: "msg_x"})
    assert (caught.value.type, caught.value.param, caught.value.code) == ("invalid_request_error", param, None)


async def test_of_an_unknown_response_nothing_is_listed() -> None:
    async with talking() as (client, _):
        with pytest.raises(NotFoundError, match="Response with id 'resp_x' not found"):
            await client.responses.input_items.list("resp_x")


async def test_what_a_query_includes_is_held_to_the_names_of_a_request() -> None:
    async with talking("one") as (client, _):
        response = await client.responses.create(model="m", input="hi")
        again = await client.responses.retrieve(response.id, include=["reasoning.encrypted_content"])
        assert again.id == response.id
        unknown: Any = ["everything"]
        for ask in (client.responses.retrieve, client.responses.input_items.list):
            with pytest.raises(BadRequestError, match="Invalid value: 'everything'") as refused:
                await ask(response.id, include=unknown)
            assert refused.value.param == "include[0]"
