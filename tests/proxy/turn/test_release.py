"""What leaves at once, what is held, and what becomes of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.contracts import AnswerMessageEnded, AnswerText, ToolCallEnded, ToolCallStarted, TurnEvent
from proxy.turn.release import KEEPING, NOT_HOLDING, TRANSITIONS, Cue, Hold, Release

TEXT = AnswerText("Well.")
CALL = (ToolCallStarted("call_1", "read_note"), ToolCallEnded())
CALLS = (Cue.CALL, Cue.JOINT_CALL, Cue.REPEAT, Cue.MISFIT)
HOLDING = sorted(set(Hold) - NOT_HOLDING, key=str)


def holding(hold: Hold) -> Release:
    """One that holds a text."""
    release = Release(hold)
    release.keep(TEXT)
    return release


def test_an_answer_that_nothing_speaks_against_is_not_held() -> None:
    release = Release()
    assert not release.holds
    assert release.meet(Cue.CALL, CALL) == list(CALL)
    assert release.hold is Hold.ANSWERED


@pytest.mark.parametrize("hold", [Hold.REQUIRED, Hold.FORMAT, Hold.DOUBTFUL, Hold.REPEATED])
def test_a_good_call_sets_free_what_was_held_and_leaves_behind_it(hold: Hold) -> None:
    release = holding(hold)
    assert release.meet(Cue.CALL, CALL) == [TEXT, *CALL]
    assert (release.hold, release.holds, release.held) == (Hold.ANSWERED, False, ())


def test_text_that_would_say_again_what_was_shown_does_not_leave_with_a_call() -> None:
    assert holding(Hold.SHOWN).meet(Cue.CALL, CALL) == list(CALL)
    release = holding(Hold.SHOWN)
    assert release.meet(Cue.JOINT_CALL, CALL) == []
    assert release.held == CALL


# An echo is over before a block.
@pytest.mark.parametrize("hold", sorted(set(Hold) - {Hold.ANSWERED, Hold.MISFIT, Hold.ECHO}, key=str))
def test_calls_that_go_together_wait_for_the_end_of_the_answer(hold: Hold) -> None:
    release = Release(hold)
    assert release.meet(Cue.JOINT_CALL, CALL) == []
    assert release.meet(Cue.JOINT_CALL, CALL) == []
    assert release.hold is Hold.STRICT
    assert release.meet(Cue.END) == [*CALL, *CALL]


@pytest.mark.parametrize("hold", sorted(set(HOLDING) - {Hold.SHOWN}, key=str))
def test_from_a_call_that_does_not_fit_on_all_is_held_whatever_follows(hold: Hold) -> None:
    release = holding(hold)
    for cue in (Cue.MISFIT, Cue.CALL, Cue.JOINT_CALL, Cue.DOUBT, Cue.END):
        assert release.meet(cue, CALL if cue in CALLS else ()) == []
    assert release.hold is Hold.MISFIT
    assert release.held == (TEXT, *CALL, *CALL, *CALL)


@pytest.mark.parametrize("hold", sorted(set(HOLDING) - {Hold.STRICT}, key=str))
def test_the_end_of_an_answer_sets_nothing_else_free(hold: Hold) -> None:
    release = holding(hold)
    assert release.meet(Cue.END) == []
    assert release.held == (TEXT,)


@pytest.mark.parametrize(("cue", "hold"), [(Cue.DOUBT, Hold.DOUBTFUL), (Cue.REPEAT, Hold.REPEATED)])
def test_what_casts_doubt_on_a_free_answer_holds_it(cue: Cue, hold: Hold) -> None:
    release = Release()
    release.meet(cue)
    assert (release.hold, release.holds) == (hold, True)


@pytest.mark.parametrize("cue", [Cue.DOUBT, Cue.END])
def test_once_a_call_has_left_nothing_is_held_any_more(cue: Cue) -> None:
    release = Release()
    release.meet(Cue.CALL, CALL)
    release.meet(cue)
    assert release.hold is Hold.ANSWERED
    assert release.meet(Cue.CALL, CALL) == list(CALL)


@pytest.mark.parametrize("hold", HOLDING)
def test_the_first_reason_to_hold_an_answer_stays_the_reason(hold: Hold) -> None:
    release = Release(hold)
    release.meet(Cue.DOUBT)
    release.meet(Cue.REPEAT, CALL)
    assert release.hold is hold
    assert release.held == CALL


def test_the_end_of_a_message_that_is_not_there_is_not_held() -> None:
    release = Release(Hold.REQUIRED)
    for event in (AnswerMessageEnded(), TEXT, AnswerMessageEnded()):
        release.keep(event)
    assert release.held == (TEXT, AnswerMessageEnded())


def test_whatever_is_kept_is_held() -> None:
    """A state that keeps events and lets text pass would turn their order round."""
    assert {hold for hold, move in TRANSITIONS.values() if move in KEEPING}.isdisjoint(NOT_HOLDING)


@given(
    st.sampled_from(sorted(Hold, key=str)),
    st.lists(st.sampled_from(sorted(Cue, key=str)) | st.just(None), max_size=12),
)
def test_events_leave_once_and_in_order_and_none_is_lost_but_where_it_would_repeat_another(
    begin: Hold, cues: list[Cue | None]
) -> None:
    release, left, came = Release(begin), list[TurnEvent](), list[TurnEvent]()
    for number, cue in enumerate(cues):
        if cue is None:
            text = AnswerText(str(number))
            came.append(text)
            if release.holds:
                release.keep(text)
            else:
                left.append(text)
        else:
            events = (ToolCallStarted(str(number), "read_note"),) if cue in CALLS else ()
            came += events
            if release.hold is Hold.SHOWN and cue in {Cue.CALL, Cue.JOINT_CALL}:
                came = [*left, *events]
            left += release.meet(cue, events)
    assert [*left, *release.held] == came
