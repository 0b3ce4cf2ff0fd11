"""Turn events in the dialect of tokligence-gateway."""

from __future__ import annotations

import re
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from proxy.contracts import (
    AnswerMessageEnded,
    AnswerText,
    Reasoning,
    ToolCallArguments,
    ToolCallEnded,
    ToolCallStarted,
    TurnEvent,
    TurnFailed,
    TurnFinished,
    Usage,
)
from proxy.errors import BackendError
from proxy.wire.tokligence.tokligence_builder import TokligenceBuilder, encode_dialect, mint_digits

CALL: list[TurnEvent] = [
    ToolCallStarted("call_9", "f"),
    ToolCallArguments('{"a"'),
    ToolCallArguments(": 1}"),
    ToolCallEnded(),
]
DONE = TurnFinished(Usage(3, 0, 1))


def play(builder: TokligenceBuilder, *turn: TurnEvent) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = builder.start()
    for event in turn:
        events += builder.handle(event)
    return events


def types(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def test_text_and_the_end_without_calls() -> None:
    events = play(TokligenceBuilder("m"), Reasoning(0, "hm"), AnswerText("Hel"), AnswerText("lo"), DONE)
    assert types(events) == [
        "response.created",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert set(events[0]["response"]) == {"id", "object", "status", "created_at"}
    final = events[-1]["response"]
    assert (final["status"], final["required_action"], final["incomplete_details"]) == ("completed", None, None)
    assert final["output"][0]["content"][0]["text"] == "Hello"
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


def test_a_call_is_told_twice_as_it_grows_and_asked_for_before_the_end() -> None:
    builder = TokligenceBuilder("m")
    events = play(builder, AnswerText("I look."), *CALL, DONE)
    assert types(events)[7:] == [
        "response.output_item.added",
        *("response.function_call_arguments.delta", "response.tool_call.delta") * 2,
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.required_action",
        "response.completed",
    ]
    called = {"id": "call_9", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    action = {"type": "submit_tool_outputs", "submit_tool_outputs": {"tool_calls": [called]}}
    final = events[-1]["response"]
    assert events[-2]["required_action"] == final["required_action"] == action
    assert (final["status"], final["incomplete_details"]) == ("incomplete", {"reason": "tool_calls"})
    assert [item["type"] for item in final["output"]] == ["function_call", "message"]
    assert final["output"][0]["status"] == "in_progress"
    assert {event["output_index"] for event in events if "output_index" in event} == {0}
    body: Any = builder.body
    assert body["output"][0]["content"][1] == {
        "type": "tool_call",
        "call_id": "call_9",
        "name": "f",
        "arguments": '{"a": 1}',
    }


def test_a_failure_is_told_and_completes_the_response() -> None:
    events = play(TokligenceBuilder("m"), AnswerText("Half"), TurnFailed(BackendError("Gone.")))
    assert events[-2] == {"type": "error", "message": "Gone."}
    assert (events[-1]["type"], events[-1]["response"]["status"]) == ("response.completed", "failed")


def test_what_was_cut_is_incomplete() -> None:
    final = play(TokligenceBuilder("m"), AnswerText("Half"), TurnFinished(Usage(), "max_output_tokens"))[-1]["response"]
    assert (final["status"], final["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})


def test_messages_of_one_answer_are_one_message() -> None:
    builder = TokligenceBuilder("m")
    events = play(builder, AnswerText("One"), AnswerMessageEnded(), AnswerText("Two"), DONE)
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "One\n\nTwo"
    assert types(events).count("response.output_item.added") == 1


def test_a_ping_takes_a_number_and_has_no_type() -> None:
    builder = TokligenceBuilder("m")
    builder.start()
    assert encode_dialect(builder.pulse()) == [b'event: ping\ndata: {"sequence_number":1}\n\n']
    assert builder.handle(AnswerText("x"))[0]["sequence_number"] == 2


def test_what_goes_on_keeps_its_id() -> None:
    builder = TokligenceBuilder("m", response_id="resp_1", created_at=5)
    head = play(builder, DONE)[0]["response"]
    assert (head["id"], head["created_at"]) == ("resp_1", 5)


@given(st.lists(st.sampled_from([[AnswerText("x")], [AnswerMessageEnded()], CALL])))
def test_ids_are_digits_and_json_is_compact(pieces: list[list[TurnEvent]]) -> None:
    turn = [
        ToolCallStarted(f"call_{number}x", "f") if isinstance(event, ToolCallStarted) else event
        for number, piece in enumerate(pieces)
        for event in piece
    ]
    events = play(TokligenceBuilder("m"), *turn, DONE)
    ids = re.findall(r'"(?:id|item_id|call_id)":"([^"]*)"', b"".join(encode_dialect(events)).decode())
    assert ids
    assert all(re.fullmatch(r"(?:resp|msg|fc|call)_[0-9]+", identifier) for identifier in ids)
    numbers = [event["sequence_number"] for event in events]
    assert numbers == list(range(len(events)))


def test_minted_digits_are_as_many_as_those_of_a_time() -> None:
    assert re.fullmatch(r"resp_[0-9]{19}", mint_digits("resp"))
    assert mint_digits("resp") != mint_digits("resp")


def test_events_are_named_by_their_type() -> None:
    (piece,) = encode_dialect([{"type": "response.created", "sequence_number": 0}])
    head, data, *_ = piece.split(b"\n")
    assert head == b"event: response.created"
    assert orjson.loads(data.removeprefix(b"data: "))["sequence_number"] == 0
