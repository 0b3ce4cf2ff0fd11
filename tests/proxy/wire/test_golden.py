"""Whole streams of each API as they leave, an event a line, and behind them the answer without a stream.

After a wanted change, write them anew with `REWRITE_GOLDEN=1 pytest tests/proxy/wire/test_golden.py` and read the diff.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import pytest

from proxy.contracts import (
    AnswerMessageEnded,
    AnswerText,
    Reasoning,
    ReasoningItemEnded,
    ToolCallArguments,
    ToolCallEnded,
    ToolCallStarted,
    TurnEvent,
    TurnFailed,
    TurnFinished,
    Usage,
)
from proxy.errors import BackendError
from proxy.ids import MintId
from proxy.wire.anthropic.anthropic_builder import MessagesBuilder
from proxy.wire.anthropic.request import parse_messages_request
from proxy.wire.builder import AnswerBuilder, WireEvent
from proxy.wire.chat.chat_builder import ChatBuilder
from proxy.wire.chat.request import parse_chat_request
from proxy.wire.json_body import parse_json_object
from proxy.wire.realtime.items import Items
from proxy.wire.realtime.realtime_builder import RealtimeBuilder
from proxy.wire.realtime.versions import BETA, GA, Words
from proxy.wire.responses.request import parse_responses_request
from proxy.wire.responses.responses_builder import ResponsesBuilder
from proxy.wire.tokligence.tokligence_builder import TokligenceBuilder

GOLDEN = Path(__file__).parent / "golden"
USAGE = Usage(328, 40, 52, 5)

TURNS: Mapping[str, tuple[TurnEvent, ...]] = {
    "answer": (
        Reasoning(0, "I should "),
        Reasoning(0, "look."),
        Reasoning(1, "Now."),
        ReasoningItemEnded(),
        AnswerText("I "),
        AnswerText("look."),
        AnswerMessageEnded(),
        AnswerText("Twice."),
        ToolCallStarted("call_1", "read_note"),
        ToolCallArguments('{"path":'),
        ToolCallArguments('"a.md"}'),
        ToolCallEnded(),
        ToolCallStarted("call_2", "patch"),
        ToolCallArguments('{"input":"x"}'),
        ToolCallEnded(),
        TurnFinished(USAGE),
    ),
    "cut": (AnswerText("Half a"), TurnFinished(USAGE, "max_output_tokens")),
    "failed": (
        AnswerText("I lo"),
        ToolCallStarted("call_1", "read_note"),
        ToolCallArguments('{"pa'),
        ToolCallEnded(complete=False),
        TurnFailed(BackendError("Gone.", code="backend_disconnected")),
    ),
}
TOOLS = [{"name": "read_note", "parameters": {"type": "object"}}]


def responses(mint: MintId) -> AnswerBuilder:
    tools = [{"type": "function", **TOOLS[0]}, {"type": "custom", "name": "patch"}]
    body = {"model": "m", "input": "hi", "tools": tools}
    return ResponsesBuilder(
        parse_responses_request(parse_json_object(orjson.dumps(body))), mint=mint, clock=lambda: 1000.5
    )


def chat(mint: MintId) -> AnswerBuilder:
    tools = [{"type": "function", "function": TOOLS[0]}, {"type": "custom", "custom": {"name": "patch"}}]
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": tools,
        "stream_options": {"include_usage": True},
        "stream": True,
    }
    request = parse_chat_request(parse_json_object(orjson.dumps(body)))
    return ChatBuilder(request, reasoning=True, mint=mint, clock=lambda: 1000.5)


def anthropic(mint: MintId) -> AnswerBuilder:
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in ("read_note", "patch")]
    body: Any = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}], "tools": tools}
    request = parse_messages_request({**body, "thinking": {"type": "adaptive"}})
    return MessagesBuilder(request, estimate=12, request_id="req_1", mint=mint)


def realtime(words: Words, mint: MintId) -> AnswerBuilder:
    head: WireEvent = {"conversation_id": "conv_1", "max_output_tokens": "inf", "metadata": None}
    return RealtimeBuilder(words, head, Items(mint), mint=mint)


APIS: Mapping[str, Callable[[MintId], AnswerBuilder]] = {
    "responses": responses,
    "chat": chat,
    "anthropic": anthropic,
    "realtime": lambda mint: realtime(GA, mint),
    "realtime-beta": lambda mint: realtime(BETA, mint),
    "tokligence": lambda mint: TokligenceBuilder("m", mint=mint, clock=lambda: 1000.5),
}


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("api", APIS)
def test_the_stream_is_the_one_that_was_read(api: str, turn: str) -> None:
    numbers = count(1)
    builder = APIS[api](lambda prefix: f"{prefix}_{next(numbers)}")
    # Each as it is when it leaves: what it refers to may change.
    lines = [orjson.dumps(event) for event in builder.start()]
    for event in TURNS[turn]:
        lines += map(orjson.dumps, builder.handle(event))
    lines.append(orjson.dumps(builder.body))
    stream = b"".join(line + b"\n" for line in lines)
    path = GOLDEN / f"{api}-{turn}.jsonl"
    if os.environ.get("REWRITE_GOLDEN"):
        path.write_bytes(stream)
    assert stream.decode() == path.read_text("utf-8")
