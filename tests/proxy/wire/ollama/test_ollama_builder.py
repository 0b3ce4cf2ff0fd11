"""The lines of an answer add up to the answer as one object."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

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
from proxy.wire.ollama.errors import encode_lines
from proxy.wire.ollama.ollama_builder import OllamaBuilder
from proxy.wire.ollama.request import parse_chat, parse_generate

END = TurnFinished(Usage(7, 0, 5))
HI: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "think": True}


def build(turn: Sequence[TurnEvent], *, chat: bool = True) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The lines as a host reads them, and the body. Each clock reading is a nanosecond later."""
    ticks = iter(range(1000))
    request = parse_chat(HI) if chat else parse_generate({"model": "m", "prompt": "hi"})
    builder = OllamaBuilder(request, clock=lambda: next(ticks))
    events = builder.start()
    for event in turn:
        events += builder.handle(event)
    lines = b"".join(encode_lines(events)).splitlines()
    return [json.loads(line) for line in lines], json.loads(orjson.dumps(builder.body))


def call(name: str, *pieces: str, complete: bool = True) -> list[TurnEvent]:
    return [ToolCallStarted(f"id_{name}", name), *map(ToolCallArguments, pieces), ToolCallEnded(complete)]


TURNS = st.lists(
    st.one_of(
        st.text(min_size=1).map(AnswerText),
        st.builds(Reasoning, st.integers(0, 2), st.text(min_size=1)),
        st.sampled_from([AnswerMessageEnded(), ReasoningItemEnded()]),
        st.sampled_from([call("f", '{"a": ', "1.50}"), call("g"), call("h", "{", complete=False)]),
    )
)


@given(TURNS)
def test_the_lines_add_up_to_the_body(turn: list[TurnEvent | list[TurnEvent]]) -> None:
    flat = [event for each in turn for event in (each if isinstance(each, list) else [each])]
    lines, body = build([*flat, END])
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    for line in lines:
        message["content"] += line["message"]["content"]
        if "thinking" in line["message"]:
            message["thinking"] = message.get("thinking", "") + line["message"]["thinking"]
        message |= {"tool_calls": calls} if (calls := line["message"].get("tool_calls")) else {}
    assert message == body["message"]
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
    last = {name: value for name, value in lines[-1].items() if name not in {"message", "created_at"}}
    assert last == {name: value for name, value in body.items() if name not in {"message", "created_at"}}
    whole = [event.name for event in flat if isinstance(event, ToolCallStarted) and event.name != "h"]
    assert [call["function"]["index"] for call in message.get("tool_calls", [])] == list(range(len(whole)))


def test_messages_and_parts_of_thoughts_stand_one_blank_line_apart() -> None:
    thoughts: list[TurnEvent] = [Reasoning(0, "I lo"), Reasoning(0, "ok."), Reasoning(1, "More."), ReasoningItemEnded()]
    again: list[TurnEvent] = [Reasoning(0, "At last."), ReasoningItemEnded()]
    told: list[TurnEvent] = [AnswerText("One."), AnswerMessageEnded()]
    lines, body = build([*thoughts, *told, *again, AnswerText("Two."), AnswerMessageEnded(), END])
    assert body["message"]["thinking"] == "I look.\n\nMore.\n\nAt last."
    assert body["message"]["content"] == "One.\n\nTwo."
    assert "".join(line["message"].get("thinking", "") for line in lines) == body["message"]["thinking"]


def test_arguments_that_a_model_spreads_over_lines_are_in_one_line() -> None:
    text = '"a b\\n\u2028"'
    lines, body = build([*call("f", "{\n  ", f'"a": {text},\r\n', '  "b": [\r    1\n  ]\n}'), END])
    for told in (lines[0], body):
        [made] = told["message"]["tool_calls"]
        assert made["function"]["arguments"] == {"a": "a b\n\u2028", "b": [1]}


def test_a_number_keeps_its_characters() -> None:
    builder = OllamaBuilder(parse_chat(HI))
    for event in [*call("f", '{"a": 123456789012345678901, "b": 1.50}'), END]:
        builder.handle(event)
    assert b'{"a": 123456789012345678901, "b": 1.50}' in orjson.dumps(builder.body)


def test_a_cut_answer_and_a_failed_one_say_so() -> None:
    lines, body = build([AnswerText("Hel"), TurnFinished(Usage(), "max_output_tokens")], chat=False)
    assert (body["response"], body["done_reason"], lines[-1]["done_reason"]) == ("Hel", "length", "length")
    lines, _ = build([AnswerText("Hel"), TurnFailed(BackendError("Gone."))])
    assert lines[-1] == {"error": "Gone."}


def test_no_duration_is_nothing() -> None:
    lines, _ = build([END])
    assert all(value > 0 for name, value in lines[-1].items() if name.endswith("_duration"))
