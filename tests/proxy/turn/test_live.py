"""Calls that leave while they are written."""

from __future__ import annotations

from proxy.contracts import (
    Reasoning,
    ReasoningEnded,
    ReasoningPiece,
    TextPiece,
    ToolCallArguments,
    ToolCallEnded,
    ToolCallStarted,
    TurnEnded,
)
from proxy.turn import CallRelease
from tests.proxy.turn.playing import READ_A, ask, keyless_model, play
from tests.support.memory_backend import USAGE

LIVE = keyless_model(release=CallRelease.LIVE)


async def test_live_calls_leave_as_they_are_written() -> None:
    outcome = await play(READ_A, chunk=4, options=LIVE)
    assert outcome.calls == [("read_note", '{"path": "a.md"}')]
    assert sum(isinstance(event, ToolCallArguments) for event in outcome.events) > 2
    assert ToolCallEnded() in outcome.events
    assert isinstance(outcome.events[0], ToolCallStarted)
    assert outcome.events[0].call_id.startswith("call_")


async def test_a_live_call_that_breaks_off_ends_incomplete_and_fails_the_turn() -> None:
    outcome = await play('<tool_call>{"name": "read_note", "arguments": {"path": "a', chunk=4, options=LIVE)
    assert ToolCallEnded(complete=False) in outcome.events
    assert outcome.error.code == "tool_call_broken"


async def test_a_call_that_may_be_a_quotation_does_not_leave_live() -> None:
    outcome = await play(f"It says: {READ_A}", chunk=3, request=ask(f"Show me this note:\n{READ_A}"), options=LIVE)
    assert outcome.calls == []
    assert outcome.text == f"It says: {READ_A}"


async def test_reasoning_in_the_middle_of_a_live_call_waits_for_its_end() -> None:
    half = len(READ_A) - 20
    outcome = await play(
        [
            TextPiece(READ_A[:half]),
            ReasoningPiece(0, "x"),
            ReasoningEnded(),
            TextPiece(READ_A[half:]),
            TurnEnded(USAGE),
        ],
        options=LIVE,
    )
    kinds = [type(event) for event in outcome.events]
    assert kinds.index(ToolCallEnded) < kinds.index(Reasoning)
    assert outcome.calls == [("read_note", '{"path": "a.md"}')]
