"""What of an answer leaves at once, and what is kept back: each reason by itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts import MASK
from proxy.contracts import (
    AnswerMessageEnded,
    AnswerText,
    Reasoning,
    ToolCallArguments,
    ToolCallEnded,
    ToolCallStarted,
    TurnEvent,
)
from proxy.turn import Reason, TurnReport
from proxy.turn.outlet import Outlet

TEXT = AnswerText("Well.")
START, END = ToolCallStarted("call_1", "read_note"), ToolCallEnded()
CALL = (START, END)
KEY = "7qhvxmrtbz"
UNFREED = (Reason.JOINED, Reason.ARGUMENTS_MISFIT)
FREED = tuple(reason for reason in Reason if reason not in {*UNFREED, Reason.SAID})


def outlet(reason: Reason | None = None, key: str | None = None) -> Outlet:
    return Outlet(TurnReport(), reason, key)


def keeping(reason: Reason) -> Outlet:
    """With text in it."""
    kept = outlet(reason)
    kept.put(TEXT)
    assert (kept.take(), kept.reason is None) == ([], False)
    return kept


def test_an_answer_that_nothing_speaks_against_is_not_kept() -> None:
    free = outlet()
    free.put(TEXT)
    free.pass_call(CALL)
    assert free.take() == [TEXT, *CALL]
    assert (free.take(), free.is_over) == ([], True)


def test_what_is_kept_of_a_text_is_one_text() -> None:
    kept = keeping(Reason.ECHO)
    kept.put(AnswerText(" Then."))
    assert kept.kept_text == "Well. Then."


@pytest.mark.parametrize("reason", FREED)
def test_a_good_call_takes_along_what_was_kept(reason: Reason) -> None:
    kept = keeping(reason)
    kept.pass_call(CALL)
    assert kept.take() == [TEXT, *CALL]
    assert (kept.reason, kept.kept, kept.is_over) == (None, (), True)


@pytest.mark.parametrize("joined", [True, False])
def test_but_not_text_that_the_client_has_already(joined: bool) -> None:
    kept = keeping(Reason.SAID)
    kept.pass_call(CALL, joined=joined)
    assert ([*kept.kept], kept.take()) == (([*CALL], []) if joined else ([], [*CALL]))


@pytest.mark.parametrize("reason", [None, *FREED])
def test_calls_that_go_together_wait_for_the_end_of_the_answer(reason: Reason | None) -> None:
    kept = outlet(reason)
    for _ in range(2):
        kept.pass_call(CALL, joined=True)
    assert (kept.take(), kept.reason) == ([], Reason.JOINED)
    kept.end()
    assert kept.take() == [*CALL, *CALL]
    kept.pass_call(CALL, joined=True)
    assert kept.take() == [*CALL], "one has left"


@pytest.mark.parametrize("reason", [*FREED, Reason.JOINED])
def test_from_a_call_that_does_not_fit_on_all_is_kept_whatever_follows(reason: Reason) -> None:
    kept = keeping(reason)
    kept.keep(Reason.ARGUMENTS_MISFIT, CALL)
    kept.pass_call(CALL)
    kept.keep(Reason.MALFORMED)
    kept.end()
    assert (kept.take(), kept.reason, kept.kept) == ([], Reason.ARGUMENTS_MISFIT, (TEXT, *CALL, *CALL))


@pytest.mark.parametrize("reason", [*FREED, Reason.SAID, Reason.ARGUMENTS_MISFIT])
def test_the_end_of_an_answer_frees_nothing_else(reason: Reason) -> None:
    kept = keeping(reason)
    kept.end()
    assert (kept.take(), kept.kept) == ([], (TEXT,))


@pytest.mark.parametrize("reason", [*FREED, Reason.SAID, Reason.JOINED])
def test_the_first_reason_to_keep_an_answer_stays_the_reason(reason: Reason) -> None:
    kept = outlet(reason)
    kept.keep(Reason.MALFORMED)
    kept.keep(Reason.REPEATED, CALL)
    assert (kept.reason, kept.kept) == (reason, CALL)


def test_once_a_call_has_left_nothing_is_kept_any_more() -> None:
    over = outlet()
    over.pass_call(CALL)
    over.keep(Reason.MALFORMED)
    over.put(TEXT)
    assert over.take() == [*CALL, TEXT]


def test_what_is_no_echo_leaves() -> None:
    kept = keeping(Reason.ECHO)
    kept.speak()
    assert (kept.take(), kept.reason) == ([TEXT], None)
    other = keeping(Reason.CALL_MISSING)
    other.speak()
    assert other.kept == (TEXT,)


def test_the_end_of_a_message_that_is_not_there_is_not_kept() -> None:
    kept = outlet(Reason.CALL_MISSING)
    for event in (AnswerMessageEnded(), TEXT, AnswerMessageEnded()):
        kept.put(event)
    assert kept.kept == (TEXT, AnswerMessageEnded())


def test_calls_are_counted_when_they_leave() -> None:
    report = TurnReport()
    kept = Outlet(report, Reason.MALFORMED)
    kept.keep(Reason.REPEATED, CALL)
    assert report.calls == []
    kept.pass_call(CALL)
    assert report.calls == ["read_note"] * 2


@given(
    st.none() | st.sampled_from(sorted(Reason)),
    st.lists(st.sampled_from(["text", "call", "joined", "keep", "speak", "end"]), max_size=12),
)
def test_events_leave_once_and_in_order_and_none_is_lost_but_what_would_repeat_another(
    begin: Reason | None, steps: list[str]
) -> None:
    kept, left, came = outlet(begin), list[TurnEvent](), list[TurnEvent]()
    for number, step in enumerate(steps):
        said, call = AnswerText(str(number)), ToolCallStarted(str(number), "read_note")
        match step:
            case "text":
                came.append(said)
                kept.put(said)
            case "call" | "joined":
                came = [*(left if kept.reason is Reason.SAID else came), call]
                kept.pass_call([call], joined=step == "joined")
            case "keep":
                kept.keep(Reason.MALFORMED)
            case "speak":
                kept.speak()
            case _:
                kept.end()
        left += kept.take()
    assert [*left, *kept.kept] == came


# A call that leaves while it is written


def test_reasoning_waits_for_the_end_of_a_call_and_for_nothing_else() -> None:
    leaving = outlet()
    first, second, third = (Reasoning(0, text) for text in "abc")
    leaving.think(first)
    leaving.begin_call(0, START)
    leaving.think(second)
    leaving.feed_call("{}")
    leaving.end_call(END)
    leaving.think(third)
    assert leaving.take() == [first, START, ToolCallArguments("{}"), END, second, third]
    kept = keeping(Reason.CALL_MISSING)
    kept.think(first)
    assert kept.take() == [first]


def test_a_key_is_masked_in_its_arguments_however_they_are_cut() -> None:
    leaving = outlet(key=KEY)
    leaving.begin_call(0, START)
    for char in f'{{"a": "{KEY}"}}{KEY[:9]}':
        leaving.feed_call(char)
    leaving.end_call(END)
    left = leaving.take()
    assert "".join(event.text for event in left if isinstance(event, ToolCallArguments)) == f'{{"a": "{MASK}"}}{MASK}'
    assert left[-1] == END


def test_what_was_held_back_of_one_call_is_not_in_the_next() -> None:
    leaving = outlet(key=KEY)
    for index, text in enumerate([KEY[:3], KEY[3:]]):
        leaving.begin_call(index, START)
        assert leaving.leaving == index
        leaving.feed_call(text)
        leaving.end_call(END)
        assert leaving.leaving is None
    assert leaving.take() == [START, ToolCallArguments(KEY[:3]), END, START, ToolCallArguments(KEY[3:]), END]
