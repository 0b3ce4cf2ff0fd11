"""What is told of a turn for logs and metrics: each thing as often as it happened."""

from __future__ import annotations

from prompts import ToolChoice
from proxy.turn import BlockNote, Count, Fate, Reason, Ruling, TurnReport
from tests.proxy.turn.playing import ask, play

GOOD = BlockNote(attempt=0, ruling=Ruling(Fate.CALL, name="read_note"), name="read_note")
QUOTED = BlockNote(attempt=0, ruling=Ruling(Fate.TEXT, Reason.QUOTED), name="read_note")
DOUBTED = BlockNote(attempt=0, ruling=Ruling(Fate.AGAIN, Reason.NO_KEY), name="read_note")


def test_what_happens_twice_is_counted_twice() -> None:
    report = TurnReport()
    for _ in range(2):
        report.count(Count.REPAIRED, "trailing comma", "single quotes")
        report.calls.append("read_note")
        report.let_misfit("search")
    assert report.counts == {"repaired": {"trailing comma": 2, "single quotes": 2}, "misfits": {"search": 2}}
    assert report.calls == ["read_note"] * 2


def test_who_looks_on_is_told_of_each_block_with_what_was_made_of_it() -> None:
    told: list[tuple[object, ...]] = []

    class Observer:
        def judged(self, note: BlockNote, block: str) -> None:
            told.append((note.reason, block))

    report = TurnReport(observer=Observer())
    for note, block in ((GOOD, "<a>"), (QUOTED, "<b>"), (DOUBTED, "<c>")):
        report.note(note, block)
    assert told == [(Reason.GOOD, "<a>"), (Reason.QUOTED, "<b>"), (Reason.NO_KEY, "<c>")]
    assert report.notes == [GOOD, QUOTED, DOUBTED]


async def test_the_tools_on_offer_are_those_that_the_client_chose() -> None:
    outcome = await play("Hello.", request=ask(choice=ToolChoice(names=("search",))))
    assert outcome.report.tools == ("search",)


def test_a_client_is_told_each_thing_once() -> None:
    report = TurnReport()
    for sentence in ("A.", "B.", "A."):
        report.warn(sentence)
    assert report.warnings == ["A.", "B."]
