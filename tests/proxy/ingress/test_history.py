"""Conversations that go on where a stored Response ended."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from openai import AsyncOpenAI, BadRequestError, NotFoundError

from parser import write_call
from prompts import Text
from proxy.errors import StoreError
from proxy.server import running_server
from proxy.settings import Settings
from proxy.stores.memory import MemoryStore
from tests.support.memory_backend import MemoryBackend, Script

TOOLS: list[Any] = [{"type": "function", "name": "read_note", "parameters": {"type": "object"}, "strict": False}]


@asynccontextmanager
async def talking(*answers: Script, **settings: Any) -> AsyncIterator[tuple[AsyncOpenAI, MemoryBackend]]:
    backend = MemoryBackend(list(answers))
    async with (
        running_server(Settings(port=0, **settings), backend) as url,
        AsyncOpenAI(base_url=url, api_key="mine", max_retries=0) as client,
    ):
        yield client, backend


def shown(backend: MemoryBackend) -> str:
    return "".join(part.text for part in backend.prompts[-1].parts if isinstance(part, Text))


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


async def test_a_call_that_was_left_open_must_be_answered_first() -> None:
    async with talking(write_call("read_note", "{}")) as (client, _):
        first = await client.responses.create(model="m", input="x", tools=TOOLS)
        with pytest.raises(BadRequestError, match="No tool output found for function call"):
            await client.responses.create(model="m", input="y", previous_response_id=first.id)


async def test_a_store_that_fails_does_not_fail_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise StoreError("the disk is full")

    async with talking("one") as (client, _):
        monkeypatch.setattr(MemoryStore, "save", fail)
        response = await client.responses.create(model="m", input="x")
        assert response.output_text == "one"
