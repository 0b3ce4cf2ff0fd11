"""A strict tool's call leaves only if its arguments fit, another's is asked for once more."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from parser import Tool, ToolRegistry, write_call
from prompts import ChoiceMode, ToolChoice
from proxy.contracts import TextPiece, ToolCallStarted, TurnEnded, TurnFinished
from proxy.errors import BackendError, RequestError
from proxy.turn import CallRelease
from tests.proxy.turn.playing import BROKEN, READ_A, ask, keyless_model, play
from tests.support.memory_backend import USAGE, Script
from tests.support.parts import text_of_parts

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
    added = text_of_parts(second.parts).removeprefix("What is in a.md?")
    assert "arguments of its call of reserve do not fit" in added
    assert PROBLEM in added
    assert "<tool_call>" not in added
    assert outcome.report.again == ["arguments_misfit"]
    assert outcome.report.counts["refused"] == {"arguments_misfit": 1}


async def test_behind_a_call_that_does_not_fit_nothing_leaves() -> None:
    outcome = await play(f"I reserve.\n{BAD}\nDone.\n{READ_A}", f"I reserve.\n{GOOD}", request=REQUEST, chunk=5)
    assert (outcome.text, outcome.calls) == ("I reserve.\n", [("reserve", '{"count": 2}')])


@pytest.mark.parametrize("choice", [ToolChoice(), ToolChoice(ChoiceMode.REQUIRED, ("reserve",))])
async def test_a_call_that_stays_wrong_is_a_failure_that_says_why(choice: ToolChoice) -> None:
    outcome = await play(BAD, BAD, request=replace(REQUEST, choice=choice))
    assert list(outcome.events) == [outcome.end]
    assert outcome.error.code == "tool_arguments_invalid"
    assert "'reserve'" in outcome.error.message
    assert PROBLEM in outcome.error.message
    assert not outcome.error.retryable


async def test_arguments_that_json_does_not_know_do_not_fit() -> None:
    outcome = await play(*[write_call("reserve", '{"count": 1e999}')] * 2, request=REQUEST)
    assert outcome.error.message.endswith("that do not fit its schema: they are not valid JSON.")


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
    outcome = await play(f"One {READ_A}\ntwo {GOOD}\nthree", request=REQUEST, chunk=4)
    assert outcome.text == "One \ntwo \nthree"
    kinds = [type(event).__name__ for event in outcome.events if not isinstance(event, TurnFinished)]
    assert kinds[-1] == "AnswerText"


async def test_a_strict_call_does_not_leave_live() -> None:
    live = keyless_model(release=CallRelease.LIVE)
    outcome = await play(BAD, GOOD, request=REQUEST, options=live, chunk=2)
    assert outcome.calls == [("reserve", '{"count": 2}')]
    assert sum(isinstance(event, ToolCallStarted) for event in outcome.events) == 1


LENIENT = ask(
    registry=ToolRegistry([Tool("read_note", "Read a note.", '{"type":"object"}'), Tool("reserve", None, COUNT)])
)
UNFIT = ("reserve", '{"count": "two"}')
LEFT = "A call of the tool 'reserve' left with arguments that do not fit its schema."


@pytest.mark.parametrize("chunk", [0, 1, 7])
async def test_a_lenient_call_that_does_not_fit_is_asked_for_once_more(chunk: int) -> None:
    outcome = await play(f"I reserve.\n{BAD}", f"I reserve.\n{GOOD}", request=LENIENT, chunk=chunk)
    assert outcome.text == "I reserve.\n"
    assert outcome.calls == [("reserve", '{"count": 2}')]
    assert outcome.report.again == ["arguments_misfit"]
    assert (outcome.report.counts["misfits"], outcome.report.warnings) == ({}, [])


@pytest.mark.parametrize("choice", [ToolChoice(), ToolChoice(ChoiceMode.REQUIRED, ("reserve",))])
async def test_if_it_comes_again_it_is_handed_on_with_a_warning(choice: ToolChoice) -> None:
    outcome = await play(BAD, BAD, request=replace(LENIENT, choice=choice))
    assert outcome.finished
    assert outcome.calls == [UNFIT]
    assert outcome.report.counts["misfits"] == {"reserve": 1}
    assert outcome.report.warnings == [LEFT]
    assert outcome.report.calls == ["reserve"]


@pytest.mark.parametrize("second", [BROKEN, "", BackendError("gone"), write_call("rm_rf", "{}")])
async def test_it_is_handed_on_too_if_what_comes_instead_is_no_better(second: Script) -> None:
    outcome = await play(f"I reserve. {BAD}\nDone.", second, request=LENIENT)
    assert outcome.finished
    assert (outcome.text, outcome.calls) == ("I reserve. \nDone.", [UNFIT])
    assert outcome.report.counts["misfits"] == {"reserve": 1}


async def test_an_answer_in_text_is_taken_instead_of_it_but_where_a_call_is_demanded() -> None:
    outcome = await play(BAD, "How many seats?", request=LENIENT)
    assert (outcome.text, outcome.calls, outcome.report.warnings) == ("How many seats?", [], [])
    demanding = replace(LENIENT, choice=ToolChoice(ChoiceMode.REQUIRED))
    outcome = await play(BAD, "How many seats?", request=demanding)
    assert (outcome.text, outcome.calls, outcome.report.warnings) == ("", [UNFIT], [LEFT])


async def test_of_two_lenient_calls_neither_leaves_before_the_second_answer() -> None:
    outcome = await play(BAD + READ_A, GOOD + READ_A, request=LENIENT)
    assert outcome.calls == [("reserve", '{"count": 2}'), ("read_note", '{"path": "a.md"}')]
    outcome = await play(BAD + READ_A + BAD, "", request=LENIENT)
    assert outcome.calls == [UNFIT, ("read_note", '{"path": "a.md"}'), UNFIT]
    assert outcome.report.counts["misfits"] == {"reserve": 2}


async def test_behind_a_call_that_has_left_nothing_is_asked_for_again() -> None:
    """That call would come twice. Where nobody reads along nothing has left before the end."""
    outcome = await play(READ_A + BAD, request=LENIENT)
    assert outcome.calls == [("read_note", '{"path": "a.md"}'), UNFIT]
    assert outcome.report.warnings == [LEFT]
    outcome = await play(READ_A + BAD, READ_A + GOOD, request=replace(LENIENT, streamed=False))
    assert outcome.calls == [("read_note", '{"path": "a.md"}'), ("reserve", '{"count": 2}')]


async def test_a_lenient_call_that_left_live_has_left() -> None:
    outcome = await play(BAD, request=LENIENT, options=keyless_model(release=CallRelease.LIVE), chunk=3)
    assert (outcome.calls, outcome.report.counts["misfits"]) == ([UNFIT], {"reserve": 1})


async def test_beside_a_strict_tool_a_lenient_call_keeps_its_own_rule() -> None:
    registry = ToolRegistry([*LENIENT.registry, Tool("book", None, COUNT, strict=True)])
    outcome = await play(BAD, BAD, request=ask(registry=registry))
    assert outcome.calls == [UNFIT]
    book = write_call("book", '{"count": "two"}')
    outcome = await play(BAD + book, BAD + book, request=ask(registry=registry))
    assert outcome.calls == []
    assert "'book'" in outcome.error.message


async def test_a_cut_answer_keeps_its_lenient_call() -> None:
    outcome = await play([TextPiece(BAD), TurnEnded(USAGE, "max_output_tokens")], request=LENIENT)
    assert outcome.calls == [UNFIT]
    assert outcome.end == TurnFinished(USAGE, "max_output_tokens")
    assert outcome.report.warnings == [LEFT]


async def test_the_client_is_told_of_a_failure_and_not_of_a_call_that_was_held() -> None:
    outcome = await play([TextPiece(BAD), BackendError("gone")], request=LENIENT)
    assert (outcome.calls, outcome.report.warnings) == ([], [])
    assert outcome.error.message == "gone"


@pytest.mark.parametrize("schema", ['{"type": "strng"}', '{"$ref": "https://example.com/schema.json"}'])
async def test_a_lenient_tool_may_have_any_schema(schema: str) -> None:
    outcome = await play(BAD, request=ask(registry=ToolRegistry([Tool("reserve", None, schema)])))
    assert outcome.calls == [UNFIT]
    assert outcome.report.counts["unchecked"] == {"the schema is none": 1}


async def test_a_strict_tool_without_parameters_takes_any() -> None:
    outcome = await play(BAD, request=ask(registry=ToolRegistry([Tool("reserve", strict=True)])))
    assert len(outcome.calls) == 1


async def test_a_cut_answer_with_a_call_that_does_not_fit_fails_at_once() -> None:
    outcome = await play([TextPiece(BAD), TurnEnded(USAGE, "max_output_tokens")], request=REQUEST)
    assert outcome.error.code == "tool_arguments_invalid"


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ('{"type": "strng"}', "'strng'"),
        ('{"$ref": "https://example.com/schema.json"}', "https://example.com/schema.json"),
        ('{"$ref": "file:///etc/passwd"}', "file:///etc/passwd"),
        ('{"multipleOf": 0}', "at 'multipleOf'"),
        ('{"properties": {"a": {"pattern": "(?<=a)b"}}}', "the pattern '(?<=a)b' cannot be used"),
        ('{"$defs": {"a": {"patternProperties": {"(a)\\\\1": {}}}}}', "the pattern '(a)\\1' cannot be used"),
    ],
)
async def test_a_strict_tool_whose_schema_is_none_is_refused_before_the_turn(schema: str, problem: str) -> None:
    outcome = await play(request=ask(registry=ToolRegistry([Tool("reserve", None, schema, strict=True)])))
    assert isinstance(outcome.error, RequestError)
    assert (outcome.error.status, outcome.error.code, outcome.error.param) == (
        400,
        "invalid_function_parameters",
        "tools",
    )
    assert outcome.error.message.startswith("Invalid schema for function 'reserve': ")
    assert problem in outcome.error.message


ROUND = '{"properties": {"count": {"$ref": "#"}}, "$ref": "#"}'


async def test_a_strict_call_that_cannot_be_checked_in_bounds_does_not_leave() -> None:
    outcome = await play(BAD, BAD, request=ask(registry=ToolRegistry([Tool("reserve", None, ROUND, strict=True)])))
    assert outcome.calls == []
    assert outcome.error.code == "tool_arguments_invalid"
    assert "whether they fit cannot be told, as the check goes too deep" in outcome.error.message


async def test_a_lenient_call_that_cannot_be_checked_in_bounds_leaves_and_is_counted() -> None:
    outcome = await play(BAD, request=ask(registry=ToolRegistry([Tool("reserve", None, ROUND)])))
    assert len(outcome.calls) == 1
    assert outcome.report.counts["unchecked"] == {"the check goes too deep": 1}


ROWS = """{"type":"object","properties":{"rows":{"type":"array","items":{"type":"object","properties":{
    "id":{"type":"integer"},"state":{"enum":["open","closed"]}},"required":["id","state"],
    "additionalProperties":false}}}}"""


@pytest.mark.parametrize("count", [20, 40, 100, 10_000])
async def test_of_many_rows_a_wrong_one_is_seen_wherever_it_stands(count: int) -> None:
    rows = [{"id": n, "state": "open"} for n in range(count - 1)] + [{"id": count, "state": "gone"}]
    call = write_call("put", json.dumps({"rows": rows}))
    outcome = await play(call, call, request=ask(registry=ToolRegistry([Tool("put", None, ROWS, strict=True)])))
    assert outcome.calls == []
    assert f"at 'rows[{count - 1}].state': 'gone' is not one of" in outcome.error.message


def patches(*, grammar: str) -> ToolRegistry:
    schema = '{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}'
    return ToolRegistry([Tool("patch", "Patch.", schema, strict=True, grammar=grammar)])


async def test_an_input_is_held_to_the_grammar_of_its_tool() -> None:
    bad, good = (write_call("patch", json.dumps({"input": text})) for text in ("b", "aa"))
    outcome = await play(bad, good, request=ask(registry=patches(grammar='start: "a"+')))
    assert outcome.calls == [("patch", '{"input": "aa"}')]
    added = text_of_parts(outcome.backend.prompts[1].parts)
    assert "at 'input': it does not match its Lark grammar from character 1 on" in added


async def test_an_input_may_leave_if_its_grammar_cannot_be_read() -> None:
    outcome = await play(write_call("patch", '{"input": "b"}'), request=ask(registry=patches(grammar="start: nothing")))
    assert outcome.calls == [("patch", '{"input": "b"}')]
    assert [reason.partition(":")[0] for reason in outcome.report.counts["unchecked"]] == ["the grammar cannot be read"]
