"""One answer, read by itself: what leaves while it comes, and what it was in the end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser import ToolRegistry, write_call
from prompts import PastCall, Text, ToolResult, Transcript, UserTurn
from proxy.contracts import (
    AnswerMessageEnded,
    AnswerText,
    BackendEvent,
    MessageEnded,
    Reasoning,
    ReasoningPiece,
    TextPiece,
    ToolCallArguments,
    ToolCallEnded,
    ToolCallStarted,
    TurnEnded,
    TurnEvent,
)
from proxy.errors import BackendError
from proxy.turn import CallRelease, TurnReport
from proxy.turn.call_key import KeyMode, NoHabits, TurnKey
from proxy.turn.calls import CallGate
from proxy.turn.reading import Reading
from proxy.turn.release import Hold
from proxy.turn.strictness import ToolSchemas
from proxy.turn.verdict import Answer
from tests.proxy.turn.playing import BROKEN, READ_A, READ_B, TOOLS, ask
from tests.support.memory_backend import USAGE, pieces

NO_KEY = TurnKey(KeyMode.OFF, None, "m", NoHabits())


def gate(registry: ToolRegistry = TOOLS, transcript: Transcript | None = None) -> CallGate:
    request = ask(registry=registry) if transcript is None else ask(registry=registry, transcript=transcript)
    schemas = ToolSchemas(registry, TurnReport())
    numbers = iter(range(1, 100))
    return CallGate(request, registry, mint=lambda prefix: f"{prefix}_{next(numbers)}", schemas=schemas, key=NO_KEY)


def read(reading: Reading, events: Sequence[BackendEvent], error: BackendError | None = None) -> list[TurnEvent]:
    left = [event for backend_event in events for event in reading.receive([backend_event])]
    return left + reading.finish(error)


def test_text_leaves_as_it_comes_and_the_answer_knows_that_it_was_seen() -> None:
    reading = Reading(gate(), TurnReport())
    assert reading.receive([TextPiece("I "), TextPiece("look.")]) == [AnswerText("I look.")]
    assert reading.receive([MessageEnded(), TurnEnded(USAGE)]) == [AnswerMessageEnded()]
    assert reading.finish() == []
    assert reading.answer == Answer(shown=True)
    assert reading.usage == USAGE


def test_a_call_leaves_whole() -> None:
    left = read(Reading(gate(), TurnReport()), pieces(READ_A, 3))
    assert left == [ToolCallStarted("call_1", "read_note"), ToolCallArguments('{"path": "a.md"}'), ToolCallEnded()]


def test_a_held_answer_says_why_and_what_is_held() -> None:
    reading = Reading(gate(), TurnReport())
    assert read(reading, [TextPiece(f"I look. {BROKEN}")]) == [AnswerText("I look. ")]
    answer = reading.answer
    assert (answer.hold, answer.held, answer.shown) == (Hold.DOUBTFUL, (), True)
    assert answer.malformed
    assert answer.lost, "what is no quotation is not shown"


def test_what_the_model_wrote_is_kept_where_it_must_be_json() -> None:
    reading = Reading(gate(), TurnReport(), hold=Hold.FORMAT)
    assert read(reading, pieces('{"a": 1}', 3)) == []
    assert reading.answer.written == '{"a": 1}'
    assert not reading.answer.empty


def test_a_call_that_goes_round_is_held_once() -> None:
    past = (PastCall("c", "read_note", '{"path":"a.md"}'), ToolResult("c", (Text("# A"),)))
    transcript = Transcript((UserTurn((Text("What is in a.md?"),)), *past, *past))
    reading = Reading(gate(transcript=transcript), TurnReport())
    assert read(reading, [TextPiece(READ_A)]) == []
    assert (reading.answer.repeated, reading.answer.calls) == ("read_note", 0)
    assert len(read(Reading(gate(transcript=transcript), TurnReport(), may_repeat=True), [TextPiece(READ_A)])) == 3


def test_undeclared_calls_are_counted_and_leave_nothing() -> None:
    reading = Reading(gate(), TurnReport())
    assert read(reading, [TextPiece(write_call("rm", "{}"))]) == []
    assert reading.answer == Answer(undeclared=1)


def test_one_call_is_enough_where_one_was_asked_for() -> None:
    reading = Reading(gate(), TurnReport(), parallel=False)
    assert len(reading.receive([TextPiece(READ_A + READ_B)])) == 3
    assert reading.stop


def test_reasoning_does_not_interrupt_a_call_that_is_leaving() -> None:
    reading = Reading(gate(), TurnReport(), release=CallRelease.LIVE)
    left = read(reading, [TextPiece(READ_A[:50]), ReasoningPiece(0, "hm"), TextPiece(READ_A[50:])])
    assert isinstance(left[0], ToolCallStarted)
    assert left[-2:] == [ToolCallEnded(), Reasoning(0, "hm")]


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
