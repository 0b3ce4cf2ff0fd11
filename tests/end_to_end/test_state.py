"""State with the real codex program: over restarts, over a crash, and without a client."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI

from parser import write_call
from tests.support.codex_homes import informed_home
from tests.support.codex_programs import installed_programs
from tests.support.patience import PATIENCE
from tests.support.scripted_model import Message, Reply, ScriptedModel
from tests.support.sdk import openai_client
from tests.support.tagcall_server import tagcall_process, tagcall_server

TOOLS: list[Any] = [{"type": "function", "name": "read_note", "parameters": {"type": "object"}, "strict": False}]


@asynccontextmanager
async def client_of(url: str) -> AsyncIterator[AsyncOpenAI]:
    async with openai_client(url, "mine", timeout=PATIENCE) as client:
        yield client


def asked(model: ScriptedModel) -> str:
    return str(model.requests[-1].body["input"])


async def test_a_tool_loop_goes_on_after_a_restart(model: ScriptedModel, tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/r.db"
    model.push(Reply([Message(write_call("read_note", '{"path": "a.md"}'))]), Reply([Message("It says A.")]))
    async with tagcall_server(model, tmp_path / "home", store=store) as url, client_of(url) as client:
        conversation = await client.conversations.create()
        first = await client.responses.create(
            model="gpt-5.5", input="Read a.md", tools=TOOLS, conversation=conversation.id
        )
    call = first.output[-1].to_dict()
    output: Any = {"type": "function_call_output", "call_id": call["call_id"], "output": "# Alpha"}
    async with tagcall_server(model, tmp_path / "home", store=store) as url, client_of(url) as client:
        second = await client.responses.create(
            model="gpt-5.5", input=[output], tools=TOOLS, conversation=conversation.id
        )
        assert second.output_text == "It says A."
        assert asked(model).index("Read a.md") < asked(model).index("# Alpha")
        third = await client.responses.create(model="gpt-5.5", input=[output], previous_response_id=first.id)
        assert third.conversation is None
        items = [item.type async for item in client.conversations.items.list(conversation.id, order="asc")]
    assert [kind for kind in items if kind != "reasoning"] == [
        "message", "function_call", "function_call_output", "message",
    ]  # fmt: skip


async def test_a_background_response_outlives_its_client_and_ends_with_a_cancel(
    model: ScriptedModel, tmp_path: Path
) -> None:
    async with tagcall_server(model, tmp_path / "home", store="memory") as url, client_of(url) as client:
        gate = asyncio.Event()
        model.push(Reply([Message("one two three four")], chunk=4, hold_after=2, gate=gate))
        stream = await client.responses.create(model="gpt-5.5", input="Count", background=True, stream=True)
        seen: list[Any] = []
        async for event in stream:
            seen.append(event)
            if event.type == "response.output_text.delta":
                break
        await stream.close()
        assert not model.stream_closed.is_set()
        response_id = seen[0].response.id
        rest_of = await client.responses.retrieve(response_id, stream=True, starting_after=seen[-1].sequence_number)
        gate.set()
        rest: list[Any] = [event async for event in rest_of]
        assert [event.sequence_number for event in seen + rest] == list(range(len(seen + rest)))
        assert rest[-1].response.output_text == "one two three four"
        assert (await client.responses.retrieve(response_id)).output_text == "one two three four"

        model.push(Reply([Message("one two three four")], chunk=4, hold_after=2, gate=asyncio.Event()))
        model.called.clear()
        queued = await client.responses.create(model="gpt-5.5", input="Count", background=True)
        assert queued.status == "queued"
        async with asyncio.timeout(PATIENCE):
            await model.called.wait()
            assert (await client.responses.cancel(queued.id)).status == "cancelled"
            await model.stream_closed.wait()


async def test_what_was_completed_is_there_after_the_process_was_killed(model: ScriptedModel, tmp_path: Path) -> None:
    program = installed_programs()[0]
    assert program.path is not None
    arguments = [
        "serve", "--port", "0", "--store", f"sqlite:{tmp_path}/r.db", "--upstream", model.url,
        "--codex", str(program.path), "--codex-home", str(informed_home(tmp_path / "home", program.path)),
    ]  # fmt: skip
    async with tagcall_process(arguments, tmp_path) as (process, url), client_of(url) as client:
        response_id = ""
        stream = await client.responses.create(model="gpt-5.5", input="Hello", stream=True)
        async for event in stream:
            if event.type == "response.completed":
                process.send_signal(signal.SIGKILL)
                response_id = event.response.id
                break
        await process.wait()
    async with tagcall_process(arguments, tmp_path) as (_, url), client_of(url) as client:
        kept = await client.responses.retrieve(response_id)
        assert kept.status == "completed"
        second = await client.responses.create(model="gpt-5.5", input="And?", previous_response_id=kept.id)
        assert second.status == "completed"
        assert kept.output_text in asked(model)
