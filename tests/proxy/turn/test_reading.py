"""One answer, read by itself: what leaves while it comes, and what it was in the end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.contracts import (
    AnswerMessageEnded,
    AnswerText,
    BackendEvent,
    MessageEnded,
    MessagePhase,
    Reasoning,
    ReasoningPiece,
    TextPiece,
    ToolCallEnded,
    ToolCallStarted,
    TurnEnded,
    TurnEvent,
)
from proxy.errors import BackendError
from proxy.turn import CallRelease, TurnReport
from proxy.turn.reading import Reading
from proxy.turn.release import Hold
from proxy.turn.verdict import Answer
from tests.proxy.turn.playing import BROKEN, READ_A, READ_B, gate, read
from tests.support.memory_backend import USAGE, pieces


def test_text_leaves_as_it_comes_and_the_answer_knows_that_it_was_seen() -> None:
    reading = Reading(gate(), TurnReport())
    assert reading.receive([TextPiece("I "), TextPiece("look.")]) == [AnswerText("I look.")]
    assert reading.receive([MessageEnded(), TurnEnded(USAGE)]) == [AnswerMessageEnded()]
    assert reading.finish() == []
    assert reading.answer == Answer(shown=True)
    assert reading.usage == USAGE


def test_a_held_answer_says_why_and_what_is_held() -> None:
    report = TurnReport()
    reading = Reading(gate(), report)
    assert read(reading, [TextPiece(f"I look. {BROKEN}")]) == [AnswerText("I look. ")]
    answer = reading.answer
    assert report.refused == {answer.malformed: 1}
    assert (answer.hold, answer.held, answer.shown) == (Hold.DOUBTFUL, (), True)
    assert answer.malformed
    assert answer.lost, "what is no quotation is not shown"


def test_what_the_model_wrote_is_kept_where_it_must_be_json() -> None:
    reading = Reading(gate(), TurnReport(), hold=Hold.FORMAT)
    assert read(reading, pieces('{"a": 1}', 3)) == []
    assert reading.answer.written == '{"a": 1}'
    assert not reading.answer.empty
    required = Reading(gate(), TurnReport(), hold=Hold.REQUIRED)
    assert read(required, pieces('{"a": 1}', 3)) == []
    assert required.answer == Answer(hold=Hold.REQUIRED, held=required.answer.held)


@pytest.mark.parametrize("tools", [True, False])
def test_behind_a_stop_string_nothing_is_wanted_at_once(tools: bool) -> None:
    reading = Reading(gate() if tools else None, TurnReport(), stop_strings=["END"])
    assert reading.receive([TextPiece("One. END and")]) == [AnswerText("One. ")]
    assert (reading.stop, reading.winds_down) == ("a stop string came", True)
    assert reading.receive([TextPiece(f" more {READ_A}")]) == []
    assert reading.goes_on
    assert reading.finish() == []
    assert reading.answer == Answer(shown=True, ended_by_stop_string=True)


def test_reasoning_does_not_interrupt_a_call_that_is_leaving() -> None:
    reading = Reading(gate(), TurnReport(), release=CallRelease.LIVE)
    left = read(reading, [TextPiece(READ_A[:50]), ReasoningPiece(0, "hm"), TextPiece(READ_A[50:])])
    assert isinstance(left[0], ToolCallStarted)
    assert left[-2:] == [ToolCallEnded(), Reasoning(0, "hm")]


def test_reasoning_behind_a_call_that_left_live_leaves_at_once() -> None:
    reading = Reading(gate(), TurnReport(), release=CallRelease.LIVE)
    reading.receive(pieces(READ_A, 4))
    assert reading.receive([ReasoningPiece(0, "hm")]) == [Reasoning(0, "hm")]


def test_text_leaves_with_the_phase_of_its_message() -> None:
    """Also where the parser held some of it back, or the phase came last."""
    first: list[BackendEvent] = [MessagePhase("commentary"), TextPiece("I look. <"), MessageEnded()]
    last: list[BackendEvent] = [TextPiece("So: done. <"), MessagePhase("final_answer"), MessageEnded()]
    assert read(Reading(gate(), TurnReport()), [*first, *last, TextPiece("."), TurnEnded(None)]) == [
        AnswerText("I look. ", "commentary"),
        AnswerText("<", "commentary"),
        AnswerMessageEnded("commentary"),
        AnswerText("So: done. "),
        AnswerText("<", "final_answer"),
        AnswerMessageEnded("final_answer"),
        AnswerText("."),
    ]


def test_a_stream_that_failed_is_an_answer_with_an_error() -> None:
    gone = BackendError("gone")
    reading = Reading(gate(), TurnReport())
    assert read(reading, [TextPiece("I lo")], gone) == [AnswerText("I lo")]
    assert reading.answer.error is gone


@pytest.mark.parametrize("hold", [Hold.FREE, Hold.REQUIRED, Hold.FORMAT, Hold.SHOWN])
@given(
    fragments=st.lists(st.sampled_from([READ_A, READ_B, BROKEN, "I look. ", "\n", "<tool_call>", "{}"]), max_size=5),
    size=st.integers(1, 9),
)
def test_how_the_answer_is_cut_does_not_show_in_what_it_was(hold: Hold, fragments: list[str], size: int) -> None:
    text = "".join(fragments)
    whole, cut = Reading(gate(), TurnReport(), hold=hold), Reading(gate(), TurnReport(), hold=hold)
    left = [read(whole, [TextPiece(text)]), read(cut, pieces(text, size))]
    assert _joined(left[0]) == _joined(left[1])
    assert _joined(whole.answer.held) == _joined(cut.answer.held)
    assert (whole.answer.hold, whole.answer.calls) == (cut.answer.hold, cut.answer.calls)


def _joined(events: Sequence[TurnEvent]) -> list[object]:
    """With adjacent text as one."""
    joined: list[object] = []
    for event in events:
        if isinstance(event, AnswerText) and joined and isinstance(joined[-1], str):
            joined[-1] += event.text
        else:
            joined.append(event.text if isinstance(event, AnswerText) else event)
    return joined
