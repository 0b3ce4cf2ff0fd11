"""Turn events as Realtime events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.beta.realtime import RealtimeServerEvent as BetaEvent
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter

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
from proxy.wire.realtime.items import Items
from proxy.wire.realtime.realtime_builder import RealtimeBuilder
from proxy.wire.realtime.versions import BETA, GA, Words

EVENTS: dict[int, TypeAdapter[Any]] = {id(GA): TypeAdapter(RealtimeServerEvent), id(BETA): TypeAdapter(BetaEvent)}
HEAD = {"conversation_id": None, "max_output_tokens": "inf", "metadata": None}

CALL = st.tuples(st.text(min_size=1), st.lists(st.text(), min_size=1)).map(
    lambda call: [ToolCallStarted(f"call_{call[0]}", "f"), *map(ToolCallArguments, call[1]), ToolCallEnded()]
)
PIECES: st.SearchStrategy[list[TurnEvent]] = st.one_of(
    st.text(min_size=1).map(lambda text: [AnswerText(text)]),
    st.just([AnswerMessageEnded()]),
    st.just([Reasoning(0, "hm"), ReasoningItemEnded()]),
    CALL,
)
TURNS = st.lists(PIECES).map(lambda pieces: [event for piece in pieces for event in piece])
ENDS: list[TurnEvent | None] = [
    TurnFinished(Usage(3, 2, 1)),
    TurnFinished(Usage(), "max_output_tokens"),
    TurnFailed(BackendError("Gone.")),
    None,
]


def play(builder: RealtimeBuilder, turn: Sequence[TurnEvent], end: TurnEvent | None) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = builder.start()
    for event in turn:
        events += builder.handle(event)
    return events + (builder.cancel() if end is None else builder.handle(end))


@pytest.mark.parametrize("words", [GA, BETA], ids=["ga", "beta"])
@pytest.mark.parametrize("joins", [True, False])
@given(turn=TURNS, end=st.sampled_from(ENDS))
def test_every_turn_is_a_whole_response_in_either_version(
    words: Words, joins: bool, turn: list[TurnEvent], end: TurnEvent | None
) -> None:
    items = Items() if joins else None
    events = play(RealtimeBuilder(words, dict(HEAD), items), turn, end)
    for number, event in enumerate(events):
        EVENTS[id(words)].validate_python({"event_id": f"event_{number}", **event})
    names = [event["type"] for event in events]
    assert (names[0], names[-1], names.count("response.done")) == ("response.created", "response.done", 1)
    final = events[-1]["response"]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert final["output"] == done
    added = [event["item"]["id"] for event in events if event["type"] == "response.output_item.added"]
    assert added == [item["id"] for item in done]
    told = [event["item"]["id"] for event in events if event["type"] == words.added]
    assert told == (added if joins else [])
    assert list(items or []) == (done if joins else [])
    for item in done:
        deltas = [event["delta"] for event in events if event.get("item_id") == item["id"] and "delta" in event]
        grown = item["arguments"] if item["type"] == "function_call" else item["content"][0]["text"]
        assert "".join(deltas) == grown


def test_a_call_that_breaks_off_does_not_look_finished() -> None:
    turn: list[TurnEvent] = [ToolCallStarted("call_1", "f"), ToolCallArguments('{"a'), ToolCallEnded(complete=False)]
    events = play(RealtimeBuilder(GA, dict(HEAD), None), turn, TurnFailed(BackendError("Broken.")))
    assert "response.function_call_arguments.done" not in [event["type"] for event in events]
    assert events[-1]["response"]["output"][0]["status"] == "incomplete"
