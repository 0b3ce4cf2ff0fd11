"""What follows from what an answer was: whether one more is asked for, what of two leaves, and how the turn ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser import ToolRegistry
from prompts import AssistantText, Text, UserTurn
from proxy.contracts import (
    AnswerMessageEnded,
    AnswerText,
    BackendEvent,
    MessageEnded,
    MessagePhase,
    OutputFormat,
    TextPiece,
    TurnEnded,
    TurnFailed,
    TurnFinished,
)
from proxy.errors import BackendError
from proxy.replay.key_placeholder import PLACEHOLDER, key_of
from proxy.turn import TurnOptions
from tests.support.memory_backend import USAGE, MemoryBackend, Script
from tests.support.parts import text_of_parts

from .keyed import shown, written
from .playing import (
    BROKEN,
    LENIENT,
    READ_A,
    READ_B,
    UNDECLARED,
    UNFIT,
    ask,
    in_short,
    outcome_of,
    play,
)
from .ways import ALL_STRICT, AS_JSON, CALLED, DEMANDED, EARLY, FITTING, FREE, GOES_ROUND, LIVE, Way, after, demanding

GONE = BackendError("gone", code="backend_disconnected")
END = AnswerMessageEnded()


FITTING_CALL = demanding(registry=LENIENT)
FITTING_JSON: Way = {"request": ask(registry=LENIENT, output_format=OutputFormat())}
ASKED_ON = (*CALLED, AssistantText("A."), UserTurn((Text("And b.md?"),)))
TOOLLESS: Way = after(*ASKED_ON, registry=ToolRegistry())
SEARCHABLE: Way = {"request": ask(searchable=True)}
UNKNOWN: Way = {"options": TurnOptions()}
OTHER_KEY = READ_A.replace('{"name"', '{"key": "0000", "name"')
LIVE_BROKEN = READ_A.replace('"}}', '"]}')


def cut(text: str, by: str = "max_output_tokens") -> Script:
    return [TextPiece(text), TurnEnded(USAGE, by)]


def failing(text: str) -> Script:
    return [TextPiece(text), GONE]


# Answers held to JSON


@pytest.mark.parametrize(
    ("answer", "way", "left"),
    [
        ('Here: {"a": 1}\n<tool_call>so</tool_call>', AS_JSON, ['{"a": 1}']),
        ('{"a": 1}', EARLY, ['{"a": 1}']),
        (f'{{"a": 1}}\n{BROKEN}', EARLY, ['{"a": 1}']),
        (cut("Well."), AS_JSON, ["Well."]),
        (READ_A, AS_JSON, [READ_A]),
    ],
)
async def test_json_leaves_alone_and_a_cut_answer_or_a_call_as_it_is(answer: Script, way: Way, left: object) -> None:
    outcome = await play(answer, **way)
    assert (in_short(outcome.left), outcome.report.warnings) == (left, [])


async def test_json_leaves_with_the_phase_of_its_message() -> None:
    events: list[BackendEvent] = [MessagePhase("commentary"), TextPiece("Here: "), MessageEnded()]
    events += [MessagePhase("final_answer"), TextPiece('{"a": 1}'), MessageEnded(), TurnEnded(USAGE)]
    assert (await play(events, **AS_JSON)).left == [AnswerText('{"a": 1}', "final_answer")]


async def test_json_that_was_seen_is_none_with_anything_else() -> None:
    outcome = await play('{"a": 1} or so', **EARLY)
    assert (outcome.text.startswith('{"a": 1}'), outcome.ending) == (True, "output_invalid")


# Whether an answer stands


@pytest.mark.parametrize(
    ("answer", "way", "reason", "told"),
    [
        (BROKEN, FREE, "malformed", "where a comma"),
        (BROKEN, DEMANDED, "malformed", "where a comma"),
        (f"Well. {BROKEN}", AS_JSON, "malformed", "where a comma"),
        (READ_A, GOES_ROUND, "repeated", "Answer the user now"),
        ("", DEMANDED, "call_missing", "it held no tool call"),
        ("Well.", demanding("search", "read_note"), "call_missing", "search or read_note"),
        (READ_B + UNFIT, ALL_STRICT, "arguments_misfit", "read_note"),
        (UNFIT, ALL_STRICT, "arguments_misfit", "3 is not of type 'string'"),
        (UNFIT, FITTING, "arguments_misfit", "3 is not of type 'string'"),
        ("Well.", AS_JSON, "output_invalid", "JSON value"),
        ("", AS_JSON, "output_invalid", "JSON value"),
        (f"Well. {UNDECLARED}", AS_JSON, "output_invalid", "JSON value"),
        (UNDECLARED, TOOLLESS, "undeclared", "no tool can be called"),
        (BROKEN, TOOLLESS, "malformed", "no tool can be called"),
        (UNDECLARED, SEARCHABLE, "undeclared", "it called rm, which is not among your tools yet"),
        (f"I remove it.\n{UNDECLARED}", SEARCHABLE, "undeclared", "call the tool that finds tools first"),
    ],
)
async def test_a_fault_has_a_reason_and_a_line_that_names_it(answer: Script, way: Way, reason: str, told: str) -> None:
    second = '{"a": 1}' if way is AS_JSON else READ_A if reason == "call_missing" else "So."
    backend = MemoryBackend([answer, second])
    outcome = await outcome_of(way.get("request", ask()), backend)
    assert outcome.report.again == [reason]
    first, asked = (text_of_parts(prompt.parts).splitlines() for prompt in backend.prompts)
    assert told in asked[-1]
    assert asked[-1] not in first


@pytest.mark.parametrize(("answer", "reason"), [(READ_A, "no_key"), (OTHER_KEY, "wrong_key")])
async def test_a_call_that_may_not_be_meant_is_asked_for_by_its_name_and_with_the_key_that_it_lacks(
    answer: str, reason: str
) -> None:
    outcome = await play(answer, "So.", **UNKNOWN)
    prompt = outcome.backend.prompts[1]
    line = text_of_parts(prompt.parts).splitlines()[-1]
    assert outcome.report.again == [reason]
    assert ("read_note" in line, str(key_of(prompt.developer)) in line) == (True, True)


async def test_whether_a_call_from_an_output_is_meant_is_asked_with_what_the_user_wants() -> None:
    keyed = READ_A.replace('{"name"', f'{{"key": "{PLACEHOLDER}", "name"')
    outcome = await play(written(keyed), "So.", request=ask(transcript=shown()), **UNKNOWN)
    prompt = outcome.backend.prompts[1]
    line = text_of_parts(prompt.parts).splitlines()[-1]
    assert outcome.report.again == ["in_output"]
    assert ("read_note" in line, str(key_of(prompt.developer)) in line) == (True, False)
    assert line.endswith('The request was: "What is in the note?"')


@pytest.mark.parametrize(
    ("answer", "way", "ending"),
    [
        (cut(""), DEMANDED, "max_output_tokens"),
        (cut(BROKEN), DEMANDED, "max_output_tokens"),
        (cut(READ_A), GOES_ROUND, "max_output_tokens"),
        (cut(UNFIT), FITTING, "max_output_tokens"),
        (cut("Well."), AS_JSON, "max_output_tokens"),
        (GONE, DEMANDED, "backend_disconnected"),
        (failing(f"Well. {BROKEN}"), FREE, "backend_disconnected"),
        (failing(READ_A), GOES_ROUND, "backend_disconnected"),
        (failing(UNFIT), FITTING, "backend_disconnected"),
        (failing(READ_A), ALL_STRICT, "backend_disconnected"),
        (failing('{"a": 1}'), AS_JSON, "backend_disconnected"),
        (LIVE_BROKEN, LIVE, "tool_call_broken"),
        (LIVE_BROKEN, {**DEMANDED, **LIVE}, "tool_call_broken"),
        (failing(UNDECLARED), FREE, "backend_disconnected"),
        (cut(UNDECLARED), FREE, "max_output_tokens"),
    ],
)
async def test_what_another_answer_could_not_change_is_not_asked_for_again(
    answer: Script, way: Way, ending: str
) -> None:
    assert (await play(answer, **way)).ending == ending


HELD = '{"calls": [{"name": "read_note", "arguments": {"path": "a.md"}}]}'


@pytest.mark.parametrize(
    ("said", "code", "holds", "again"),
    [
        ('{"calls"', "backend_error", True, True),
        ('{"calls"', "backend_disconnected", True, False),
        ("", "backend_error", True, False),
        (HELD, "backend_error", True, False),
        ('{"calls"', "backend_error", False, False),
    ],
)
async def test_a_server_that_gives_up_on_a_held_answer_is_asked_once_more(
    said: str, code: str, holds: bool, again: bool
) -> None:
    given_up: Script = [TextPiece(said), BackendError("gone", code=code)]
    outcome = await outcome_of(DEMANDED["request"], MemoryBackend([given_up, HELD], holds_schemas=holds))
    assert (outcome.report.again, outcome.finished) == (["held_failed"] if again else [], again)


# What of two answers the client gets


@pytest.mark.parametrize(
    ("first", "second", "way", "left", "ending"),
    [
        # One that failed does not take away the first, which was one.
        (f"{BROKEN}So.", GONE, FREE, ["So."], "finished"),
        (f"{BROKEN}So.", failing("Now."), FREE, ["Now."], "backend_disconnected"),
        (f"{BROKEN}So.", failing(READ_A), FREE, [READ_A], "backend_disconnected"),
        (BROKEN, GONE, DEMANDED, [], "backend_disconnected"),
        (READ_B + UNFIT, GONE, ALL_STRICT, [], "backend_disconnected"),
        (f"Well.\n{UNFIT}", GONE, ALL_STRICT, ["Well.\n"], "backend_disconnected"),
        ("Well.", GONE, AS_JSON, [], "backend_disconnected"),
        # Nor does one that says nothing, or no more.
        (READ_A, "", GOES_ROUND, [READ_A], "finished"),
        (f"{BROKEN}So.", UNDECLARED, FREE, ["So."], "finished"),
        (f"Well. {BROKEN}So.", f"Once more. {BROKEN}", FREE, ["Well. So."], "finished"),
        # One in text goes behind what was seen, as a message of its own; where nothing was, there is no need.
        (f"Well.\n{BROKEN}", "Now.", FREE, ["Well.\n", END, "Now."], "finished"),
        (f"Well.\n{BROKEN}", "Well.\nNow.", FREE, ["Well.\nNow."], "finished"),
        (f"Well.\n{BROKEN}", "Well.\n", FREE, ["Well.\n"], "finished"),
        (BROKEN, "Now.", FREE, ["Now."], "finished"),
        # One that calls stands as it is.
        (f"{BROKEN}So.", READ_A, FREE, [READ_A], "finished"),
        (READ_B + UNFIT, READ_A + BROKEN, ALL_STRICT, [READ_A], "finished"),
        # A strict call that does not fit, and that the model gives up.
        (UNFIT, "", ALL_STRICT, [], "tool_arguments_invalid"),
        (UNFIT, BROKEN, ALL_STRICT, [], "tool_arguments_invalid"),
        (READ_B + UNFIT, "", ALL_STRICT, [], "tool_arguments_invalid"),
        (READ_B + UNFIT, UNFIT, ALL_STRICT, [], "tool_arguments_invalid"),
        (UNFIT, "Well.", ALL_STRICT, ["Well."], "finished"),
    ],
)
async def test_of_two_answers_the_client_gets_the_better_one(
    first: Script, second: Script, way: Way, *, left: object, ending: str
) -> None:
    outcome = await play(first, second, **way)
    assert (in_short(outcome.left), outcome.ending) == (left, ending)


@pytest.mark.parametrize(
    ("second", "way", "left"),
    [
        (READ_B, FITTING, [READ_B]),
        ("Well.", FITTING, ["Well."]),
        ("Well.", FITTING_CALL, [UNFIT]),
        ('{"a": 1}', FITTING_JSON, ['{"a": 1}']),
        ("Well.", FITTING_JSON, [UNFIT]),
        (failing("Well."), FITTING, ["Well."]),
        (GONE, FITTING, [UNFIT]),
        ("", FITTING, [UNFIT]),
        (BROKEN, FITTING, [UNFIT]),
        (f"Well. {BROKEN}", FITTING, ["Well. ", UNFIT]),
    ],
)
async def test_a_call_that_does_not_fit_leaves_if_no_second_answer_is_better(
    second: Script, way: Way, left: object
) -> None:
    outcome = await play(UNFIT, second, **way)
    assert in_short(outcome.left) == left
    assert outcome.report.counts["misfits"] == ({"read_note": 1} if UNFIT in left else {})


LOST = "A call of the tool 'read_note' was taken out, because it cannot be read."
GONE_TOO = "A call of 'rm' was taken out, because no such tool is offered."


@pytest.mark.parametrize(
    ("first", "second", "warnings"),
    [
        (f"{BROKEN}So.", f"So: {UNDECLARED}\nnow.", [GONE_TOO]),
        (f"{BROKEN}So.", UNDECLARED, [GONE_TOO]),
        (f"{BROKEN}So.", "So.", []),
        (f"{BROKEN}So.", READ_A, []),
        (f"{BROKEN}So.", "", [LOST]),
        (BROKEN, f"{BROKEN}So.", [LOST]),
    ],
)
async def test_of_blocks_that_were_taken_out_the_client_hears_once(
    first: Script, second: Script, warnings: Sequence[str]
) -> None:
    assert (await play(first, second)).report.warnings == warnings


# Whether anything is left


@pytest.mark.parametrize(
    ("answers", "way", "again"),
    [
        ([UNDECLARED], FREE, ["undeclared"]),
        ([BROKEN, UNDECLARED], FREE, ["malformed", "undeclared"]),
        ([UNDECLARED, UNDECLARED], SEARCHABLE, ["undeclared", "undeclared"]),
        ([READ_A, READ_A.replace("read_note", "rm")], UNKNOWN, ["no_key", "undeclared"]),
        ([OTHER_KEY, OTHER_KEY], UNKNOWN, ["wrong_key", "wrong_key"]),
        ([f"Well.\n{UNDECLARED}"], FREE, ["undeclared"]),
        ([UNDECLARED], AS_JSON, ["undeclared"]),
    ],
)
async def test_where_nothing_is_left_a_plain_answer_is_asked_for_and_why(
    answers: Sequence[Script], way: Way, again: Sequence[str]
) -> None:
    outcome = await play(*answers, '{"a": 1}', **way)
    assert (outcome.report.again, outcome.text.endswith('{"a": 1}')) == (again, True)
    assert "<tools>" not in (outcome.backend.prompts[-1].developer or "")


@pytest.mark.parametrize(
    ("answers", "way", "ending"),
    [
        ([""], FREE, "finished"),
        ([BROKEN, ""], FREE, "finished"),
        ([UNDECLARED + UNFIT, UNDECLARED], ALL_STRICT, "tool_arguments_invalid"),
        ([f"Well, so it is.\n{UNDECLARED}\nNow."], FREE, "finished"),
        ([BROKEN, f"{UNDECLARED}\nNow."], FREE, "finished"),
        ([UNDECLARED + READ_A], FREE, "finished"),
        ([BROKEN, cut(UNDECLARED)], FREE, "max_output_tokens"),
        ([BROKEN, failing(UNDECLARED)], FREE, "backend_disconnected"),
        ([UNDECLARED, UNDECLARED], DEMANDED, "tool_call_missing"),
    ],
)
async def test_otherwise_none_is(answers: Sequence[Script], way: Way, ending: str) -> None:
    outcome = await play(*answers, **way)
    assert (outcome.ending, len(outcome.report.again)) == (ending, len(answers) - 1)


# The end


@pytest.mark.parametrize(
    ("answers", "way", "code", "text"),
    [
        ([f"Well. {BROKEN}", failing("Well.")], DEMANDED, "backend_disconnected", ""),
        ([READ_A + UNFIT, UNFIT], ALL_STRICT, "tool_arguments_invalid", ""),
        (["Well.", f"Now. {BROKEN}"], DEMANDED, "tool_call_missing", ""),
        (["Well.", "Well."], AS_JSON, "output_invalid", ""),
        ([failing(READ_A)], ALL_STRICT, "backend_disconnected", ""),
        ([failing(UNFIT)], FITTING, "backend_disconnected", ""),
        ([failing(f"{BROKEN}So.")], FREE, "backend_disconnected", "So."),
        ([f"Well.\n{LIVE_BROKEN}"], LIVE, "tool_call_broken", "Well.\n"),
    ],
)
async def test_nothing_that_would_look_like_an_answer_goes_before_a_refusal(
    answers: Sequence[Script], way: Way, code: str, text: str
) -> None:
    outcome = await play(*answers, **way)
    assert (outcome.ending, outcome.text, outcome.report.calls) == (code, text, [])


async def test_what_a_failed_turn_has_cost_is_told_where_it_is_known() -> None:
    assert (await play(GONE)).end == TurnFailed(GONE)
    error = await play(BROKEN, failing("Now."))
    assert error.end == TurnFailed(GONE, USAGE)


@pytest.mark.parametrize(
    ("names", "wanted"), [((), "a tool"), (("search",), "the tool 'search'"), (("search", "read_note"), "a tool")]
)
async def test_a_call_that_never_came_is_named_as_it_was_asked_for(names: Sequence[str], wanted: str) -> None:
    error = (await play("", "", **demanding(*names))).error
    assert f"did not call {wanted} although" in error.message
    assert error.param == "tool_choice"


ANSWERS = ["", "Well.", '{"a": 1}', READ_A, READ_B, UNFIT, BROKEN, UNDECLARED, f"Well.\n{BROKEN}", READ_A + UNFIT]
WAYS = [FREE, DEMANDED, FITTING, ALL_STRICT, FITTING_CALL, AS_JSON, EARLY, GOES_ROUND, LIVE]
GIVEN: st.SearchStrategy[Script] = st.sampled_from(ANSWERS) | st.builds(
    lambda text, end: end(text), st.sampled_from(ANSWERS), st.sampled_from([cut, failing])
)


@given(st.lists(GIVEN, min_size=3, max_size=3), st.sampled_from(WAYS))
def test_whatever_the_answers_were_the_turn_has_one_end(answers: list[Script], way: Way) -> None:
    """And what a client was given as a call is one that is told of as such, once."""
    request = way.get("request", ask(registry=LENIENT))
    outcome = asyncio.run(outcome_of(request, MemoryBackend([*answers]), way.get("options")))
    assert not any(isinstance(event, TurnFinished | TurnFailed) for event in outcome.events[:-1])
    assert isinstance(outcome.end, TurnFinished | TurnFailed)
    assert (outcome.ending == "backend_disconnected") <= any(not isinstance(answer, str) for answer in answers)
    if outcome.ending != "tool_call_broken":
        assert outcome.report.calls == [name for name, _ in outcome.calls]
