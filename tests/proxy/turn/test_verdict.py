"""What follows from what an answer was: each judgement by itself, on plain values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from parser import ToolRegistry
from prompts import ChoiceMode, Text, ToolChoice, Transcript, UserTurn
from proxy.contracts import (
    AnswerMessageEnded,
    AnswerText,
    OutputFormat,
    ToolCallStarted,
    TurnFailed,
    TurnFinished,
    Usage,
)
from proxy.errors import BackendError
from proxy.turn import Fate, FixedHabit, KeyMode, Reason, Ruling, Speaker, TurnReport
from proxy.turn.json_output import JsonOutput, Unfit
from proxy.turn.outlet import Said
from proxy.turn.plan import Plan
from proxy.turn.reason import DOUBTS
from proxy.turn.turn_key import TurnKey
from proxy.turn.verdict import (
    FAILED_CODE,
    Answer,
    Ending,
    end_of,
    fault_of,
    held_to_format,
    nothing_left,
    settled,
)
from tests.proxy.turn.playing import planned

GONE = BackendError("gone", code="backend_disconnected")
GOOD = Ruling(Fate.CALL, name="search")
MISFIT = Ruling(Fate.REFUSE, Reason.ARGUMENTS_MISFIT, "read_note", "'path' is a required property")
UNREADABLE = Ruling(Fate.AGAIN, Reason.MALFORMED, problem="it is cut off")
NOT_OFFERED = Ruling(Fate.GONE, Reason.UNDECLARED)
BROKE = Ruling(Fate.REFUSE, Reason.BROKEN, problem="it broke")
TEXT = (AnswerText("Well."),)
CALL = (ToolCallStarted("call_1", "search"),)
FREE = planned()
CALL_DEMANDED = planned(choice=ToolChoice(ChoiceMode.REQUIRED))
JSON = replace(FREE, output=JsonOutput(OutputFormat(), TurnReport()))


def demanding(*names: str) -> Plan:
    return planned(choice=ToolChoice(ChoiceMode.REQUIRED, names or None))


NOTHING = Answer()
SHOWN = Said(shown=True)
SAID = Answer(said=SHOWN)
MALFORMED = Answer(kept_for=Reason.MALFORMED, kept=TEXT, rulings=(UNREADABLE,))
REPEATED = Answer(kept_for=Reason.REPEATED, kept=CALL, rulings=(Ruling(Fate.AGAIN, Reason.REPEATED, "search"),))
MISFITTING = Answer(kept_for=Reason.JOINED, kept=CALL, rulings=(GOOD, MISFIT))
CALLED = Answer(rulings=(GOOD,))
UNDECLARED = Answer(rulings=(NOT_OFFERED,))
FAILED = Answer(ending=Ending(error=GONE))


def written(text: str) -> Answer:
    return Answer(kept_for=Reason.OUTPUT_INVALID, kept=(AnswerText(text),), written=text)


def failing(answer: Answer) -> Answer:
    return replace(answer, ending=Ending(error=GONE))


def unread(answer: Answer) -> Answer:
    """With a block that cannot be read."""
    return replace(answer, rulings=(*answer.rulings, UNREADABLE))


# Answers held to JSON


def test_json_leaves_without_what_the_model_wrote_round_it() -> None:
    read = held_to_format(unread(written('Here: {"a": 1}')), JSON.output)
    assert (read.kept, read.unfit, read.malformed) == ((AnswerText('{"a": 1}'),), None, None)
    assert read.kept_for is None


def test_text_that_is_no_json_stays_and_says_why() -> None:
    read = held_to_format(written("Well."), JSON.output)
    assert read.kept == TEXT
    assert read.unfit == Unfit("it is not one JSON value")


def test_it_leaves_with_the_phase_of_its_message_and_without_what_was_said_of_it() -> None:
    kept = (AnswerText("Here: ", "commentary"), AnswerText('{"a": 1}', "final_answer"), AnswerMessageEnded())
    answer = replace(written('Here: {"a": 1}'), kept=kept, lost=("A block was taken out.",))
    stands = Answer(kept=(AnswerText('{"a": 1}', "final_answer"),), written=answer.written)
    assert held_to_format(answer, JSON.output) == stands
    assert held_to_format(replace(answer, kept=()), JSON.output).kept == (AnswerText('{"a": 1}'),)


def test_json_that_was_seen_stands_as_it_is_if_nothing_else_was() -> None:
    seen = replace(written('{"a": 1}'), said=SHOWN, kept=())
    stands = replace(seen, kept_for=None)
    assert held_to_format(seen, JSON.output) == stands
    assert held_to_format(unread(seen), JSON.output) == stands
    assert held_to_format(replace(seen, written='Here: {"a": 1}'), JSON.output).unfit


@pytest.mark.parametrize(
    "excuse",
    [
        {"ending": Ending(incomplete="max_output_tokens")},
        {"ending": Ending(stop="END")},
        {"ending": Ending(error=GONE)},
        {"rulings": (BROKE,)},
        {"rulings": (MISFIT,)},
        {"kept": CALL},
        {"kept_for": None},
    ],
)
def test_what_was_cut_or_calls_is_not_held_to_json(excuse: dict[str, object]) -> None:
    answer = replace(written("Well."), **excuse)
    assert held_to_format(answer, JSON.output) == answer


# Whether an answer stands


@pytest.mark.parametrize("answer", [NOTHING, SAID, CALLED, unread(CALLED), UNDECLARED])
def test_an_answer_without_a_fault_stands(answer: Answer) -> None:
    assert fault_of(answer, FREE) is None


@pytest.mark.parametrize(
    ("answer", "demands", "reason", "told"),
    [
        (MALFORMED, FREE, Reason.MALFORMED, "it is cut off"),
        (MALFORMED, CALL_DEMANDED, Reason.MALFORMED, "it is cut off"),
        (REPEATED, FREE, Reason.REPEATED, ""),
        (NOTHING, CALL_DEMANDED, Reason.CALL_MISSING, ""),
        (SAID, demanding("search", "read_note"), Reason.CALL_MISSING, "search or read_note"),
        (MISFITTING, FREE, Reason.ARGUMENTS_MISFIT, "'path' is a required property"),
        (replace(written("Well."), unfit=Unfit("it is not one JSON value")), JSON, Reason.OUTPUT_INVALID, "JSON value"),
        (
            replace(MALFORMED, kept_for=Reason.OUTPUT_INVALID, unfit=Unfit("it is not one JSON value")),
            JSON,
            Reason.MALFORMED,
            "it is cut off",
        ),
    ],
)
def test_a_fault_has_a_reason_and_a_line_that_names_it(
    answer: Answer, demands: Plan, reason: Reason, told: str
) -> None:
    fault = fault_of(answer, demands)
    assert fault is not None
    assert fault.reason is reason
    assert told in (fault.line or "")


def doubted(reason: Reason) -> Answer:
    return Answer(kept_for=reason, kept=TEXT, rulings=(Ruling(Fate.AGAIN, reason, "read_note"),))


@pytest.mark.parametrize("reason", DOUBTS)
def test_a_call_that_may_not_be_meant_is_asked_for_by_its_name_and_with_the_key_that_it_lacks(
    reason: Reason,
) -> None:
    fault = fault_of(doubted(reason), planned(key=TurnKey(KeyMode.AUTO, "7qhvxmrtbz", Speaker("", "m"), FixedHabit())))
    assert fault is not None
    assert fault.reason is reason
    line = fault.line or ""
    assert "read_note" in line
    assert ("7qhvxmrtbz" in line) is (reason is not Reason.IN_OUTPUT)


def test_whether_a_call_from_an_output_is_meant_is_asked_with_what_the_user_wants() -> None:
    demands = planned(transcript=Transcript((UserTurn((Text('Show me "a.md"'),)),)))
    fault = fault_of(doubted(Reason.IN_OUTPUT), demands)
    assert fault is not None
    assert (fault.line or "").endswith('The request was: "Show me \\"a.md\\""')


@pytest.mark.parametrize(
    "cut",
    [{"ending": Ending(incomplete="max_output_tokens")}, {"ending": Ending(error=GONE)}, {"rulings": (BROKE,)}],
)
@pytest.mark.parametrize("answer", [NOTHING, MALFORMED, REPEATED, MISFITTING])
def test_what_another_answer_could_not_change_is_not_asked_for_again(answer: Answer, cut: dict[str, object]) -> None:
    assert fault_of(replace(answer, **cut), CALL_DEMANDED) is None


def test_an_answer_of_nothing_but_undeclared_calls_is_not_asked_for_as_json() -> None:
    unfit = Answer(kept_for=Reason.OUTPUT_INVALID, unfit=Unfit("it is not one JSON value"))
    assert fault_of(replace(unfit, rulings=(NOT_OFFERED,)), JSON) is None
    for answer in (unfit, replace(unfit, kept=TEXT, rulings=(NOT_OFFERED,))):
        fault = fault_of(answer, JSON)
        assert fault is not None
        assert fault.reason is Reason.OUTPUT_INVALID


GIVEN_UP = BackendError("gone", code=FAILED_CODE)


@pytest.mark.parametrize(
    ("answer", "again"),
    [
        (Answer(ending=Ending(constrained=True, error=GIVEN_UP)), True),
        (replace(CALLED, ending=Ending(constrained=True, error=GIVEN_UP)), False),
        (Answer(ending=Ending(constrained=True, error=GONE)), False),
        (Answer(ending=Ending(error=GIVEN_UP)), False),
        (Answer(ending=Ending(constrained=True)), False),
    ],
)
def test_a_server_that_gives_up_on_a_held_answer_is_asked_once_more(answer: Answer, again: bool) -> None:
    fault = fault_of(answer, FREE)
    assert (fault and fault.reason) == (Reason.HELD_FAILED if again else None)


def test_a_line_names_the_tool_and_where_no_tool_can_be_called_none_is_asked_for() -> None:
    fault = fault_of(MISFITTING, FREE)
    assert fault is not None
    assert "read_note" in (fault.line or "")
    assert fault_of(MALFORMED, planned(ToolRegistry())) is None
    repeated = fault_of(REPEATED, FREE)
    assert repeated is not None
    assert (repeated.line, repeated.plain) == (None, True)


# What of two answers the client gets


def test_a_second_answer_that_failed_does_not_take_the_first_one_away() -> None:
    assert settled(MALFORMED, FAILED, FREE).kept == TEXT
    assert settled(MALFORMED, FAILED, FREE).ending.error is None


@pytest.mark.parametrize(
    ("first", "second", "demands"),
    [
        (MALFORMED, failing(SAID), FREE),
        (MALFORMED, failing(CALLED), FREE),
        (MALFORMED, FAILED, CALL_DEMANDED),
        (MISFITTING, FAILED, FREE),
        (replace(MISFITTING, said=SHOWN), FAILED, FREE),
        (written("Well."), FAILED, JSON),
    ],
    ids=[
        "it was seen",
        "it called",
        "a call is demanded",
        "the first had a misfit",
        "after words",
        "the first was no JSON",
    ],
)
def test_a_failure_is_told_where_the_first_answer_is_none(first: Answer, second: Answer, demands: Plan) -> None:
    assert settled(first, second, demands).ending.error is GONE
    assert settled(first, second, demands).misfit is None


LENIENT = Answer(
    kept_for=Reason.ARGUMENTS_MISFIT, kept=CALL, rulings=(replace(MISFIT, fate=Fate.AGAIN, then=Fate.CALL),)
)


@pytest.mark.parametrize(
    ("second", "demands", "is_better"),
    [
        (CALLED, FREE, True),
        (MISFITTING, FREE, True),
        (Answer(rulings=(MISFIT,)), FREE, True),
        (SAID, FREE, True),
        (SAID, CALL_DEMANDED, False),
        (Answer(kept=TEXT), FREE, True),
        (Answer(kept=TEXT, unfit=Unfit("it is no JSON")), FREE, False),
        (failing(SAID), FREE, True),
        (FAILED, FREE, False),
        (NOTHING, FREE, False),
        (MALFORMED, FREE, False),
    ],
)
def test_a_call_that_does_not_fit_leaves_if_no_second_answer_is_better(
    second: Answer, demands: Plan, is_better: bool
) -> None:
    assert (settled(LENIENT, second, demands) == LENIENT) is not is_better


def test_of_blocks_that_were_taken_out_the_client_hears_once() -> None:
    first = replace(MALFORMED, lost=("One.",))
    for second, lost in (
        (replace(SAID, lost=("Two.",)), ("Two.",)),
        (replace(NOTHING, lost=("Two.",)), ("Two.",)),
        (SAID, ()),
        (CALLED, ()),
        (NOTHING, ("One.",)),
        (Answer(said=Said(shown=True, preface="I look.")), ("One.",)),
    ):
        assert settled(first, second, FREE).lost == lost


@pytest.mark.parametrize("second", [NOTHING, MALFORMED])
def test_of_a_misfit_that_the_model_gives_up_the_client_is_told(second: Answer) -> None:
    last = settled(MISFITTING, second, FREE)
    assert last.misfit == MISFIT
    assert not any(isinstance(event, ToolCallStarted) for event in end_of(last, FREE, Usage()))


def test_a_second_answer_that_says_nothing_brings_back_what_was_held_of_the_first() -> None:
    assert settled(REPEATED, NOTHING, FREE).kept == CALL
    assert settled(MALFORMED, UNDECLARED, FREE).kept == TEXT


def test_a_broken_block_behind_text_that_was_seen_is_told_as_it_came_first() -> None:
    first = replace(MALFORMED, said=SHOWN)
    second = replace(MALFORMED, kept_for=Reason.SAID, kept=(AnswerText("Once more."),))
    assert settled(first, second, FREE).kept == TEXT


def test_a_second_answer_in_text_is_a_message_of_its_own_behind_what_was_seen() -> None:
    second = Answer(kept_for=Reason.SAID, kept=TEXT)
    assert settled(replace(MALFORMED, said=SHOWN), second, FREE).kept == (AnswerMessageEnded(), *TEXT)


def test_a_second_answer_that_calls_stands_as_it_is() -> None:
    assert settled(MALFORMED, CALLED, FREE) == CALLED
    called_and_broke = unread(CALLED)
    assert settled(MISFITTING, called_and_broke, FREE) == called_and_broke


def test_text_in_front_of_which_nothing_was_seen_needs_no_break() -> None:
    assert settled(MALFORMED, MALFORMED, FREE).kept == TEXT


# Whether anything is left


LOST = Answer(lost=("A tool call was taken out.",))


def test_an_answer_of_nothing_but_undeclared_calls_leaves_nothing() -> None:
    assert nothing_left(UNDECLARED, UNDECLARED, FREE) == Reason.UNDECLARED
    assert nothing_left(UNDECLARED, NOTHING, FREE) == Reason.UNDECLARED
    assert nothing_left(NOTHING, UNDECLARED, FREE) == Reason.UNDECLARED
    assert nothing_left(LOST, LOST, FREE) == Reason.MALFORMED, "it was not asked for once more"


@pytest.mark.parametrize("reason", DOUBTS)
def test_why_nothing_is_left_is_told_by_what_was_taken_out(reason: Reason) -> None:
    first = replace(doubted(reason), kept=())
    assert nothing_left(first, LOST, FREE) == reason
    assert nothing_left(first, UNDECLARED, FREE) == Reason.UNDECLARED


@pytest.mark.parametrize(
    ("first", "last", "demands"),
    [
        (NOTHING, NOTHING, FREE),
        (LOST, NOTHING, FREE),
        (UNDECLARED, replace(UNDECLARED, rulings=(NOT_OFFERED, MISFIT)), FREE),
        (replace(UNDECLARED, said=SHOWN), UNDECLARED, FREE),
        (UNDECLARED, Answer(kept=TEXT), FREE),
        (UNDECLARED, CALLED, FREE),
        (UNDECLARED, replace(UNDECLARED, ending=Ending(incomplete="content_filter")), FREE),
        (UNDECLARED, failing(UNDECLARED), FREE),
        (UNDECLARED, UNDECLARED, CALL_DEMANDED),
    ],
)
def test_otherwise_something_is(first: Answer, last: Answer, demands: Plan) -> None:
    assert not nothing_left(first, last, demands)


# The end


def test_what_is_held_of_an_answer_that_stands_leaves_with_its_end() -> None:
    assert end_of(MALFORMED, FREE, Usage(3)) == (*TEXT, TurnFinished(Usage(3)))
    assert end_of(replace(NOTHING, ending=Ending(incomplete="content_filter")), FREE, Usage()) == (
        TurnFinished(Usage(), "content_filter"),
    )


@pytest.mark.parametrize(
    ("answer", "demands", "code"),
    [
        (failing(MALFORMED), CALL_DEMANDED, "backend_disconnected"),
        (MISFITTING, FREE, "tool_arguments_invalid"),
        (replace(MALFORMED, kept_for=Reason.CALL_MISSING), CALL_DEMANDED, "tool_call_missing"),
        (replace(written("Well."), unfit=Unfit("it is no JSON")), JSON, "output_invalid"),
        (failing(replace(CALLED, kept_for=Reason.JOINED, kept=CALL)), FREE, "backend_disconnected"),
        (failing(LENIENT), FREE, "backend_disconnected"),
        (replace(SAID, rulings=(BROKE,)), FREE, "tool_call_broken"),
    ],
)
def test_nothing_goes_before_a_refusal_that_would_look_like_an_answer(answer: Answer, demands: Plan, code: str) -> None:
    (end,) = end_of(answer, demands, Usage())
    assert isinstance(end, TurnFailed)
    assert end.error.code == code


def test_text_that_was_held_on_suspicion_is_not_lost_with_the_connection() -> None:
    assert end_of(failing(MALFORMED), FREE, Usage()) == (*TEXT, TurnFailed(GONE))


@pytest.mark.parametrize(
    ("names", "wanted"), [(None, "a tool"), (("search",), "the tool 'search'"), (("search", "read_note"), "a tool")]
)
def test_a_call_that_never_came_is_named_as_it_was_asked_for(names: tuple[str, ...] | None, wanted: str) -> None:
    (end,) = end_of(NOTHING, demanding(*(names or ())), Usage())
    assert isinstance(end, TurnFailed)
    assert f"did not call {wanted} although" in end.error.message
    assert end.error.param == "tool_choice"


def test_a_cut_answer_owes_no_call() -> None:
    (end,) = end_of(replace(NOTHING, ending=Ending(incomplete="max_output_tokens")), CALL_DEMANDED, Usage())
    assert end == TurnFinished(Usage(), "max_output_tokens")


ANSWERS = st.builds(
    Answer,
    kept_for=st.none() | st.sampled_from(Reason),
    kept=st.sampled_from([(), TEXT, CALL, (*TEXT, *CALL)]),
    said=st.sampled_from([Said(), SHOWN]),
    rulings=st.lists(
        st.sampled_from([GOOD, MISFIT, UNREADABLE, NOT_OFFERED, BROKE, *REPEATED.rulings]), unique=True
    ).map(tuple),
    written=st.sampled_from(["", "Well.", '{"a": 1}']),
    ending=st.sampled_from([Ending(), Ending(incomplete="max_output_tokens"), Ending(error=GONE)]),
)


@given(ANSWERS, ANSWERS, st.sampled_from([FREE, CALL_DEMANDED, JSON]))
def test_whatever_two_answers_were_the_turn_has_one_end(first: Answer, second: Answer, demands: Plan) -> None:
    last = held_to_format(settled(first, second, demands), demands.output)
    *before, end = end_of(last, demands, Usage())
    assert isinstance(end, TurnFinished | TurnFailed)
    assert not any(isinstance(event, TurnFinished | TurnFailed) for event in before)
    if first.ending.error is None and second.ending.error is None:
        assert not (isinstance(end, TurnFailed) and end.error is GONE)


@given(ANSWERS, st.sampled_from([FREE, CALL_DEMANDED, JSON]))
def test_an_answer_with_calls_that_left_is_never_asked_for_again(answer: Answer, demands: Plan) -> None:
    if answer.calls and not answer.misfit:
        assert fault_of(answer, demands) is None
