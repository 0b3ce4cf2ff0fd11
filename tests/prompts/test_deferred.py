from __future__ import annotations

from prompts import Deferred


def test_it_is_made_once_and_not_before_somebody_looks() -> None:
    made: list[str] = []

    def make() -> list[str]:
        made.append("made")
        return ["a", "b"]

    deferred = Deferred(make)
    assert made == []
    assert [*deferred, len(deferred), deferred[1], deferred[:1]] == ["a", "b", 2, "b", ("a",)]
    assert made == ["made"]


def test_it_equals_every_sequence_of_the_same_elements() -> None:
    deferred = Deferred(lambda: [1, 2])
    assert deferred == (1, 2)
    assert deferred == Deferred(lambda: (1, 2))
    assert deferred != (1,)
    assert deferred != 1
    assert (hash(deferred), repr(deferred)) == (hash((1, 2)), "(1, 2)")
