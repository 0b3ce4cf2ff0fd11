"""The calls of one answer: which of them leave, and what is known of them in the end."""

from __future__ import annotations

import pytest

from parser import write_call
from prompts import PastCall, Text, ToolResult, Transcript, UserTurn
from proxy.contracts import (
    TextPiece,
    ToolCallArguments,
    ToolCallEnded,
    ToolCallStarted,
)
from proxy.turn import CallRelease, TurnReport
from proxy.turn.reading import Reading
from proxy.turn.verdict import Answer
from tests.proxy.turn.playing import READ_A, READ_B, gate, read
from tests.support.memory_backend import pieces


def test_a_call_leaves_whole() -> None:
    left = read(Reading(gate(), TurnReport()), pieces(READ_A, 3))
    assert left == [ToolCallStarted("call_1", "read_note"), ToolCallArguments('{"path": "a.md"}'), ToolCallEnded()]


@pytest.mark.parametrize("release", list(CallRelease))
def test_good_calls_are_counted(release: CallRelease) -> None:
    report = TurnReport()
    reading = Reading(gate(), report, release=release)
    read(reading, pieces(f"{READ_A}\n{READ_B}", 5))
    assert (reading.answer.calls, report.calls) == (2, ["read_note"] * 2)


def test_a_call_that_goes_round_is_held_once() -> None:
    past = (PastCall("c", "read_note", '{"path":"a.md"}'), ToolResult("c", (Text("# A"),)))
    transcript = Transcript((UserTurn((Text("What is in a.md?"),)), *past, *past))
    reading = Reading(gate(transcript=transcript), TurnReport())
    assert read(reading, [TextPiece(READ_A)]) == []
    assert (reading.answer.repeated, reading.answer.calls) == ("read_note", 0)
    assert len(read(Reading(gate(transcript=transcript), TurnReport(), may_repeat=True), [TextPiece(READ_A)])) == 3


def test_undeclared_calls_are_counted_and_leave_nothing() -> None:
    reading = Reading(gate(), TurnReport())
    assert read(reading, [TextPiece(write_call("rm", "{}") * 2)]) == []
    assert reading.answer == Answer(undeclared=2)


def test_one_call_is_enough_where_one_was_asked_for() -> None:
    reading = Reading(gate(), TurnReport(), parallel=False)
    assert len(reading.receive([TextPiece(READ_A + READ_B)])) == 3
    assert reading.stop


def test_behind_a_live_call_that_broke_nothing_is_wanted() -> None:
    reading = Reading(gate(), TurnReport(), release=CallRelease.LIVE)
    broken = READ_A.replace('"}}', '"]}')
    assert reading.receive(pieces(broken, 4))[-1] == ToolCallEnded(complete=False)
    assert (reading.stop or "").startswith("the call cannot be read: ")
    assert reading.receive([TextPiece(f"Once more: {READ_B}")]) == []
    assert reading.finish() == []
    assert (reading.answer.broken, reading.answer.calls) == (reading.stop, 0)
