"""Structured output: the text that leaves is the JSON that was asked for."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from parser import ToolRegistry, write_call
from prompts import ChoiceMode, ToolChoice
from proxy.contracts import (
    MessageEnded,
    OutputFormat,
    Reasoning,
    ReasoningPiece,
    TextPiece,
    TurnEnded,
    TurnFinished,
)
from proxy.errors import BackendError, RequestError
from tests.proxy.turn.playing import BROKEN, READ_A, ask, outcome_of, play
from tests.support.memory_backend import USAGE, MemoryBackend
from tests.support.parts import text_of_parts

SCHEMA = '{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false}'
POINT = OutputFormat(SCHEMA, "point")
FIT = '{"x": 1}'
UNFIT = '{"x": "one"}'
PLAIN = ask(registry=ToolRegistry(), output_format=POINT)
BESIDE_TOOLS = ask(output_format=POINT)
JSON_MODE = ask(registry=ToolRegistry(), output_format=OutputFormat())


@pytest.mark.parametrize("chunk", [0, 1, 4])
@pytest.mark.parametrize(
    "answer",
    [FIT, f"\n{FIT}\n", f"```json\n{FIT}\n```", f"Here it is:\n\n```\n{FIT}\n```\nDone.", f"Sure: {FIT} as asked."],
)
async def test_what_stands_round_the_json_is_taken_off(answer: str, chunk: int) -> None:
    for request in (PLAIN, BESIDE_TOOLS):
        outcome = await play(answer, request=request, chunk=chunk)
        assert outcome.text == FIT
        assert outcome.end == TurnFinished(USAGE)


@pytest.mark.parametrize(
    "wanted", ["[1, 2]", "[[1], [2]]", '[{"x": 1}, {"x": 2}]', '{"x": [1]}', '{"x": {"y": 1}, "z": 2}']
)
async def test_any_kind_of_json_is_found_in_a_sentence(wanted: str) -> None:
    any_json = replace(PLAIN, output_format=OutputFormat('{"type": ["array", "object"]}'))
    assert (await play(f"Sure: {wanted} as asked.", request=any_json)).text == wanted


async def test_the_backend_is_given_the_schema_when_no_tool_is_offered() -> None:
    assert (await play(FIT, request=PLAIN)).backend.prompts[0].output_schema == SCHEMA
    assert (await play(FIT, request=JSON_MODE)).backend.prompts[0].output_schema is None


async def test_beside_tools_the_schema_stands_in_the_text_alone() -> None:
    prompt = (await play(FIT, request=BESIDE_TOOLS)).backend.prompts[0]
    assert prompt.output_schema is None
    assert prompt.developer is not None
    assert prompt.developer.rstrip().endswith(SCHEMA)


@pytest.mark.parametrize(
    ("answer", "text", "rule"),
    [
        ('{"x": 1}', '{"x": 1, "note": null}', "added_null"),
        ('{"x": "1", "note": ""}', '{"x": 1, "note": ""}', "coerced_number"),
    ],
)
async def test_an_answer_is_made_to_fit_as_arguments_are(answer: str, text: str, rule: str) -> None:
    """Beside tools no backend holds the model to the schema, and SDKs write what is optional as required or null."""
    schema = json.loads(SCHEMA)
    schema["properties"]["note"] = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    point = OutputFormat(json.dumps({**schema, "required": ["x", "note"]}), "point", strict=True)
    outcome = await play(f"Here it is: {answer}", request=replace(BESIDE_TOOLS, output_format=point))
    assert (outcome.text, outcome.report.again) == (text, [])
    assert dict(outcome.report.counts["repaired"]) == {rule: 1}


async def test_an_answer_that_does_not_fit_is_asked_for_once_more() -> None:
    outcome = await play(UNFIT, FIT, request=PLAIN)
    assert outcome.text == FIT
    shown = text_of_parts(outcome.backend.prompts[1].parts)
    assert "at 'x': 'one' is not of type 'integer'" in shown
    assert outcome.report.again == ["output_invalid"]
    assert outcome.end == TurnFinished(USAGE + USAGE)


@pytest.mark.parametrize("answer", [UNFIT, "I cannot.", "", f"{FIT} or {FIT}", "[1]"])
async def test_an_answer_that_stays_wrong_is_a_clear_failure(answer: str) -> None:
    outcome = await play(answer, answer, request=PLAIN)
    assert list(outcome.events) == [outcome.end]
    assert outcome.error.code == "output_invalid"
    assert not outcome.error.retryable


async def test_an_answer_without_json_is_told_so() -> None:
    assert (await play("I cannot.", "No.", request=PLAIN)).error.message.endswith(": it is not one JSON value.")


async def test_json_mode_wants_an_object() -> None:
    outcome = await play("[1, 2]", '{"a": [1, 2]}', request=JSON_MODE)
    assert outcome.text == '{"a": [1, 2]}'
    outcome = await play("[1, 2]", "[1, 2]", request=JSON_MODE)
    assert outcome.error.message.endswith("asks for: it is not a JSON object.")


async def test_commentary_before_the_json_is_not_shown() -> None:
    outcome = await play(
        [TextPiece("Let me think."), MessageEnded(), TextPiece(FIT), MessageEnded(), TurnEnded(USAGE)], request=PLAIN
    )
    assert outcome.text == FIT


async def test_reasoning_is_not_held_back() -> None:
    outcome = await play([ReasoningPiece(0, "hm"), TextPiece(FIT), TurnEnded(USAGE)], request=PLAIN)
    assert outcome.events[0] == Reasoning(0, "hm")


async def test_a_demanded_call_goes_before_the_form() -> None:
    request = replace(BESIDE_TOOLS, choice=ToolChoice(ChoiceMode.REQUIRED))
    outcome = await play(FIT, READ_A, request=request)
    assert len(outcome.calls) == 1
    assert outcome.report.again == ["call_missing"]


async def test_unreadable_markup_is_never_shown_for_json() -> None:
    outcome = await play(BROKEN, BROKEN, request=BESIDE_TOOLS)
    assert outcome.error.code == "output_invalid"
    assert outcome.text == ""


@pytest.mark.parametrize("chunk", [0, 3])
@pytest.mark.parametrize("written", [r"<tool_call>", r"<\\tool_call>"])
async def test_a_tag_in_the_json_is_part_of_it(written: str, chunk: int) -> None:
    request = replace(BESIDE_TOOLS, output_format=OutputFormat())
    outcome = await play(f'{{"tag": "{written}"}}', request=request, chunk=chunk)
    assert outcome.text == '{"tag": "<tool_call>"}'


async def test_after_calls_of_undeclared_tools_the_plain_answer_has_the_form() -> None:
    outcome = await play(write_call("rm_rf", "{}"), f"So: {FIT}", request=BESIDE_TOOLS)
    assert outcome.text == FIT
    assert outcome.backend.prompts[1].output_schema == SCHEMA


async def test_when_the_second_answer_fails_its_error_is_the_end() -> None:
    outcome = await play(UNFIT, BackendError("gone"), request=PLAIN)
    assert outcome.error.message == "gone"
    assert outcome.text == ""


async def test_a_cut_answer_is_shown_as_far_as_it_came() -> None:
    outcome = await play([TextPiece('{"x'), TurnEnded(USAGE, "max_output_tokens")], request=PLAIN)
    assert outcome.text == '{"x'
    assert outcome.end == TurnFinished(USAGE, "max_output_tokens")


async def test_a_schema_that_the_backend_refuses_is_left_to_the_text() -> None:
    refusal = BackendError("Invalid schema", status=400, code="invalid_json_schema")
    outcome = await play(refusal, FIT, request=PLAIN)
    assert outcome.text == FIT
    assert [prompt.output_schema for prompt in outcome.backend.prompts] == [SCHEMA, None]
    assert outcome.report.again == []


async def test_a_schema_that_is_none_is_refused_before_the_turn() -> None:
    outcome = await play(request=replace(PLAIN, output_format=OutputFormat('{"type": 5}', "point")))
    assert isinstance(outcome.error, RequestError)
    assert (outcome.error.status, outcome.error.code) == (400, "invalid_json_schema")
    assert outcome.error.param == "text.format.schema"
    assert (
        outcome.error.message
        == "Invalid schema for response_format 'point': at 'type': 5 is not valid under any of the given schemas."
    )
    nameless = await play(request=replace(PLAIN, output_format=OutputFormat('{"type": 5}')))
    assert nameless.error.message.startswith("Invalid schema for response_format 'json_schema': ")


LOOKS_BEHIND = '{"properties": {"x": {"pattern": "(?<=a)b"}}}'


async def test_a_pattern_that_cannot_be_used_is_refused_where_the_answer_has_to_fit() -> None:
    strict = replace(PLAIN, output_format=OutputFormat(LOOKS_BEHIND, "point", strict=True))
    outcome = await play(request=strict)
    assert isinstance(outcome.error, RequestError)
    assert outcome.error.message.startswith("Invalid schema for response_format 'point': the pattern '(?<=a)b' cannot")
    outcome = await play(FIT, request=replace(PLAIN, output_format=OutputFormat(LOOKS_BEHIND, "point")))
    assert outcome.text == FIT
    outcome = await play(FIT, request=replace(PLAIN, output_format=OutputFormat(strict=True)))
    assert outcome.text == FIT, "JSON mode has no pattern"


async def test_an_answer_that_cannot_be_checked_in_bounds_leaves_and_is_counted() -> None:
    outcome = await play(FIT, request=replace(PLAIN, output_format=OutputFormat('{"$ref": "#"}')))
    assert outcome.text == FIT
    assert outcome.report.counts["unchecked"] == {"the check goes too deep": 1}
    strict = replace(PLAIN, output_format=OutputFormat('{"$ref": "#"}', strict=True))
    outcome = await play(FIT, FIT, request=strict)
    assert "whether it fits cannot be told, as the check goes too deep" in outcome.error.message
    assert outcome.report.counts["unchecked"] == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(st.sampled_from('a`{}[]"\\\n'), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab`{", max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text("ab`{", max_size=3), JSON, max_size=3),
    st.sampled_from(["{}", "```json\n{}\n```", "So: {} ok"]),
)
def test_any_object_is_found_in_its_wrapping(value: dict[str, object], wrapping: str) -> None:
    text = json.dumps(value)
    if "```" in text and "```" in wrapping:
        return
    assert asyncio.run(play(wrapping.replace("{}", text), request=JSON_MODE)).text == text


@given(st.text(st.sampled_from('a`{}[]"\\\n '), max_size=60))
def test_whatever_leaves_can_be_parsed(answer: str) -> None:
    outcome = asyncio.run(outcome_of(JSON_MODE, MemoryBackend([answer] * 2)))
    assert isinstance(json.loads(outcome.text), dict) if outcome.finished else outcome.ending == "output_invalid"


@pytest.mark.parametrize("piece", ["{", "[", "```\n", "``` ", "` ", "}"])
async def test_a_long_answer_without_json_is_judged_in_no_time(piece: str) -> None:
    outcome = await outcome_of(JSON_MODE, MemoryBackend([piece * 50_000] * 2))
    assert outcome.ending == "output_invalid"
