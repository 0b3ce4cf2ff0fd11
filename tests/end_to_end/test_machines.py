"""Two tagcall processes, each with a codex program of its own, on one real Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI, BadRequestError, OpenAIError

from parser import write_call
from tests.support.codex_homes import informed_home
from tests.support.codex_programs import installed_programs
from tests.support.patience import PATIENCE
from tests.support.redis_server import redis_server, wants_servers
from tests.support.scripted_model import Message, Reply, ScriptedModel
from tests.support.tagcall_server import tagcall_process

pytestmark = wants_servers

TOOLS: list[Any] = [{"type": "function", "name": "read_note", "parameters": {"type": "object"}, "strict": False}]
TRIES = 50


@pytest.fixture
async def two(model: ScriptedModel, tmp_path: Path) -> AsyncIterator[tuple[AsyncOpenAI, AsyncOpenAI]]:
    """A client of each process."""
    program = installed_programs()[0]
    assert program.path is not None
    async with redis_server() as redis, AsyncExitStack() as running:
        clients = []
        for name in ("here", "there"):
            arguments = [
                "serve", "--port", "0", "--store", redis.url, "--upstream", model.url,
                "--codex", str(program.path), "--codex-home", str(informed_home(tmp_path / name, program.path)),
            ]  # fmt: skip
            _, url = await running.enter_async_context(tagcall_process(arguments, tmp_path))
            client = AsyncOpenAI(base_url=url, api_key="mine", max_retries=0, timeout=PATIENCE)
            clients.append(await running.enter_async_context(client))
        yield clients[0], clients[1]


async def _try(client: AsyncOpenAI, conversation: str, ends: list[Any], gate: asyncio.Event) -> None:
    """Notes how a request ends; the first end opens the gate."""
    try:
        ends.append(await client.responses.create(model="gpt-5.5", input="Hi", conversation=conversation))
    except OpenAIError as error:
        ends.append(error)
    gate.set()


async def test_of_two_requests_at_once_one_gets_the_conversation_each_time(
    model: ScriptedModel, two: tuple[AsyncOpenAI, AsyncOpenAI]
) -> None:
    made = await two[0].conversations.create()
    for number in range(TRIES):
        gate = asyncio.Event()
        model.push(Reply([Message(f"answer {number}")], chunk=4, hold_after=2, gate=gate))
        ends: list[Any] = []
        async with asyncio.TaskGroup() as group:
            for client in two:
                group.create_task(_try(client, made.id, ends, gate))
        refused, answered = ends
        assert isinstance(refused, BadRequestError)
        assert refused.code == "conversation_locked"
        assert answered.output_text == f"answer {number}"
    items = [item.type async for item in two[1].conversations.items.list(made.id, limit=100)]
    assert items.count("message") == 2 * TRIES


async def test_a_tool_loop_goes_on_in_the_other_process(
    model: ScriptedModel, two: tuple[AsyncOpenAI, AsyncOpenAI]
) -> None:
    here, there = two
    # It is asked twice for the call, as it does not write the key.
    called = Reply([Message(write_call("read_note", '{"path": "a.md"}'))])
    model.push(called, called, Reply([Message("It says A.")]))
    first = await here.responses.create(model="gpt-5.5", input="Read a.md", tools=TOOLS)
    output: Any = {"type": "function_call_output", "call_id": first.output[-1].to_dict()["call_id"], "output": "A"}
    second = await there.responses.create(model="gpt-5.5", input=[output], tools=TOOLS, previous_response_id=first.id)
    assert second.output_text == "It says A."
