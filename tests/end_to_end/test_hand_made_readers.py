"""Plugins that read the event stream of Chat Completions by their own means get what the model said."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from tests.support.conversation import Round, conversation
from tests.support.endpoint import Endpoint
from tests.support.scripted_model import Message, Reply
from tests.support.tool_call import ToolCall

from .clients.hand_made import READERS, Seen

QUESTION: dict[str, Any] = {"role": "user", "content": "What is in a.md?"}
TEXT = 'A line,\n\n{"another": "one"} <with> every kind of `text` 🙂\r\nwhere data: [DONE] is no end.'
TOOL = {
    "type": "function",
    "function": {"name": "read_note", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}},
}


async def network_reads(url: str, gate: asyncio.Event | None = None, **body: Any) -> list[str]:
    """The answer's body in the pieces in which it came from the network; opens `gate` once there are three."""
    body |= {"model": "my-codex", "stream": True}
    reads: list[str] = []
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{url}/chat/completions", json=body) as response:
            assert response.status == 200, await response.text()
            async for read in response.content.iter_any():
                reads.append(read.decode())
                if gate is not None and len(reads) == 3:
                    gate.set()
    return reads


@pytest.mark.parametrize("chunk", [1, 1000])
@pytest.mark.parametrize("reader", READERS)
async def test_a_hand_made_reader_gets_the_whole_text(endpoint: Endpoint, reader: str, chunk: int) -> None:
    read, extras = READERS[reader]
    endpoint.model.push(Reply([Message(TEXT)], chunk=chunk))
    assert read(await network_reads(endpoint.url, messages=[QUESTION], **extras)) == Seen(TEXT)


async def test_the_reader_that_knows_calls_completes_the_tool_loop(endpoint: Endpoint) -> None:
    read, extras = READERS["after data"]
    call = ToolCall("read_note", {"path": "a.md"})
    endpoint.model.choose = conversation([Round("I will look.", (call,), ("# A\ntext",)), Round("It is a text.")])
    asked = {"tools": [TOOL], "tool_choice": "auto", **extras}
    seen = read(await network_reads(endpoint.url, messages=[QUESTION], **asked))
    assert (seen.call_name, json.loads(seen.call_arguments)) == (call.name, call.arguments)
    function = {"name": seen.call_name, "arguments": seen.call_arguments}
    made = {"role": "assistant", "tool_calls": [{"id": seen.call_id, "type": "function", "function": function}]}
    result = {"role": "tool", "tool_call_id": seen.call_id, "content": "# A\ntext"}
    assert read(await network_reads(endpoint.url, messages=[QUESTION, made, result], **asked)).text == "It is a text."


@pytest.mark.parametrize("reader", READERS)
async def test_a_hand_made_reader_bears_the_signs_of_life_in_a_silence(
    endpoint: Endpoint, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.ingress.event_stream.HEAD_WAIT", 0.05)
    monkeypatch.setattr("proxy.ingress.event_stream.HEARTBEAT", 0.05)
    read, extras = READERS[reader]
    gate = asyncio.Event()
    endpoint.model.push(Reply([Message(TEXT)], gate=gate))
    assert read(await network_reads(endpoint.url, gate, messages=[QUESTION], **extras)) == Seen(TEXT)
