"""One turn as people see it: how it stands, and what became of each block that its model wrote."""

from __future__ import annotations

import pytest

from proxy.contracts import AnswerText, TurnFailed, TurnFinished, Usage
from proxy.errors import ApiError, BackendError
from proxy.ingress.inspect import KeptWords, TurnRecord, TurnState
from proxy.ingress.inspect.record import MOST_MARKS
from proxy.turn import BlockNote, Fate, Reason, Ruling

GOOD = Ruling(Fate.CALL, Reason.GOOD)


def record(*, words: bool = False) -> TurnRecord:
    made = TurnRecord("t", at=100.0, began=1.0, route="/responses", client="c", model="m")
    if words:
        made.kept = KeptWords("me", b"{}", lambda size: None)
    return made


def note(ruling: Ruling = GOOD, *, attempt: int = 0, **members: object) -> BlockNote:
    return BlockNote(attempt=attempt, ruling=ruling, name="read", **members)  # type: ignore[arg-type]


def marks_of(turn: TurnRecord, *notes: BlockNote, calls: int) -> list[tuple[str, tuple[str, ...]]]:
    """The marks once the turn is over, where so many calls have left."""
    for each in notes:
        turn.report.notes.append(each)
        turn.judged(each, "<tool_call>")
    turn.report.calls += ["read"] * calls
    turn.close(9.0)
    return [(mark.mark.value, mark.why) for mark in turn.marks]


@pytest.mark.parametrize(
    ("written", "mark", "why"),
    [
        (note(), "valid", ()),
        (note(written="read"), "valid", ()),
        (note(written="Read"), "repaired", ("renamed from Read",)),
        (note(rules=("trailing_comma",)), "repaired", ("trailing comma",)),
        (note(Ruling(Fate.CALL, Reason.ARGUMENTS_MISFIT)), "does not fit", ()),
        (note(Ruling(Fate.CALL, Reason.CUT)), "cut", ()),
    ],
)
def test_a_call_that_left_says_how(written: BlockNote, mark: str, why: tuple[str, ...]) -> None:
    assert marks_of(record(), written, calls=1) == [(mark, why)]


def test_a_call_of_an_answer_that_did_not_leave_was_discarded() -> None:
    first, second = note(), note(attempt=1)
    assert [mark for mark, _ in marks_of(record(), first, second, calls=1)] == ["discarded", "valid"]


def test_a_block_that_is_no_call_says_why_and_the_models_words_only_where_they_are_kept() -> None:
    broken = note(Ruling(Fate.GONE, Reason.MALFORMED), problem="the secret is broken")
    ((mark, why),) = marks_of(record(), broken, calls=0)
    assert mark == "refused"
    assert why
    assert "secret" not in str(why)
    assert marks_of(record(words=True), broken, calls=0) == [(mark, (*why, "the secret is broken"))]


def test_while_the_turn_runs_the_calls_of_its_newest_answer_count_as_leaving() -> None:
    turn = record()
    for attempt in (0, 1):
        turn.judged(note(attempt=attempt), "")
    turn.report.again.append(Reason.MALFORMED)
    assert [mark.mark.value for mark in turn.marks] == ["discarded", "valid"]


def test_an_answer_of_nothing_but_tags_has_so_many_marks_and_no_more() -> None:
    turn = record()
    for _ in range(2 * MOST_MARKS):
        turn.judged(note(), "")
    assert len(turn.marks) == MOST_MARKS


@pytest.mark.parametrize(
    ("event", "state", "error"),
    [
        (TurnFinished(Usage()), "done", None),
        (TurnFinished(Usage(), "max_output_tokens"), "incomplete", None),
        (
            TurnFailed(BackendError("Slow down.", status=429, code="rate_limit_exceeded")),
            "failed",
            "rate_limit_exceeded",
        ),
        (None, "left", None),
    ],
)
def test_its_summary_says_how_it_ended(event: TurnFinished | TurnFailed | None, state: str, error: str | None) -> None:
    turn = record()
    assert turn.summary["state"] == "running"
    assert (turn.summary["said"], turn.summary["seconds"], turn.summary["first_seconds"]) == (None, None, None)
    if event is not None:
        turn.saw([event], 1.25)
    turn.close(3.5)
    turn.close(99.0)  # only the first time tells
    summary = turn.summary
    assert (summary["state"], summary["error"], summary["seconds"]) == (state, error, 2.5)
    assert summary["first_seconds"] == (None if event is None else 0.25)
    assert summary["said"] == ("answered" if isinstance(event, TurnFinished) else None)


def test_a_request_that_is_refused_has_failed_and_nothing_of_it_left() -> None:
    turn = record(words=True)
    turn.left([{"type": "response.created"}], 1.0)
    turn.left_none(ApiError("No.", status=400, code="bad"))
    turn.close(2.0)
    assert (turn.state, turn.summary["error"]) == (TurnState.FAILED, "bad")
    assert turn.words is not None
    assert turn.words.left == []


def test_whoever_follows_hears_of_each_block_once_and_of_the_end() -> None:
    turn, told = record(), list[int]()
    turn.changed = lambda: told.append(len(turn.blocks))
    turn.saw([AnswerText("Hi")], 1.0)
    turn.judged(note(), "")
    turn.saw([AnswerText("Hi")], 1.0)
    turn.saw([AnswerText("Hi")], 1.0)
    turn.close(2.0)
    assert told == [1, 1]


def test_dropped_words_leave_names_and_numbers() -> None:
    turn = record(words=True)
    turn.question = "What is in the note?"
    turn.judged(note(), "<tool_call>secret</tool_call>")
    turn.drop_words()
    assert (turn.words, turn.dropped, turn.question) == (None, True, "")
    assert [(mark.name, mark.block) for mark in turn.marks] == [("read", "")]
    assert turn.summary["words"] is False
