"""What is told of a turn for logs and metrics: each thing as often as it happened."""

from __future__ import annotations

from prompts import ToolChoice
from proxy.contracts import Lane
from proxy.turn import BlockNote, Fate, Reason, Ruling, TurnReport
from tests.proxy.turn.playing import ask, play

GOOD = BlockNote(attempt=0, ruling=Ruling(Fate.CALL, name="read_note"), name="read_note")
QUOTED = BlockNote(attempt=0, ruling=Ruling(Fate.TEXT, Reason.QUOTED), name="read_note")
DOUBTED = BlockNote(attempt=0, ruling=Ruling(Fate.AGAIN, Reason.NO_KEY), name="read_note")


def test_what_happens_twice_is_counted_twice() -> None:
    report = TurnReport()
    for _ in range(2):
        report.take_call("exact", ["trailing comma"], GOOD, "")
        report.pass_on(["read_note"])
        report.refuse("quoted", QUOTED, "")
        report.ask_again(Reason.NO_KEY)
        report.leave_out(3)
        report.give_up_check("the check goes too deep")
        report.take_out(Reason.HEADER)
        report.show_markup("quoted")
        report.pair({"orphan": 2})
        report.let_misfit("search")
    assert (report.tiers, report.repairs, report.refused) == ({"exact": 2}, {"trailing comma": 2}, {"quoted": 2})
    assert (report.calls, report.again) == (["read_note"] * 2, [Reason.NO_KEY] * 2)
    assert (report.truncated, report.unchecked) == (6, {"the check goes too deep": 2})
    assert (report.taken_out, report.markup) == ({"header": 2}, {"quoted": 2})
    assert (report.paired, report.misfits) == ({"orphan": 4}, {"search": 2})


def test_who_looks_on_is_told_of_each_block_with_what_was_made_of_it() -> None:
    """Also of one that is only doubted, which is counted nowhere."""
    told: list[tuple[object, ...]] = []

    class Observer:
        def judged(self, note: BlockNote, block: str) -> None:
            told.append((note.reason, block))

    report = TurnReport(observer=Observer())
    report.take_call("exact", ["trailing comma"], GOOD, "<a>")
    report.refuse("quoted", QUOTED, "<b>")
    report.note(DOUBTED, "<c>")
    assert told == [(Reason.GOOD, "<a>"), (Reason.QUOTED, "<b>"), (Reason.NO_KEY, "<c>")]
    assert report.refused == {"quoted": 1}
    assert report.notes == [GOOD, QUOTED, DOUBTED]


async def test_the_tools_on_offer_are_those_that_the_client_chose() -> None:
    outcome = await play("Hello.", request=ask(choice=ToolChoice(names=("search",))))
    assert outcome.report.tools == ("search",)


def test_a_client_is_told_each_thing_once() -> None:
    report = TurnReport()
    for sentence in ("A.", "B.", "A."):
        report.warn(sentence)
    assert report.warnings == ["A.", "B."]


def test_how_the_conversation_was_found_and_spoilt_is_what_was_told_first() -> None:
    report = TurnReport()
    report.go_on(None, None)
    assert (report.lane, report.spoilt) == (None, None)
    report.go_on(Lane(continued=False, why="new"), "refused")
    report.go_on(Lane(continued=True, why="continued"), "failed")
    assert (report.lane, report.spoilt) == (Lane(continued=False, why="new"), "refused")
