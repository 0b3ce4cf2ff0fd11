"""Answers in the form in which two runs are equal."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.replay.answers import FixtureBody, FixtureEvent, FixtureStream
from proxy.replay.normal import Names, error_alone, normal, without_usage

RESPONSE, MESSAGE, CALL = (f"{prefix}_{'0' * 31}{digit}" for prefix, digit in (("resp", 1), ("msg", 2), ("call", 3)))


def delta(text: str, number: int, item: str = MESSAGE) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "sequence_number": number, "item_id": item, "delta": text}


def chunk(**choice: Any) -> dict[str, Any]:
    return {"id": "chatcmpl-" + "a" * 32, "created": 1_700_000_000, "choices": [{"index": 0, **choice}]}


def stream(*data: dict[str, Any]) -> FixtureStream:
    return FixtureStream(tuple(FixtureEvent(event.get("type"), event) for event in data))


def form(answer: FixtureStream | FixtureBody, taken: object = None) -> Any:
    match normal(answer, Names(taken)):
        case FixtureStream(events):
            return [event.data for event in events]
        case FixtureBody(_, _, body):
            return body


def test_ids_get_names_in_the_order_of_their_appearance() -> None:
    body = {
        "id": RESPONSE,
        "output": [{"id": MESSAGE}, {"call_id": CALL}, {"id": MESSAGE}],
        "text": f"{CALL} in a text",
    }
    assert form(FixtureBody(200, {}, body)) == {
        "id": "resp_1",
        "output": [{"id": "msg_1"}, {"call_id": "call_1"}, {"id": "msg_1"}],
        "text": f"{CALL} in a text",
    }


def test_names_that_the_request_has_are_not_given_again() -> None:
    assert form(FixtureBody(200, {}, {"call_id": CALL}), {"input": [{"call_id": "call_7"}]}) == {"call_id": "call_8"}


def test_times_are_nought_and_no_time_stays_none() -> None:
    body = {"created_at": 1_700_000_000, "completed_at": None, "created": 5}
    assert form(FixtureBody(200, {}, body)) == {"created_at": 0, "completed_at": None, "created": 0}


def test_neighbouring_deltas_are_one_and_the_events_are_counted_anew() -> None:
    events = [delta("Hel", 0), delta("lo", 1), delta("x", 2, RESPONSE), {"type": "end", "sequence_number": 3}]
    assert form(stream(*events)) == [
        delta("Hello", 0, "msg_1"),
        delta("x", 1, "resp_1"),
        {"type": "end", "sequence_number": 2},
    ]


def test_events_that_are_counted_wrong_stay_so() -> None:
    assert [event["sequence_number"] for event in form(stream(delta("a", 0), delta("b", 0, RESPONSE)))] == [0, 0]


def test_pieces_of_chat_completions_are_put_together() -> None:
    call = {"index": 0, "id": "call_x", "function": {"name": "f", "arguments": ""}}
    pieces = [{"index": 0, "function": {"arguments": text}} for text in ('{"a"', ": 1}")]
    chunks = [
        chunk(delta={"role": "assistant", "content": None}),
        *(chunk(delta={"content": text}) for text in ("Hel", "lo")),
        *(chunk(delta={"tool_calls": [tool_call]}) for tool_call in (call, *pieces)),
    ]
    deltas = [event["choices"][0]["delta"] for event in form(stream(*chunks))]
    assert deltas[1] == {"content": "Hello"}
    assert deltas[2] == {"tool_calls": [call]}
    assert deltas[3] == {"tool_calls": [{"index": 0, "function": {"arguments": '{"a": 1}'}}]}
    assert len(deltas) == 4


def test_chunks_that_say_nothing_are_left_out_unless_nothing_is_said() -> None:
    nothing, end = chunk(delta={"content": ""}), chunk(delta={}, finish_reason="stop")
    call = chunk(delta={"tool_calls": [{"index": 0}]})
    assert len(form(stream(nothing, call, end))) == 2
    assert len(form(stream(nothing, end))) == 2


def test_tokens_can_be_left_out_of_the_comparison() -> None:
    body = {"usage": {"total_tokens": 5, "details": {"cached": 3}}, "index": 1}
    assert without_usage(FixtureBody(200, {}, body)) == FixtureBody(
        200, {}, {"usage": {"total_tokens": 0, "details": {"cached": 0}}, "index": 1}
    )
    assert without_usage(stream(body, {"type": "end"})) == stream(
        {"usage": {"total_tokens": 0, "details": {"cached": 0}}, "index": 1}, {"type": "end"}
    )


@given(st.lists(st.text(), min_size=1), st.lists(st.text(), min_size=1))
def test_the_cuts_of_a_text_do_not_show(one: list[str], other: list[str]) -> None:
    other = ["".join(one)] if "".join(one) != "".join(other) else other
    first, second = (stream(*(delta(text, at) for at, text in enumerate(texts))) for texts in (one, other))
    assert normal(first, Names()) == normal(second, Names())


@given(st.lists(st.text(), min_size=1))
def test_what_is_normal_stays_as_it_is(texts: list[str]) -> None:
    once = normal(stream(*(delta(text, at) for at, text in enumerate(texts))), Names())
    assert normal(once, Names()) == once


def test_an_error_that_is_all_there_is_may_have_a_status_or_a_stream() -> None:
    error = {"message": "no"}
    done = FixtureEvent(None, "[DONE]")
    streams = [
        [FixtureEvent("response.created", {}), FixtureEvent("response.failed", {"error": error}), done],
        [FixtureEvent(None, chunk(delta={"role": "assistant"})), FixtureEvent(None, {"error": error}), done],
    ]
    assert [error_alone(FixtureStream(tuple(events))) for events in streams] == [error, error]
    assert error_alone(FixtureBody(502, {}, {"error": error})) == error
    assert error_alone(FixtureStream((FixtureEvent("response.output_item.added", {}), *streams[0][1:]))) is None
    assert error_alone(FixtureBody(200, {}, {"error": None})) is None


@pytest.mark.parametrize("typed", ["tagcall", "/home/user/.venv/bin/tagcall", "/usr/bin/python3 -m proxy.cli"])
def test_what_to_type_is_the_same_everywhere(typed: str) -> None:
    told = FixtureBody(401, {}, {"error": {"message": f"Not logged in: run `{typed} login`. It said: `/x/tagcall`"}})
    assert normal(told, Names()) == FixtureBody(
        401, {}, {"error": {"message": "Not logged in: run `tagcall login`. It said: `/x/tagcall`"}}
    )
