"""Strict tools: a call leaves only if its arguments fit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from parser import Tool, ToolRegistry, write_call
from prompts import ChoiceMode, Text, ToolChoice
from proxy.contracts import TextPiece, ToolCallStarted, TurnEnded, TurnFinished
from proxy.errors import BackendError, RequestError
from proxy.turn import CallRelease, TurnOptions
from tests.proxy.turn.playing import BROKEN, READ_A, ask, play
from tests.support.memory_backend import USAGE

COUNT = '{"type":"object","properties":{"count":{"type":"integer"}},"required":["count"],"additionalProperties":false}'
STRICT = ToolRegistry(
    [Tool("read_note", "Read a note.", '{"type":"object"}'), Tool("reserve", "Reserve seats.", COUNT, strict=True)]
)
GOOD = write_call("reserve", '{"count": 2}')
BAD = write_call("reserve", '{"count": "two"}')
PROBLEM = "at 'count': 'two' is not of type 'integer'"
REQUEST = ask(registry=STRICT)


async def test_a_call_that_fits_leaves() -> None:
    outcome = await play(f"I reserve.\n{GOOD}", request=REQUEST, chunk=3)
    assert outcome.text == "I reserve.\n"
    assert outcome.calls == [("reserve", '{"count": 2}')]
    assert outcome.report.calls == ["reserve"]


@pytest.mark.parametrize("chunk", [0, 1, 7])
async def test_a_call_that_does_not_fit_is_asked_for_once_more_without_it(chunk: int) -> None:
    outcome = await play(f"I reserve.\n{BAD}", f"I reserve.\n{GOOD}", request=REQUEST, chunk=chunk)
    assert outcome.text == "I reserve.\n"
    assert outcome.calls == [("reserve", '{"count": 2}')]
    assert outcome.end == TurnFinished(USAGE + USAGE)
    first, second = outcome.backend.prompts
    assert first.developer == second.developer
    added = "".join(part.text for part in second.parts if isinstance(part, Text)).removeprefix("What is in a.md?")
    assert "arguments of its call of reserve do not fit" in added
    assert PROBLEM in added
    assert "<tool_call>" not in added
    assert outcome.report.again == ["arguments_misfit"]
    assert outcome.report.refused == {"arguments_misfit": 1}


@pytest.mark.parametrize("choice", [ToolChoice(), ToolChoice(ChoiceMode.REQUIRED, ("reserve",))])
async def test_a_call_that_stays_wrong_is_a_failure_that_says_why(choice: ToolChoice) -> None:
    outcome = await play(BAD, BAD, request=replace(REQUEST, choice=choice))
    assert list(outcome.events) == [outcome.end]
    assert outcome.error.code == "tool_arguments_invalid"
    assert "'reserve'" in outcome.error.message
    assert PROBLEM in outcome.error.message
    assert not outcome.error.retryable


async def test_a_call_that_fits_once_its_values_are_put_right_leaves_at_once() -> None:
    outcome = await play(write_call("reserve", '{"count": "2"}'), request=REQUEST)
    assert outcome.calls == [("reserve", '{"count": 2}')]


async def test_of_two_calls_neither_leaves_when_one_does_not_fit() -> None:
    """The second answer repeats the good one, and a client must not make it twice."""
    for bad_first in (READ_A + BAD, BAD + READ_A):
        outcome = await play(f"Both.\n{bad_first}", f"Both.\n{READ_A}{GOOD}", request=REQUEST, chunk=5)
        assert outcome.text == "Both.\n"
        assert outcome.calls == [("read_note", '{"path": "a.md"}'), ("reserve", '{"count": 2}')]
        assert outcome.report.calls == ["read_note", "reserve"]


async def test_a_good_call_beside_one_that_stays_wrong_does_not_leave() -> None:
    outcome = await play(READ_A + BAD, READ_A + BAD, request=REQUEST)
    assert outcome.calls == []
    assert outcome.error.code == "tool_arguments_invalid"


async def test_without_parallel_calls_only_the_first_has_to_fit() -> None:
    outcome = await play(READ_A + BAD, request=replace(REQUEST, parallel=False))
    assert outcome.calls == [("read_note", '{"path": "a.md"}')]


async def test_an_answer_in_text_is_taken_instead_of_the_call() -> None:
    outcome = await play(f"I reserve. {BAD}", "How many seats?", request=REQUEST)
    assert outcome.text == "I reserve. How many seats?"
    assert outcome.finished


@pytest.mark.parametrize("second", [BROKEN, ""])
async def test_an_answer_that_is_no_better_is_a_failure(second: str) -> None:
    outcome = await play(f"I reserve. {READ_A}{BAD}", second, request=REQUEST)
    assert outcome.calls == []
    assert outcome.error.code == "tool_arguments_invalid"


async def test_when_the_second_answer_fails_its_error_is_the_end() -> None:
    outcome = await play(READ_A + BAD, BackendError("gone"), request=REQUEST)
    assert outcome.error.message == "gone"
    assert outcome.calls == []


async def test_calls_of_an_answer_that_breaks_off_do_not_leave() -> None:
    outcome = await play([TextPiece(GOOD), BackendError("gone")], request=REQUEST)
    assert outcome.calls == []
    assert outcome.error.message == "gone"


async def test_text_between_and_after_calls_keeps_its_place() -> None:
    outcome = await play(f"One {READ_A} two {GOOD} three", request=REQUEST, chunk=4)
    assert outcome.text == "One  two  three"
    kinds = [type(event).__name__ for event in outcome.events if not isinstance(event, TurnFinished)]
    assert kinds[-1] == "AnswerText"


async def test_a_strict_call_does_not_leave_live() -> None:
    live = TurnOptions(release=CallRelease.LIVE)
    outcome = await play(BAD, GOOD, request=REQUEST, options=live, chunk=2)
    assert outcome.calls == [("reserve", '{"count": 2}')]
    assert sum(isinstance(event, ToolCallStarted) for event in outcome.events) == 1


async def test_a_tool_that_is_not_strict_is_not_held_to_its_schema() -> None:
    registry = ToolRegistry([Tool("reserve", None, COUNT)])
    outcome = await play(BAD, request=ask(registry=registry))
    assert outcome.calls == [("reserve", '{"count": "two"}')]


async def test_a_strict_tool_without_parameters_takes_any() -> None:
    outcome = await play(BAD, request=ask(registry=ToolRegistry([Tool("reserve", strict=True)])))
    assert len(outcome.calls) == 1


async def test_a_cut_answer_with_a_call_that_does_not_fit_fails_at_once() -> None:
    outcome = await play([TextPiece(BAD), TurnEnded(USAGE, "max_output_tokens")], request=REQUEST)
    assert outcome.error.code == "tool_arguments_invalid"


@pytest.mark.parametrize(
    "schema",
    [
        '{"type": "strng"}',
        '{"$ref": "https://example.com/schema.json"}',
        '{"$ref": "file:///etc/passwd"}',
        '{"multipleOf": 0}',
    ],
)
async def test_a_strict_tool_whose_schema_is_none_is_refused_before_the_turn(schema: str) -> None:
    outcome = await play(request=ask(registry=ToolRegistry([Tool("reserve", None, schema, strict=True)])))
    assert isinstance(outcome.error, RequestError)
    assert (outcome.error.status, outcome.error.code, outcome.error.param) == (
        400,
        "invalid_function_parameters",
        "tools",
    )
    assert outcome.error.message.startswith("Invalid schema for function 'reserve': ")


async def test_a_call_that_cannot_be_checked_in_bounds_leaves_and_is_counted() -> None:
    registry = ToolRegistry(
        [Tool("reserve", None, '{"properties": {"count": {"$ref": "#"}}, "$ref": "#"}', strict=True)]
    )
    outcome = await play(BAD, request=ask(registry=registry))
    assert len(outcome.calls) == 1
    assert outcome.report.unchecked == {"the check goes too deep": 1}
