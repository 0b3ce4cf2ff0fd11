"""One answer, read by itself: what leaves while it comes, and what it was in the end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from parser import ToolRegistry
from prompts import MASK, PROFILES, PastCall, Text, ToolResult, Transcript, UserTurn
from proxy.contracts import (
    AnswerMessageEnded,
    AnswerText,
    BackendEvent,
    MessageEnded,
    MessagePhase,
    Reasoning,
    ReasoningEnded,
    ReasoningItemEnded,
    ReasoningPiece,
    TextPiece,
    ToolCallEnded,
    ToolCallStarted,
    TurnEnded,
    TurnEvent,
)
from proxy.errors import BackendError
from proxy.tokens import CHARACTERS_PER_TOKEN
from proxy.turn import CallRelease, Fate, FixedHabit, KeyMode, Reason, Ruling, Speaker, TurnOptions, TurnReport
from proxy.turn.blocks import unreadable
from proxy.turn.outlet import Said
from proxy.turn.passed_calls import Stop
from proxy.turn.turn_key import TurnKey
from proxy.turn.verdict import Answer, Ending
from tests.proxy.turn.playing import BROKEN, READ_A, READ_B, TOOLS, planned, read, reading_of
from tests.support.memory_backend import USAGE, pieces

KEY = "7qhvxmrtbz"
KEYED = TurnKey(KeyMode.AUTO, KEY, Speaker("", "m"), FixedHabit())


def test_text_leaves_as_it_comes_and_the_answer_knows_that_it_was_seen() -> None:
    reading = reading_of()
    assert reading.receive([TextPiece("I "), TextPiece("look.")]) == [AnswerText("I look.")]
    assert reading.receive([MessageEnded(), TurnEnded(USAGE)]) == [AnswerMessageEnded()]
    assert reading.finish() == []
    assert reading.answer == Answer(said=Said(shown=True))
    assert reading.spent.counted == USAGE
    assert (reading.end.stop, reading.end.goes_on) == (None, False)


def test_a_batch_is_read_in_its_order() -> None:
    reading = reading_of()
    batch: list[BackendEvent] = [
        TextPiece("I "),
        TextPiece("look."),
        MessageEnded(),
        TextPiece("So: "),
        TextPiece("done."),
    ]
    assert reading.receive(batch) == [AnswerText("I look."), AnswerMessageEnded(), AnswerText("So: done.")]
    assert reading.receive([]) == []


def test_what_was_read_is_counted_and_the_tokens_are_estimated() -> None:
    reading = reading_of(planned(ToolRegistry()))
    assert (reading.spent.characters, reading.spent.tokens, reading.spent.counted) == (0, 0, None)
    for piece, tokens in (("x" * (CHARACTERS_PER_TOKEN - 1), 0), ("x", 1), ("x" * CHARACTERS_PER_TOKEN, 2)):
        reading.receive([TextPiece(piece)])
        assert reading.spent.tokens == tokens
    assert reading.spent.characters == 2 * CHARACTERS_PER_TOKEN


def test_a_held_answer_says_why_and_what_is_held() -> None:
    report = TurnReport()
    reading = reading_of(report=report)
    assert read(reading, [TextPiece(f"I look. {BROKEN}")]) == [AnswerText("I look. ")]
    answer = reading.answer
    assert answer.malformed
    assert report.counts["refused"] == {answer.malformed.problem: 1}
    assert (answer.kept_for, answer.kept, answer.said.shown) == (Reason.MALFORMED, (), True)
    assert answer.lost, "what is no quotation is not shown"


def test_words_that_began_as_a_result_have_left_once_a_call_comes() -> None:
    done = (PastCall("c", "read_note", "{}"), ToolResult("c", (Text("A note"),)))
    plan = planned(transcript=Transcript((UserTurn((Text("Read it."),)), *done)))
    reading = reading_of(replace(plan, options=TurnOptions(profile=PROFILES["small"])), keep_for=Reason.ECHO)
    assert reading.receive([TextPiece("A\n")]) == []
    assert reading.receive([TextPiece(f"{READ_A}{READ_B}")])[0] == AnswerText("A\n")
    assert (reading.answer.said.shown, reading.answer.said.beginning) == (True, "A\n")


def test_what_the_model_wrote_is_kept_where_it_must_be_json() -> None:
    reading = reading_of(keep_for=Reason.OUTPUT_INVALID)
    assert read(reading, pieces('{"a": 1}', 3)) == []
    assert reading.answer.written == '{"a": 1}'
    assert not reading.answer.empty
    required = reading_of(keep_for=Reason.CALL_MISSING)
    assert read(required, pieces('{"a": 1}', 3)) == []
    assert required.answer == Answer(kept_for=Reason.CALL_MISSING, kept=required.answer.kept)


@pytest.mark.parametrize("tools", [True, False])
def test_behind_a_stop_string_nothing_is_wanted_at_once(tools: bool) -> None:
    reading = reading_of(planned(TOOLS if tools else ToolRegistry(), stop=("END",)))
    assert reading.receive([TextPiece("One. END and")]) == [AnswerText("One. ")]
    assert reading.end.stop == Stop("a stop string came", winds_down=True)
    assert reading.receive([TextPiece(f" more {READ_A}")]) == []
    assert reading.end.goes_on
    assert reading.finish() == []
    assert reading.answer == Answer(said=Said(shown=True, beginning="One. "), ending=Ending(stop="END"))


@pytest.mark.parametrize(
    ("behind", "goes_on"), [("", False), (" \n", False), ("So.", True), (READ_B, True), (f"\n{READ_B}\n", True)]
)
@pytest.mark.parametrize("at_once", [True, False])
def test_whether_a_model_goes_on_behind_the_one_call_is_known(behind: str, goes_on: bool, at_once: bool) -> None:
    reading = reading_of(planned(parallel=False))
    for text in [READ_A + behind] if at_once else [READ_A, *behind]:
        reading.receive([TextPiece(text)])
    assert reading.end.goes_on is goes_on


CUT, GONE = TurnEnded(None, "content_filter"), BackendError("gone")


@pytest.mark.parametrize(
    ("tag", "is_half"),
    [("<", False), ("<t", True), ("<tool_c", True), ("<tool_call", True), ("<tool_call>", True),
     ("<tool_call><func", True), ("<tool_call>\n<function=read_n", True), ("<tool_call> <b", False)],
)  # fmt: skip
@pytest.mark.parametrize("written", ["I use ", '{"a": 1} '])
def test_half_a_tag_is_text_unless_the_answer_was_cut_in_it(tag: str, is_half: bool, written: str) -> None:
    """One character of it may be any."""
    for end, error in ((CUT, None), (TurnEnded(None), GONE), (TurnEnded(None), None)):
        report = TurnReport()
        keep_for = None if written == "I use " else Reason.OUTPUT_INVALID
        reading = reading_of(report=report, keep_for=keep_for)
        events: list[BackendEvent] = [TextPiece(written + tag)]
        left = read(reading, [*events, end] if error is None else events, error)
        out = is_half and (end is CUT or error is GONE)
        assert reading.answer.lost == ((unreadable(""),) if out else ())
        assert report.counts["taken_out"] == ({"block": 1} if out else {})
        assert reading.answer.rulings == ((Ruling(Fate.GONE, Reason.CUT),) if out else ())
        shown = left if keep_for is None else reading.answer.kept
        assert _joined(shown) == [written if out else written + tag]
        assert reading.answer.written == ("" if keep_for is None else written + tag)


def test_a_block_that_cannot_be_read_is_kept_with_the_text_that_must_be_json() -> None:
    """It may be in one of its strings."""
    text = '{"a": "<tool_call>{x}</tool_call>"}'
    reading = reading_of(keep_for=Reason.OUTPUT_INVALID)
    assert read(reading, [TextPiece(text)]) == []
    assert (reading.answer.written, reading.answer.lost) == (text, (unreadable(""),))
    early = reading_of(keep_for=Reason.OUTPUT_INVALID, early=True)
    assert _joined(read(early, [MessagePhase("final_answer"), TextPiece(text), MessageEnded()])) == [text]
    assert (early.answer.written, early.answer.lost, early.answer.said.shown) == (text, (), True)


def test_json_that_leaves_early_has_the_phase_of_its_message() -> None:
    early = reading_of(keep_for=Reason.OUTPUT_INVALID, early=True)
    left = read(early, [MessagePhase("final_answer"), *pieces('{"a": 1}', 4), MessageEnded()])
    assert left == [AnswerText('{"a"', "final_answer"), AnswerText(": 1}", "final_answer")]


def test_so_has_it_no_key() -> None:
    early = reading_of(planned(key=KEYED), keep_for=Reason.OUTPUT_INVALID, early=True)
    assert _joined(read(early, pieces(f'{{"a": "{KEY}"}}', 4))) == [f'{{"a": "{MASK}"}}']


def test_text_behind_a_call_behind_json_that_left_early_is_shown() -> None:
    early = reading_of(keep_for=Reason.OUTPUT_INVALID, early=True)
    left = read(early, [TextPiece(f'{{"a": 1}}\n{READ_A}So: {BROKEN}done.')])
    assert [text for text in _joined(left) if isinstance(text, str)] == ['{"a": 1}', "So: done."]
    assert early.answer.lost == (unreadable("read_note"),)


def test_reasoning_leaves_by_its_parts_without_the_key() -> None:
    """What may be the beginning of a key waits for the end of its part, or of the stream."""
    reading = reading_of(planned(key=KEYED))
    thoughts: list[BackendEvent] = [
        ReasoningPiece(1, f"a {KEY[:4]}"),
        ReasoningPiece(2, KEY[4:]),
        ReasoningPiece(2, " 7qhv"),
    ]
    assert read(reading, [*thoughts, ReasoningEnded()]) == [
        Reasoning(1, "a "),
        Reasoning(1, KEY[:4]),
        Reasoning(2, KEY[4:]),
        Reasoning(2, " "),
        Reasoning(2, "7qhv"),
        ReasoningItemEnded(),
    ]
    assert read(reading_of(planned(key=KEYED)), [ReasoningPiece(3, "3b")]) == [Reasoning(3, "3b")]


def test_reasoning_does_not_interrupt_a_call_that_is_leaving() -> None:
    reading = reading_of(planned(release=CallRelease.LIVE))
    left = read(reading, [TextPiece(READ_A[:50]), ReasoningPiece(0, "hm"), TextPiece(READ_A[50:])])
    assert isinstance(left[0], ToolCallStarted)
    assert left[-2:] == [ToolCallEnded(), Reasoning(0, "hm")]


def test_reasoning_behind_a_call_that_left_live_leaves_at_once() -> None:
    reading = reading_of(planned(release=CallRelease.LIVE))
    reading.receive(pieces(READ_A, 4))
    assert reading.receive([ReasoningPiece(0, "hm")]) == [Reasoning(0, "hm")]


def test_text_leaves_with_the_phase_of_its_message() -> None:
    """Also where the parser held some of it back, or the phase came last."""
    first: list[BackendEvent] = [MessagePhase("commentary"), TextPiece("I look. <"), MessageEnded()]
    last: list[BackendEvent] = [TextPiece("So: done. <"), MessagePhase("final_answer"), MessageEnded()]
    assert read(reading_of(), [*first, *last, TextPiece("."), TurnEnded(None)]) == [
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
    reading = reading_of()
    assert read(reading, [TextPiece("I lo")], gone) == [AnswerText("I lo")]
    assert reading.answer.ending.error is gone


@pytest.mark.parametrize("keep_for", [None, Reason.CALL_MISSING, Reason.OUTPUT_INVALID, Reason.SAID])
@given(
    fragments=st.lists(st.sampled_from([READ_A, READ_B, BROKEN, "I look. ", "\n", "<tool_call>", "{}"]), max_size=5),
    size=st.integers(1, 9),
)
def test_how_the_answer_is_cut_does_not_show_in_what_it_was(
    keep_for: Reason | None, fragments: list[str], size: int
) -> None:
    text = "".join(fragments)
    whole, cut = (reading_of(keep_for=keep_for) for _ in range(2))
    left = [read(whole, [TextPiece(text)]), read(cut, pieces(text, size))]
    assert _joined(left[0]) == _joined(left[1])
    assert _joined(whole.answer.kept) == _joined(cut.answer.kept)
    assert whole.answer.rulings == cut.answer.rulings


def _joined(events: Sequence[TurnEvent]) -> list[object]:
    """With adjacent text as one."""
    joined: list[object] = []
    for event in events:
        if isinstance(event, AnswerText) and joined and isinstance(joined[-1], str):
            joined[-1] += event.text
        else:
            joined.append(event.text if isinstance(event, AnswerText) else event)
    return joined
