"""Conversations that go on where a stored Response ended."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from openai import BadRequestError, InternalServerError, NotFoundError

from parser import write_call
from proxy.errors import StoreError
from proxy.server import running_server
from proxy.settings import Settings
from proxy.stores import KeyedStore, MemoryKeyValue
from tests.support.clock import settle
from tests.support.memory_backend import MemoryBackend
from tests.support.talking import TOOLS, shown, talking


@pytest.mark.parametrize("stream", [True, False])
async def test_a_tool_loop_goes_on_with_the_output_alone(stream: bool) -> None:
    call = write_call("read_note", '{"path": "a.md"}')
    async with talking(call, "It says A.") as (client, backend):
        if stream:
            events = [event async for event in await client.responses.create(
                model="m", input="What is in a.md?", tools=TOOLS, stream=True)]  # fmt: skip
            assert events[-1].type == "response.completed"
            first = events[-1].response
        else:
            first = await client.responses.create(model="m", input="What is in a.md?", tools=TOOLS)
        output: Any = {"type": "function_call_output", "call_id": first.output[0].to_dict()["call_id"], "output": "# A"}
        second = await client.responses.create(model="m", previous_response_id=first.id, input=[output])
    assert second.output_text == "It says A."
    assert second.previous_response_id == first.id
    text = shown(backend)
    assert text.index("What is in a.md?") < text.index(call) < text.index("# A")


async def test_a_chain_is_followed_to_its_beginning_but_without_its_instructions() -> None:
    async with talking("one", "two", "three") as (client, backend):
        previous: str | None = None
        for number in range(3):
            response = await client.responses.create(
                model="m", input=f"question {number}", previous_response_id=previous, instructions=f"rule {number}"
            )
            previous = response.id
    assert [f"question {n}" in shown(backend) for n in range(3)] == [True] * 3
    assert backend.prompts[-1].developer == "rule 2"


async def test_who_refers_to_what_a_server_without_a_store_said_is_told_what_to_send() -> None:
    async with talking("one", "two", store="none") as (client, _):
        first = await client.responses.create(model="m", input="hi", store=True)
        assert first.to_dict()["store"] is False
        reference: Any = {"type": "item_reference", "id": first.output[0].to_dict()["id"]}
        with pytest.raises(NotFoundError, match=r"not found\. This server keeps nothing") as raised:
            await client.responses.create(model="m", input=[reference])
        assert raised.value.param == "input"
        with pytest.raises(BadRequestError, match=r"not found\. This server keeps nothing") as refused:
            await client.responses.create(model="m", input="hi", previous_response_id=first.id)
        assert refused.value.code == "previous_response_not_found"


async def test_an_item_reference_stands_for_its_item() -> None:
    async with talking("I am here.", "Good.") as (client, backend):
        first = await client.responses.create(model="m", input="Hello")
        items: Any = [
            {"role": "user", "content": "Hello"},
            {"type": "item_reference", "id": first.output[0].id},
            {"role": "user", "content": "And now?"},
        ]
        await client.responses.create(model="m", input=items)
    assert "[assistant] I am here." in shown(backend)


async def test_what_is_not_stored_is_refused() -> None:
    async with talking("one") as (client, _):
        response = await client.responses.create(model="m", input="x", store=False)
        with pytest.raises(BadRequestError) as caught:
            await client.responses.create(model="m", input="y", previous_response_id=response.id)
        assert caught.value.code == "previous_response_not_found"
        with pytest.raises(NotFoundError, match="not found"):
            await client.responses.create(model="m", input=[{"type": "item_reference", "id": "msg_x"}])


async def test_a_response_is_fetched_and_deleted() -> None:
    async with talking("one") as (client, _):
        response = await client.responses.create(model="m", input="x")
        assert (await client.responses.retrieve(response.id)).to_dict() == response.to_dict()
        await client.responses.delete(response.id)
        with pytest.raises(NotFoundError):
            await client.responses.retrieve(response.id)


async def test_one_key_does_not_find_what_is_anothers() -> None:
    async with talking("one") as (client, _):
        response = await client.responses.create(model="m", input="x")
        with pytest.raises(NotFoundError):
            await client.with_options(api_key="yours").responses.retrieve(response.id)


async def test_a_call_that_was_left_open_has_no_result() -> None:
    async with talking(write_call("read_note", "{}"), "Hm.") as (client, backend):
        first = await client.responses.create(model="m", input="x", tools=TOOLS)
        await client.responses.create(model="m", input="y", previous_response_id=first.id)
    assert f"[tool:{first.output[0].to_dict()['call_id']}] (no separate result)" in shown(backend)


async def test_a_strict_history_wants_the_result_first() -> None:
    async with talking(write_call("read_note", "{}"), history="strict") as (client, _):
        first = await client.responses.create(model="m", input="x", tools=TOOLS)
        with pytest.raises(BadRequestError, match="No tool output found for function call"):
            await client.responses.create(model="m", input="y", previous_response_id=first.id)


async def test_a_store_that_fails_does_not_fail_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise StoreError("the disk is full")

    async with talking("one", "two") as (client, _):
        monkeypatch.setattr(KeyedStore, "save", fail)
        answer = await client.responses.with_raw_response.create(model="m", input="x")
        assert answer.parse().output_text == "one"
        assert answer.headers["x-tagcall-warning"] == "not stored"
        async with client.responses.with_streaming_response.create(model="m", input="x", stream=True) as reply:
            text = (await reply.read()).decode()
    assert text.index(": x-tagcall-warning: not stored\n\n") < text.index("event: response.completed")


async def test_who_continues_an_answer_that_could_not_be_stored_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise StoreError("it is full")

    async with talking("one", "two") as (client, _):
        with monkeypatch.context() as patch:
            patch.setattr(KeyedStore, "save", fail)
            first = await client.responses.create(model="m", input="x")
        with pytest.raises(InternalServerError, match="could not be stored") as caught:
            await client.responses.create(model="m", input="y", previous_response_id=first.id)
        assert (caught.value.status_code, caught.value.code) == (503, "store_unavailable")
        assert caught.value.response.headers["x-should-retry"] == "false"
        with pytest.raises(BadRequestError) as unknown:
            await client.responses.create(model="m", input="y", previous_response_id="resp_1")
        assert unknown.value.code == "previous_response_not_found"


@pytest.mark.parametrize("failing", range(12))
async def test_whatever_call_of_the_store_fails_answers_come_and_nothing_is_a_fault(
    failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The n-th call fails, for every n."""
    calls = 0

    def failing_once(real: Any) -> Any:
        async def call(*arguments: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == failing + 1:
                raise StoreError("it is ill")
            return await real(*arguments, **named)

        return call

    for name in ("read", "values", "commit"):
        monkeypatch.setattr(MemoryKeyValue, name, failing_once(getattr(MemoryKeyValue, name)))
    async with talking("one", "two") as (client, _), aiohttp.ClientSession() as session:
        first = await client.responses.create(model="m", input="x")
        assert first.output_text == "one"
        for method, path, body in (
            ("POST", "responses", {"model": "m", "input": "y", "previous_response_id": first.id}),
            ("GET", f"responses/{first.id}", None),
            ("GET", f"responses/{first.id}/input_items", None),
            ("DELETE", f"responses/{first.id}", None),
        ):
            async with session.request(
                method, f"{client.base_url}{path}", json=body, headers={"Authorization": "Bearer mine"}
            ) as response:
                assert response.status in {200, 400, 404, 503}
                if response.status == 503:
                    assert (await response.json())["error"]["code"] == "store_unavailable"
                if response.status in {400, 404}:
                    assert failing == 0


async def test_a_store_that_cannot_be_read_is_not_a_store_without_the_response(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise StoreError("it is away")

    async with talking("one") as (client, _):
        monkeypatch.setattr(KeyedStore, "load", fail)
        with pytest.raises(InternalServerError) as caught:
            await client.responses.create(model="m", input="y", previous_response_id="resp_1")
        assert (caught.value.status_code, caught.value.code) == (503, "store_unavailable")


@pytest.mark.parametrize("how", ["x-api-key", "api-key", "bearer"])
async def test_a_key_is_the_same_owner_however_it_is_sent(how: str) -> None:
    headers = {
        "x-api-key": {"X-Api-Key": "mine"}, "api-key": {"Api-Key": "mine"}, "bearer": {"Authorization": "bearer  mine"},
    }  # fmt: skip
    async with talking("one") as (client, _), aiohttp.ClientSession() as session:
        response = await client.responses.create(model="m", input="x")
        async with session.get(f"{client.base_url}responses/{response.id}", headers=headers[how]) as found:
            assert found.status == 200
        other = {name: value.replace("mine", "yours") for name, value in headers[how].items()}
        async with session.get(f"{client.base_url}responses/{response.id}", headers=other) as found:
            assert found.status == 404


async def test_a_referred_item_is_part_of_what_is_continued_later() -> None:
    async with talking("I am here.", "Good.", "Bye.") as (client, backend):
        first = await client.responses.create(model="m", input="Hello")
        items: Any = [{"type": "item_reference", "id": first.output[0].id}, {"role": "user", "content": "And now?"}]
        second = await client.responses.create(model="m", input=items)
        await client.responses.create(model="m", input="Bye", previous_response_id=second.id)
    assert shown(backend).index("I am here.") < shown(backend).index("And now?") < shown(backend).index("Good.")


async def test_a_chain_goes_on_over_a_restart_of_the_server(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/r.db"
    async with talking("My name is A.", store=store) as (client, _):
        first = await client.responses.create(model="m", input="Who are you?")
    async with talking("I said A.", store=store) as (client, backend):
        second = await client.responses.create(model="m", input="Who?", previous_response_id=first.id)
        assert second.output_text == "I said A."
        assert "My name is A." in shown(backend)


async def test_a_chain_with_a_hole_is_refused() -> None:
    async with talking("one", "two") as (client, _):
        first = await client.responses.create(model="m", input="x")
        second = await client.responses.create(model="m", input="y", previous_response_id=first.id)
        await client.responses.delete(first.id)
        with pytest.raises(BadRequestError, match=first.id):
            await client.responses.create(model="m", input="z", previous_response_id=second.id)


async def test_a_chain_that_is_too_long_to_be_followed_is_refused_and_never_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("proxy.ingress.history.MAX_CHAIN", 3)
    async with talking("one", "two", "three", "four") as (client, backend):
        last = await client.responses.create(model="m", input="begun")
        for asked in ("second", "third", "fourth"):
            last = await client.responses.create(model="m", input=asked, previous_response_id=last.id)
        assert "begun" in shown(backend)
        with pytest.raises(BadRequestError, match=f"'{last.id}' continues more than 2 others") as caught:
            await client.responses.create(model="m", input="fifth", previous_response_id=last.id)
        assert (caught.value.param, caught.value.code) == ("previous_response_id", "invalid_value")


async def test_an_incomplete_answer_is_stored_before_its_last_event() -> None:
    async with talking("word " * 400) as (client, _):
        stream = await client.responses.create(model="m", input="x", max_output_tokens=16, stream=True)
        async for event in stream:
            if event.type == "response.incomplete":
                kept = await client.responses.retrieve(event.response.id)
                assert kept.to_dict() == event.response.to_dict()
                return
    raise AssertionError("it was not cut")


async def test_by_default_nothing_is_kept_but_in_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    async with running_server(Settings(port=0), MemoryBackend([])):
        assert (tmp_path / "tagcall" / "responses.sqlite").exists()


async def test_an_answer_is_not_over_before_it_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    to_be_stored, may_be_stored = asyncio.Event(), asyncio.Event()

    save = KeyedStore.save

    async def save_later(*stored: Any, **more: Any) -> bool:
        to_be_stored.set()
        await may_be_stored.wait()
        return await save(*stored, **more)

    monkeypatch.setattr(KeyedStore, "save", save_later)
    async with talking("Hello") as (client, _), aiohttp.ClientSession() as session:
        body = {"model": "m", "input": "hi", "stream": True}
        async with session.post(f"{client.base_url}responses", json=body) as response:
            await response.content.readuntil(b"response.output_text.delta")
            await to_be_stored.wait()
            await settle()
            assert b"response.completed" not in response.content.read_nowait()
            may_be_stored.set()
            assert b"response.completed" in await response.read()
