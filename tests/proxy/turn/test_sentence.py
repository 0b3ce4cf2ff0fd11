from __future__ import annotations

import pytest

from prompts import PastCall, Text, ToolResult, Transcript, UserTurn
from proxy.turn import BlockNote, Fate, Reason, Ruling, TurnReport, fault_of, sentence_of

from .playing import ask, play


def note(reason: Reason, name: str = "search", fate: Fate = Fate.GONE, attempt: int = 0) -> BlockNote:
    return BlockNote(attempt=attempt, ruling=Ruling(fate, reason, name), name=name)


@pytest.mark.parametrize("reason", Reason)
@pytest.mark.parametrize("name", ["search", ""])
def test_each_reason_has_words_for_people(reason: Reason, name: str) -> None:
    told = fault_of(note(reason, name))
    assert "_" not in told
    assert not told.endswith(".")
    assert "  " not in told
    assert told == told.strip()


def test_of_two_equal_calls_the_one_of_the_later_answer_left() -> None:
    report = TurnReport(tools=("search",), calls=["search"], again=[Reason.ARGUMENTS_MISFIT])
    report.notes += [
        BlockNote(
            attempt=0,
            ruling=Ruling(Fate.AGAIN, Reason.ARGUMENTS_MISFIT, "search", then=Fate.CALL),
            name="search",
            problem="'query' is a required property",
        ),
        note(Reason.GOOD, fate=Fate.CALL, attempt=1),
    ]
    assert sentence_of(report) == (
        "asked again: the arguments did not fit search (query is missing), and the second answer did; called search"
    )


def test_what_arguments_hold_is_not_in_it() -> None:
    report = TurnReport(tools=("search",), calls=["search"])
    ruling = Ruling(Fate.CALL, Reason.ARGUMENTS_MISFIT, "search")
    problem = "'my secret' is not of type 'integer'"
    report.notes.append(BlockNote(attempt=0, ruling=ruling, name="search", problem=problem))
    assert sentence_of(report) == "called search although its arguments do not fit"


@pytest.mark.parametrize(
    ("tools", "said"),
    [((), "answered"), (("a",), "1 tool offered, none asked for"), (("a", "b"), "2 tools offered, none asked for")],
)
def test_without_a_call_it_counts_the_tools(tools: tuple[str, ...], said: str) -> None:
    assert sentence_of(TurnReport(tools=tools)) == said


@pytest.mark.parametrize(
    ("results", "said"), [(1, "answered from the result of a call"), (3, "answered from the results of 3 calls")]
)
async def test_the_end_of_a_tool_loop_does_not_read_as_a_fault(results: int, said: str) -> None:
    calls = [PastCall(f"call_{number}", "search", "{}") for number in range(results)]
    found = [ToolResult(call.call_id, (Text("Two notes."),)) for call in calls]
    conversation = Transcript((UserTurn((Text("How many?"),)), *calls, *found))
    outcome = await play("There are two.", request=ask(transcript=conversation))
    assert sentence_of(outcome.report) == said
