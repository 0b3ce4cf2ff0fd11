"""Anthropic's event streams, held against their grammar, the official client's types and its own accumulator."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import Message, RawMessageStreamEvent
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from proxy.contracts import (
    AnswerMessageEnded,
    AnswerText,
    Compacted,
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
from proxy.wire.anthropic.anthropic_builder import MessagesBuilder, mint_call
from proxy.wire.anthropic.request import parse_messages_request
from tests.support.messages_grammar import checked

USAGE = Usage(328, 40, 52, 5, 8)
END = TurnFinished(USAGE)
GONE = TurnFailed(BackendError("Gone.", code="backend_disconnected"))
BODY: dict[str, Any] = {"model": "gpt-5.5", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}
THOUGHTS: dict[str, Any] = {"thinking": {"type": "adaptive"}}

Build = tuple[list[dict[str, Any]], dict[str, Any]]


def build(turn: Sequence[TurnEvent], **members: Any) -> Build:
    """The events of a turn as a client reads them, and the message."""
    builder = MessagesBuilder(parse_messages_request({**BODY, **members}), estimate=7, request_id="req_1")
    events = [orjson.dumps(event) for event in builder.start()]
    for event in turn:
        events += map(orjson.dumps, builder.handle(event))
    return [json.loads(event) for event in events], json.loads(orjson.dumps(builder.body))


def call(arguments: str = '{"path":"a.md"}', call_id: str = "toolu_1", *, complete: bool = True) -> list[TurnEvent]:
    pieces = [ToolCallArguments(piece) for piece in (arguments[:3], arguments[3:])]
    return [ToolCallStarted(call_id, "read_note"), *pieces, ToolCallEnded(complete)]


def added_up(events: Sequence[dict[str, Any]]) -> Message:
    """What the official client makes of them."""
    reader: TypeAdapter[RawMessageStreamEvent] = TypeAdapter(RawMessageStreamEvent)
    message: Any = None
    buffers: dict[int, bytes] = {}
    for event in events:
        if event["type"] != "ping":
            message = accumulate_event(event=reader.validate_python(event), current_snapshot=message, json_bufs=buffers)
    assert isinstance(message, Message)
    return message


CASES: dict[str, tuple[list[TurnEvent], list[str], str]] = {
    "nothing": ([END], [], "end_turn"),
    "a text": ([AnswerText("Hel"), AnswerText("lo"), END], ["Hello"], "end_turn"),
    "two messages": (
        [AnswerText("One"), AnswerMessageEnded(), AnswerText("Two"), AnswerMessageEnded(), END],
        ["One\n\nTwo"],
        "end_turn",
    ),
    "a call": ([*call(), END], ["read_note"], "tool_use"),
    "a call without arguments": ([*call("{}"), END], ["read_note"], "tool_use"),
    "a text and two calls": (
        [AnswerText("I look."), *call(), *call(call_id="toolu_2"), END],
        ["I look.", "read_note", "read_note"],
        "tool_use",
    ),
    "a text behind a call": ([*call(), AnswerText("So."), END], ["read_note", "So."], "tool_use"),
    "a text up to a stop sequence": ([AnswerText("Hel"), TurnFinished(USAGE, stop="lo")], ["Hel"], "stop_sequence"),
    "a text that was cut": ([AnswerText("Hel"), TurnFinished(USAGE, "max_output_tokens")], ["Hel"], "max_tokens"),
    "a text that was filtered": ([TurnFinished(USAGE, "content_filter")], [], "refusal"),
    "a call that broke off at the limit": (
        [AnswerText("I look."), *call('{"pa', complete=False), TurnFinished(USAGE, "max_output_tokens")],
        ["I look."],
        "max_tokens",
    ),
    "a summary": ([Compacted("They spoke.", whole=True), AnswerText("Hello"), END], ["Hello"], "end_turn"),
}


@pytest.mark.parametrize(("turn", "said", "reason"), CASES.values(), ids=CASES.keys())
def test_every_kind_of_answer_is_the_published_grammar(turn: list[TurnEvent], said: list[str], reason: str) -> None:
    events, body = build(turn)
    if "broke" not in str(turn):
        told = [block.get("text") or block["name"] for block in body["content"]]
        assert (told, body["stop_reason"]) == (said, reason)
    assert (body["stop_sequence"] is not None) is (reason == "stop_sequence")
    Message.model_validate(body)
    if any(event == ToolCallEnded(complete=False) for event in turn):
        assert [event["type"] for event in events[-3:]] == ["content_block_stop", "message_delta", "message_stop"]
        return
    message = checked(events)
    assert message == body
    assert added_up(events).model_dump()["content"] == Message.model_validate(body).model_dump()["content"]


def test_thoughts_are_a_block_where_they_are_asked_for() -> None:
    turn = [Reasoning(0, "I should "), Reasoning(0, "look."), Reasoning(1, "Now."), ReasoningItemEnded(), *call(), END]
    events, body = build(turn, **THOUGHTS)
    assert checked(events)["content"] == body["content"]
    thought = {"type": "thinking", "thinking": "I should look.\n\nNow.", "signature": ""}
    assert body["content"][0] == thought
    assert [block["type"] for block in build(turn)[1]["content"]] == ["tool_use"]


def test_thoughts_that_say_nothing_are_no_block() -> None:
    events, body = build([ReasoningItemEnded(), AnswerText("Hello"), ReasoningItemEnded(), END], **THOUGHTS)
    assert [block["type"] for block in checked(events)["content"]] == ["text"]
    assert len(body["content"]) == 1


def test_the_usage_is_in_both_places_and_counts_nothing_twice() -> None:
    events, body = build([AnswerText("Hello"), END])
    assert events[0]["message"]["usage"]["input_tokens"] == 7
    assert events[0]["message"]["usage"]["output_tokens"] == 0
    usage = events[-2]["usage"]
    assert usage["input_tokens"] + usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"] == 328
    assert (usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]) == (40, 8)
    assert (usage["output_tokens"], usage["output_tokens_details"]) == (52, {"thinking_tokens": 5})
    assert body["usage"] == {**events[0]["message"]["usage"], **usage}
    assert build([TurnFinished(Usage(1, 2, 3))])[1]["usage"]["input_tokens"] == 0


@pytest.mark.parametrize("before", [[], [AnswerText("I lo")], [AnswerText("I look."), *call('{"pa', complete=False)]])
def test_a_failure_is_an_error_and_the_end(before: list[TurnEvent]) -> None:
    events, _ = build([*before, GONE])
    message = checked(events)
    assert message["error"] == {"type": "api_error", "message": "Gone."}
    assert events[-1]["request_id"] == "req_1"
    assert all(block["type"] == "text" for block in message["content"])


def test_a_call_that_broke_off_has_no_stop_that_its_client_would_run_it_for() -> None:
    events, _ = build([*call('{"pa', complete=False), GONE])
    assert [event["type"] for event in events] == [
        "message_start", "content_block_start", "content_block_delta", "content_block_delta", "error",
    ]  # fmt: skip


def test_a_sign_of_life_is_a_ping() -> None:
    assert MessagesBuilder(parse_messages_request(BODY)).pulse() == [{"type": "ping"}]


def test_who_only_warms_the_cache_is_told_nothing_but_the_usage() -> None:
    events, body = build([AnswerText("H"), *call(), END], max_tokens=0)
    assert checked(events) == body
    assert (body["content"], body["stop_reason"], body["usage"]["output_tokens"]) == ([], "max_tokens", 52)
    assert checked(build([AnswerText("H"), GONE], max_tokens=0)[0])["error"]["message"] == "Gone."


def test_no_number_of_a_call_is_rounded() -> None:
    events, body = build([*call('{"n": 123456789012345678901234567890, "x": 1.10}'), END])
    assert body["content"][0]["input"] == checked(events)["content"][0]["input"]
    assert body["content"][0]["input"]["n"] == 123456789012345678901234567890


def test_ids_have_their_prefixes() -> None:
    assert mint_call("call", "tag").removeprefix("toolu_").startswith("tag")
    assert mint_call("call").startswith("toolu_")
    assert build([END])[1]["id"].startswith("msg_")


WORDS = st.text(min_size=1, max_size=8)
ARGUMENTS = st.dictionaries(WORDS, st.integers() | WORDS, max_size=3).map(json.dumps)


@st.composite
def turns(draw: st.DrawFn) -> list[TurnEvent]:
    turn: list[TurnEvent] = []
    for number in range(draw(st.integers(0, 6))):
        match draw(st.sampled_from(["text", "message", "thought", "call"])):
            case "text":
                turn += map(AnswerText, draw(st.lists(WORDS, min_size=1, max_size=3)))
            case "message":
                turn.append(AnswerMessageEnded())
            case "thought":
                turn += [Reasoning(part, draw(WORDS)) for part in range(draw(st.integers(0, 2)))]
                turn.append(ReasoningItemEnded())
            case _:
                turn += call(draw(ARGUMENTS), f"toolu_{number}")
    return [*turn, TurnFinished(USAGE, draw(st.sampled_from([None, "max_output_tokens"])))]


@given(turns())
def test_whatever_a_turn_tells_its_stream_adds_up_to_its_message(turn: list[TurnEvent]) -> None:
    events, body = build(turn, **THOUGHTS)
    assert checked(events) == body
    added_up(events)
