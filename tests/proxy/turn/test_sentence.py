from __future__ import annotations

from typing import Any

import pytest

from parser import Tool, ToolRegistry, write_call
from prompts import ChoiceMode, PastCall, Text, ToolChoice, ToolResult, Transcript, UserTurn
from proxy.contracts import OutputFormat, TurnEnded
from proxy.turn import BlockNote, Fate, Reason, Ruling, TurnReport, fault_of, reason_in_words, sentence_of
from tests.support.memory_backend import USAGE, Script, pieces

from .playing import BROKEN, READ_A, READ_B, ask, play

COUNT = '{"type":"object","properties":{"count":{"type":"integer"}},"required":["count"]}'
LENIENT = {"registry": ToolRegistry([Tool("reserve", None, COUNT)])}
STRICT = {"registry": ToolRegistry([Tool("reserve", None, COUNT, strict=True)])}
DEMANDED = {"choice": ToolChoice(ChoiceMode.REQUIRED)}
JSON = {"output_format": OutputFormat()}
GOOD, WORD, LACKING = (write_call("reserve", arguments) for arguments in ('{"count": 2}', '{"count": "two"}', "{}"))
UNKNOWN = write_call("rm", "{}")
NOT_OFFERED = "rm is not among the tools that were offered"
UNREAD = "asked again: a call of read_note could not be read"
MISFIT = "asked again: the arguments did not fit reserve"


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
    assert sentence_of(report, answered=True) == (
        "asked again: the arguments did not fit search (query is missing), and the second answer did; called search"
    )


def test_what_arguments_hold_is_not_in_it() -> None:
    report = TurnReport(tools=("search",), calls=["search"])
    ruling = Ruling(Fate.CALL, Reason.ARGUMENTS_MISFIT, "search")
    problem = "'my secret' is not of type 'integer'"
    report.notes.append(BlockNote(attempt=0, ruling=ruling, name="search", problem=problem))
    assert sentence_of(report, answered=True) == "called search although its arguments do not fit"


@pytest.mark.parametrize(
    ("tools", "said"),
    [((), "answered"), (("a",), "1 tool offered, none asked for"), (("a", "b"), "2 tools offered, none asked for")],
)
def test_without_a_call_it_counts_the_tools(tools: tuple[str, ...], said: str) -> None:
    assert sentence_of(TurnReport(tools=tools), answered=True) == said


def test_of_a_turn_that_was_not_answered_it_says_why_and_not_how_it_was_answered() -> None:
    report = TurnReport(tools=("search",))
    assert sentence_of(report, answered=False) == ""
    report.notes.append(note(Reason.UNDECLARED, "rm"))
    assert sentence_of(report, answered=False) == f"no call left: {NOT_OFFERED}"


@pytest.mark.parametrize(
    ("results", "said"), [(1, "answered from the result of a call"), (3, "answered from the results of 3 calls")]
)
async def test_the_end_of_a_tool_loop_does_not_read_as_a_fault(results: int, said: str) -> None:
    calls = [PastCall(f"call_{number}", "search", "{}") for number in range(results)]
    found = [ToolResult(call.call_id, (Text("Two notes."),)) for call in calls]
    conversation = Transcript((UserTurn((Text("How many?"),)), *calls, *found))
    outcome = await play("There are two.", request=ask(transcript=conversation))
    assert sentence_of(outcome.report, answered=True) == said


def cut(text: str) -> Script:
    return [*pieces(text, 0), TurnEnded(USAGE, "max_output_tokens")]


