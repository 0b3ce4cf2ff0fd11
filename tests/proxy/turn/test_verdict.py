"""What follows from what an answer was: each judgement by itself, on plain values."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts import Text, Transcript, UserTurn
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
from proxy.turn import Again, TurnReport
from proxy.turn.calls import Doubted
from proxy.turn.json_output import JsonOutput, Unfit
from proxy.turn.key_rule import Doubt
from proxy.turn.release import Hold
from proxy.turn.strictness import Misfit
from proxy.turn.verdict import FAILED_CODE, Answer, Demands, end_of, fault_of, held_to_format, nothing_left, settled

GONE = BackendError("gone", code="backend_disconnected")
MISFIT = Misfit("read_note", "'path' is a required property", strict=True)
TEXT = (AnswerText("Well."),)
CALL = (ToolCallStarted("call_1", "search"),)
FREE = Demands()
CALL_DEMANDED = Demands(call=True)
JSON = Demands(output=JsonOutput(OutputFormat(), TurnReport()))

NOTHING = Answer()
SAID = Answer(shown=True)
MALFORMED = Answer(hold=Hold.DOUBTFUL, held=TEXT, malformed="it is cut off")
REPEATED = Answer(hold=Hold.REPEATED, held=CALL, repeated="search")
MISFITTING = Answer(hold=Hold.STRICT, held=CALL, calls=1, misfits=(MISFIT,))
CALLED = Answer(hold=Hold.ANSWERED, calls=1)
UNDECLARED = Answer(undeclared=1)


def written(text: str) -> Answer:
    return Answer(hold=Hold.FORMAT, held=(AnswerText(text),), written=text)


# Answers held to JSON


def test_json_leaves_without_what_the_model_wrote_round_it() -> None:
    read = held_to_format(replace(written('Here: {"a": 1}'), malformed="a tag in a string"), JSON.output)
    assert (read.held, read.unfit, read.malformed) == ((AnswerText('{"a": 1}'),), None, None)
    assert read.hold is Hold.FREE


def test_text_that_is_no_json_stays_and_says_why() -> None:
    read = held_to_format(written("Well."), JSON.output)
    assert read.held == TEXT
    assert read.unfit == Unfit("it is not one JSON value")


def test_it_leaves_with_the_phase_of_its_message_and_without_what_was_said_of_it() -> None:
    held = (AnswerText("Here: ", "commentary"), AnswerText('{"a": 1}', "final_answer"), AnswerMessageEnded())
    answer = replace(written('Here: {"a": 1}'), held=held, lost=("A block was taken out.",))
    stands = Answer(hold=Hold.FREE, held=(AnswerText('{"a": 1}', "final_answer"),), written=answer.written)
    assert held_to_format(answer, JSON.output) == stands
    assert held_to_format(replace(answer, held=()), JSON.output).held == (AnswerText('{"a": 1}'),)


def test_json_that_was_seen_stands_as_it_is_if_nothing_else_was() -> None:
    seen = replace(written('{"a": 1}'), shown=True, held=())
    stands = replace(seen, hold=Hold.FREE)
    assert held_to_format(seen, JSON.output) == stands
    assert held_to_format(replace(seen, malformed="a tag in a string"), JSON.output) == stands
    assert held_to_format(replace(seen, written='Here: {"a": 1}'), JSON.output).unfit


@pytest.mark.parametrize(
    "excuse",
    [
        {"incomplete": "max_output_tokens"},
        {"ended_by_stop_string": True},
        {"error": GONE},
        {"broken": "it broke"},
        {"misfits": (MISFIT,)},
        {"held": CALL},
        {"hold": Hold.ANSWERED},
    ],
)
def test_what_was_cut_or_calls_is_not_held_to_json(excuse: dict[str, object]) -> None:
    answer = replace(written("Well."), **excuse)  # type: ignore[arg-type]  # names are checked by the dataclass
    assert held_to_format(answer, JSON.output) == answer


# Whether an answer stands


@pytest.mark.parametrize("answer", [NOTHING, SAID, CALLED, replace(CALLED, malformed="it is cut off"), UNDECLARED])
def test_an_answer_without_a_fault_stands(answer: Answer) -> None:
    assert fault_of(answer, FREE) is None


@pytest.mark.parametrize(
    ("answer", "demands", "reason", "told"),
    [
        (MALFORMED, FREE, Again.MALFORMED, "it is cut off"),
        (MALFORMED, CALL_DEMANDED, Again.MALFORMED, "it is cut off"),
        (REPEATED, FREE, Again.REPEATED, ""),
        (NOTHING, CALL_DEMANDED, Again.CALL_MISSING, ""),
        (SAID, Demands(call=True, names=("search", "read_note")), Again.CALL_MISSING, "search or read_note"),
        (MISFITTING, FREE, Again.ARGUMENTS_MISFIT, "'path' is a required property"),
        (replace(written("Well."), unfit=Unfit("it is not one JSON value")), JSON, Again.OUTPUT_INVALID, "JSON value"),
        (
            replace(MALFORMED, hold=Hold.FORMAT, unfit=Unfit("it is not one JSON value")),
            JSON,
            Again.MALFORMED,
            "it is cut off",
        ),
    ],
)
def test_a_fault_has_a_reason_and_a_line_that_names_it(
    answer: Answer, demands: Demands, reason: Again, told: str
) -> None:
    fault = fault_of(answer, demands)
    assert fault is not None
    assert fault.reason is reason
    assert told in (fault.line or "")


@pytest.mark.parametrize(
    ("doubt", "reason", "key_told"),
    [
        (Doubt.NO_KEY, Again.NO_KEY, True),
        (Doubt.WRONG_KEY, Again.WRONG_KEY, True),
        (Doubt.IN_OUTPUT, Again.IN_OUTPUT, False),
    ],
)
def test_a_call_that_may_not_be_meant_is_asked_for_by_its_name_and_with_the_key_that_it_lacks(
    doubt: Doubt, reason: Again, key_told: bool
) -> None:
    answer = Answer(hold=Hold.DOUBTFUL, held=TEXT, doubtful=Doubted("read_note", doubt))
    fault = fault_of(answer, Demands(key="7qhvxmrtbz"))
    assert fault is not None
    assert fault.reason is reason
    line = fault.line or ""
    assert "read_note" in line
    assert ("7qhvxmrtbz" in line) is key_told


def test_whether_a_call_from_an_output_is_meant_is_asked_with_what_the_user_wants() -> None:
    answer = Answer(hold=Hold.DOUBTFUL, held=TEXT, doubtful=Doubted("read_note", Doubt.IN_OUTPUT))
    fault = fault_of(answer, Demands(transcript=Transcript((UserTurn((Text('Show me "a.md"'),)),))))
    assert fault is not None
    assert (fault.line or "").endswith('The request was: "Show me \\"a.md\\""')


@pytest.mark.parametrize("cut", [{"incomplete": "max_output_tokens"}, {"error": GONE}, {"broken": "it broke"}])
@pytest.mark.parametrize("answer", [NOTHING, MALFORMED, REPEATED, MISFITTING])
def test_what_another_answer_could_not_change_is_not_asked_for_again(answer: Answer, cut: dict[str, object]) -> None:
    assert fault_of(replace(answer, **cut), CALL_DEMANDED) is None  # type: ignore[arg-type]  # as above


def test_an_answer_of_nothing_but_undeclared_calls_is_not_asked_for_as_json() -> None:
    unfit = Answer(hold=Hold.FORMAT, unfit=Unfit("it is not one JSON value"))
    assert fault_of(replace(unfit, undeclared=1), JSON) is None
    for answer in (unfit, replace(unfit, held=TEXT, undeclared=1)):
        fault = fault_of(answer, JSON)
        assert fault is not None
        assert fault.reason is Again.OUTPUT_INVALID


@pytest.mark.parametrize(
    ("answer", "again"),
    [
        (Answer(constrained=True, error=BackendError("gone", code=FAILED_CODE)), True),
        (Answer(constrained=True, error=BackendError("gone", code=FAILED_CODE), calls=1), False),
        (Answer(constrained=True, error=GONE), False),
        (Answer(error=BackendError("gone", code=FAILED_CODE)), False),
        (Answer(constrained=True), False),
    ],
)
def test_a_server_that_gives_up_on_a_held_answer_is_asked_once_more(answer: Answer, again: bool) -> None:
    fault = fault_of(answer, FREE)
    assert (fault and fault.reason) == (Again.HELD_FAILED if again else None)


def test_a_line_names_the_tool_and_where_no_tool_can_be_called_none_is_asked_for() -> None:
    fault = fault_of(MISFITTING, FREE)
    assert fault is not None
    assert "read_note" in (fault.line or "")
    assert fault_of(MALFORMED, Demands(tools=False)) is None
    repeated = fault_of(REPEATED, FREE)
    assert repeated is not None
    assert (repeated.line, repeated.plain) == (None, True)


# What of two answers the client gets


def test_a_second_answer_that_failed_does_not_take_the_first_one_away() -> None:
    assert settled(MALFORMED, Answer(error=GONE), FREE).held == TEXT
    assert settled(MALFORMED, Answer(error=GONE), FREE).error is None


@pytest.mark.parametrize(
    ("first", "second", "demands"),
    [
        (MALFORMED, Answer(error=GONE, shown=True), FREE),
        (MALFORMED, Answer(error=GONE, calls=1), FREE),
        (MALFORMED, Answer(error=GONE), CALL_DEMANDED),
        (MISFITTING, Answer(error=GONE), FREE),
        (replace(MISFITTING, shown=True), Answer(error=GONE), FREE),
        (written("Well."), Answer(error=GONE), JSON),
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
def test_a_failure_is_told_where_the_first_answer_is_none(first: Answer, second: Answer, demands: Demands) -> None:
    assert settled(first, second, demands).error is GONE
    assert settled(first, second, demands).misfits == ()


LENIENT = Answer(hold=Hold.MISFIT, held=CALL, calls=1, misfits=(replace(MISFIT, strict=False),))


@pytest.mark.parametrize(
    ("second", "demands", "is_better"),
    [
        (CALLED, FREE, True),
        (MISFITTING, FREE, True),
        (replace(MISFITTING, calls=0), FREE, True),
        (SAID, FREE, True),
        (SAID, CALL_DEMANDED, False),
        (Answer(held=TEXT), FREE, True),
        (Answer(held=TEXT, unfit=Unfit("it is no JSON")), FREE, False),
        (Answer(error=GONE, shown=True), FREE, True),
        (Answer(error=GONE), FREE, False),
        (NOTHING, FREE, False),
        (MALFORMED, FREE, False),
    ],
)
def test_a_call_that_does_not_fit_leaves_if_no_second_answer_is_better(
    second: Answer, demands: Demands, is_better: bool
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
        (replace(SAID, preface=True), ("One.",)),
    ):
        assert settled(first, second, FREE).lost == lost


@pytest.mark.parametrize("second", [NOTHING, MALFORMED])
def test_of_a_misfit_that_the_model_gives_up_the_client_is_told(second: Answer) -> None:
    last = settled(MISFITTING, second, FREE)
    assert last.misfit == MISFIT
    assert not any(isinstance(event, ToolCallStarted) for event in end_of(last, FREE, Usage()))


def test_a_second_answer_that_says_nothing_brings_back_what_was_held_of_the_first() -> None:
    assert settled(REPEATED, NOTHING, FREE).held == CALL
    assert settled(MALFORMED, replace(NOTHING, undeclared=1), FREE).held == TEXT


def test_a_broken_block_behind_text_that_was_seen_is_told_as_it_came_first() -> None:
    first = replace(MALFORMED, shown=True)
    second = replace(MALFORMED, hold=Hold.SHOWN, held=(AnswerText("Once more."),))
    assert settled(first, second, FREE).held == TEXT


def test_a_second_answer_in_text_is_a_message_of_its_own_behind_what_was_seen() -> None:
    second = Answer(hold=Hold.SHOWN, held=TEXT)
    assert settled(replace(MALFORMED, shown=True), second, FREE).held == (AnswerMessageEnded(), *TEXT)


def test_a_second_answer_that_calls_stands_as_it_is() -> None:
    assert settled(MALFORMED, CALLED, FREE) == CALLED
    called_and_broke = replace(CALLED, malformed="it is cut off")
    assert settled(MISFITTING, called_and_broke, FREE) == called_and_broke


def test_text_in_front_of_which_nothing_was_seen_needs_no_break() -> None:
    assert settled(MALFORMED, replace(MALFORMED, hold=Hold.DOUBTFUL), FREE).held == TEXT


# Whether anything is left


LOST = Answer(lost=("A tool call was taken out.",))


def test_an_answer_of_nothing_but_undeclared_calls_leaves_nothing() -> None:
    assert nothing_left(UNDECLARED, UNDECLARED, FREE) == Again.UNDECLARED
    assert nothing_left(UNDECLARED, NOTHING, FREE) == Again.UNDECLARED
    assert nothing_left(NOTHING, UNDECLARED, FREE) == Again.UNDECLARED
    assert nothing_left(LOST, LOST, FREE) == Again.MALFORMED, "it was not asked for once more"


@pytest.mark.parametrize("doubt", Doubt)
def test_why_nothing_is_left_is_told_by_what_was_taken_out(doubt: Doubt) -> None:
    doubted = Answer(doubtful=Doubted("rm", doubt))
    assert nothing_left(doubted, LOST, FREE) == doubt.value
    assert nothing_left(doubted, UNDECLARED, FREE) == Again.UNDECLARED


@pytest.mark.parametrize(
    ("first", "last", "demands"),
    [
        (NOTHING, NOTHING, FREE),
        (LOST, NOTHING, FREE),
        (UNDECLARED, replace(UNDECLARED, misfits=(MISFIT,)), FREE),
        (replace(UNDECLARED, shown=True), UNDECLARED, FREE),
        (UNDECLARED, Answer(held=TEXT), FREE),
        (UNDECLARED, CALLED, FREE),
        (UNDECLARED, replace(UNDECLARED, incomplete="content_filter"), FREE),
        (UNDECLARED, replace(UNDECLARED, error=GONE), FREE),
        (UNDECLARED, UNDECLARED, CALL_DEMANDED),
    ],
)
def test_otherwise_something_is(first: Answer, last: Answer, demands: Demands) -> None:
    assert not nothing_left(first, last, demands)


# The end


def test_what_is_held_of_an_answer_that_stands_leaves_with_its_end() -> None:
    assert end_of(MALFORMED, FREE, Usage(3)) == (*TEXT, TurnFinished(Usage(3)))
    assert end_of(replace(NOTHING, incomplete="content_filter"), FREE, Usage()) == (
        TurnFinished(Usage(), "content_filter"),
    )


@pytest.mark.parametrize(
    ("answer", "demands", "code"),
    [
        (replace(MALFORMED, error=GONE), CALL_DEMANDED, "backend_disconnected"),
        (MISFITTING, FREE, "tool_arguments_invalid"),
        (replace(MALFORMED, hold=Hold.REQUIRED), CALL_DEMANDED, "tool_call_missing"),
        (replace(written("Well."), unfit=Unfit("it is no JSON")), JSON, "output_invalid"),
        (replace(CALLED, hold=Hold.STRICT, held=CALL, error=GONE), FREE, "backend_disconnected"),
        (replace(LENIENT, error=GONE), FREE, "backend_disconnected"),
        (replace(SAID, broken="it broke"), FREE, "tool_call_broken"),
    ],
)
def test_nothing_goes_before_a_refusal_that_would_look_like_an_answer(
    answer: Answer, demands: Demands, code: str
) -> None:
    (end,) = end_of(answer, demands, Usage())
    assert isinstance(end, TurnFailed)
    assert end.error.code == code


def test_text_that_was_held_on_suspicion_is_not_lost_with_the_connection() -> None:
    assert end_of(replace(MALFORMED, error=GONE), FREE, Usage()) == (*TEXT, TurnFailed(GONE))


@pytest.mark.parametrize(
    ("names", "wanted"), [(None, "a tool"), (("search",), "the tool 'search'"), (("search", "read_note"), "a tool")]
)
def test_a_call_that_never_came_is_named_as_it_was_asked_for(names: tuple[str, ...] | None, wanted: str) -> None:
    (end,) = end_of(NOTHING, Demands(call=True, names=names), Usage())
    assert isinstance(end, TurnFailed)
    assert f"did not call {wanted} although" in end.error.message
    assert end.error.param == "tool_choice"


def test_a_cut_answer_owes_no_call() -> None:
    (end,) = end_of(replace(NOTHING, incomplete="max_output_tokens"), CALL_DEMANDED, Usage())
    assert end == TurnFinished(Usage(), "max_output_tokens")


ANSWERS = st.builds(
    Answer,
    hold=st.sampled_from(list(Hold)),
    held=st.sampled_from([(), TEXT, CALL, (*TEXT, *CALL)]),
    shown=st.booleans(),
    calls=st.integers(0, 1),
    undeclared=st.integers(0, 1),
    written=st.sampled_from(["", "Well.", '{"a": 1}']),
    malformed=st.none() | st.just("it is cut off"),
    repeated=st.none() | st.just("search"),
    misfits=st.just(()) | st.just((MISFIT,)),
    broken=st.none() | st.just("it broke"),
    incomplete=st.none() | st.just("max_output_tokens"),
    error=st.none() | st.just(GONE),
)


@given(ANSWERS, ANSWERS, st.sampled_from([FREE, CALL_DEMANDED, JSON]))
def test_whatever_two_answers_were_the_turn_has_one_end(first: Answer, second: Answer, demands: Demands) -> None:
    last = held_to_format(settled(first, second, demands), demands.output)
    *before, end = end_of(last, demands, Usage())
    assert isinstance(end, TurnFinished | TurnFailed)
    assert not any(isinstance(event, TurnFinished | TurnFailed) for event in before)
    if first.error is None and second.error is None:
        assert not (isinstance(end, TurnFailed) and end.error is GONE)


@given(ANSWERS, st.sampled_from([FREE, CALL_DEMANDED, JSON]))
def test_an_answer_with_calls_that_left_is_never_asked_for_again(answer: Answer, demands: Demands) -> None:
    if answer.calls and not answer.misfits:
        assert fault_of(answer, demands) is None