@pytest.mark.parametrize(
    ("answers", "changes", "said"),
    [
        ([READ_A + READ_B], {}, "called read_note, read_note"),
        ([READ_A.replace("read_note", "readNote")], {}, "called read_note, renamed from readNote"),
        ([READ_A.replace("arguments", "args")], {}, "called read_note (mended: alias keys)"),
        ([write_call("reserve", '{"count": "2"}')], LENIENT, "called reserve (mended: coerced number)"),
        ([UNKNOWN + READ_A], {}, "called read_note"),
        ([cut(READ_A[:-16])], {}, "the answer was cut in the middle of a call of read_note"),
        ([cut("<tool_cal")], {}, "no call left: the answer was cut in the middle of a call"),
        ([f"```\n{READ_A}\n```"], {}, "no call left: the block of read_note stands in a code fence, so it was shown"),
        ([f'I write "{READ_A}" so.'], {}, "no call left: the block of read_note is a quotation, so it was shown"),
        ([READ_A[11:-12]], {}, "no call left: JSON of read_note without the tags of a call, so it was shown"),
        ([""], {}, "answered with nothing"),
        ([BROKEN, READ_A], {}, f"{UNREAD}, and the second answer could; called read_note"),
        ([BROKEN, "Hello."], {}, f"{UNREAD}, and the second answer could"),
        (
            [f"I look. {BROKEN}", BROKEN],
            {},
            f"{UNREAD}; the second answer left no call: a call of read_note could not be read",
        ),
        (
            [BROKEN, UNKNOWN, "Plain."],
            {},
            f"{UNREAD}; and once more, without tools: {NOT_OFFERED}",
        ),
        (
            [UNKNOWN, UNKNOWN],
            {},
            f"asked again: {NOT_OFFERED}; the second answer left no call: {NOT_OFFERED}; answered with nothing",
        ),
        ([WORD, GOOD], LENIENT, f"{MISFIT}, and the second answer did; called reserve"),
        (
            [WORD, WORD],
            LENIENT,
            f"{MISFIT}, and the second answer was no better; called reserve although its arguments do not fit",
        ),
        ([LACKING, GOOD], STRICT, f"{MISFIT} (count is missing), and the second answer did; called reserve"),
        ([WORD, WORD], STRICT, f"{MISFIT}; the second answer left no call: the arguments did not fit reserve"),
        (
            ["No.", READ_A],
            DEMANDED,
            "asked again: a call was demanded, and none came, and the second answer was better; called read_note",
        ),
        (
            ["No.", "No."],
            DEMANDED,
            "asked again: a call was demanded, and none came; the second answer left no call",
        ),
        (
            ["No.", "{}"],
            JSON,
            "asked again: the answer was not the JSON that was asked for, and the second answer was better",
        ),
        (
            ["No.", "No."],
            JSON,
            "asked again: the answer was not the JSON that was asked for, and the second answer was no better",
        ),
    ],
)
async def test_what_came_of_a_turn(answers: list[Script], changes: dict[str, Any], said: str) -> None:
    report = (await play(*answers, request=ask(**changes))).report
    assert sentence_of(report, answered=True) == said


def test_a_block_that_cannot_be_read_and_is_shown_is_said_to_be() -> None:
    shown = note(Reason.MALFORMED, fate=Fate.TEXT)
    assert fault_of(shown) == "a call of search could not be read, so it was shown"
    assert fault_of(note(Reason.MALFORMED)) == reason_in_words(Reason.MALFORMED, "search")


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (Reason.MALFORMED, "a call could not be read"),
        (Reason.ARGUMENTS_MISFIT, "the arguments did not fit a tool"),
        (Reason.QUOTED, "the block is a quotation, so it was shown"),
    ],
)
def test_a_reason_of_no_block_in_particular_names_no_tool(reason: Reason, said: str) -> None:
    assert reason_in_words(reason) == said


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ([""], "The model answered with nothing."),
        (
            [UNKNOWN, UNKNOWN],
            "The model asked for a tool that was not offered (`rm`), and said nothing else.",
        ),
        (
            [write_call("no name", "{}")] * 2,
            "The model asked for a tool that was not offered, and said nothing else.",
        ),
        ([BROKEN, BROKEN], "The model said nothing that can be shown: a call of read_note could not be read."),
    ],
)
async def test_an_empty_answer_says_why_it_is_empty(answers: list[Script], text: str) -> None:
    assert (await play(*answers)).text == text
