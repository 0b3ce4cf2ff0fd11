"""Demanded calls where a backend can hold its model to them: when, to what, and what becomes of a refusal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from parser import Tool, ToolRegistry, write_call
from prompts import ChoiceMode, ToolChoice, call_missing, write_held
from proxy.contracts import BackendEvent, TextPiece, TurnRequest
from proxy.errors import BackendError
from proxy.schema.call_schemas import calls_form
from proxy.turn import CallKeys, HeldCalls, HoldCalls, KeyMode, TurnOptions
from tests.proxy.turn.playing import keyless_model
from tests.support.memory_backend import MemoryBackend, Script
from tests.support.parts import text_of_parts

from .playing import Outcome, ask, outcome_of

PATH = '{"type":"object","properties":{"path":{"type":"string","pattern":"^a"}},"required":["path"]}'
READ = Tool("read_note", "Read a note.", PATH)
SEARCH = Tool("search", "Search.", None)
STRICT = Tool("read_note", "Read a note.", PATH, strict=True)
REQUIRED = ToolChoice(ChoiceMode.REQUIRED)
HELD = '{"calls": [{"name": "read_note", "arguments": {"path": "a.md"}}]}'
CALL = [("read_note", '{"path": "a.md"}')]
REMOTE = '{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}'
REFUSED = BackendError("No such keyword.", status=400, code="invalid_json_schema")


def demand(*tools: Tool, choice: ToolChoice = REQUIRED, parallel: bool = True, **changes: Any) -> TurnRequest:
    return ask(registry=ToolRegistry(tools or (READ, SEARCH)), choice=choice, parallel=parallel, **changes)


async def play(
    request: TurnRequest, *answers: Script, lanes: bool = False, options: TurnOptions | None = None
) -> Outcome:
    backend = MemoryBackend([*answers], chunk=3, holds_schemas=True, keeps_conversations=lanes)
    return await outcome_of(request, backend, options)


def schemas(outcome: Outcome) -> list[Any]:
    texts = [prompt.output_schema for prompt in outcome.backend.prompts]
    return [None if text is None else json.loads(text) for text in texts]


async def test_a_demanded_call_is_held_to_the_tools_schemas_and_needs_no_key() -> None:
    outcome = await play(demand(), HELD)
    [schema] = schemas(outcome)
    read, search = schema["properties"]["calls"]["items"]["anyOf"]
    assert read["properties"] == {"name": {"type": "string", "const": "read_note"}, "arguments": json.loads(PATH)}
    assert search["properties"]["arguments"] == {"type": "object"}
    assert all(form["required"] == ["name", "arguments"] for form in (read, search))
    assert outcome.calls == CALL
    assert outcome.finished
    assert outcome.report.held is True
    assert dict(outcome.report.counts["tiers"]) == {"D": 1}


async def test_the_model_is_told_how_its_answer_looks_and_the_block_stays_as_it_is() -> None:
    held = await play(demand(), HELD)
    off = keyless_model(held_calls=HeldCalls(HoldCalls.OFF))
    free = await play(demand(), write_call("read_note", '{"path": "a.md"}'), options=off)
    told, untold = held.backend.prompts[0], free.backend.prompts[0]
    assert calls_form(parallel=True) == '{"calls": [{"name": "...", "arguments": {...}}]}'
    assert text_of_parts(told.parts).splitlines()[-1] == write_held(calls_form(parallel=True))
    assert '{"calls"' not in str(untold.parts)
    assert len(told.developer or "") == len(untold.developer or "")
    assert untold.output_schema is None


async def test_of_a_named_tool_there_is_one_form() -> None:
    request = demand(choice=ToolChoice(ChoiceMode.REQUIRED, ("read_note",)))
    outcome = await play(request, HELD)
    [schema] = schemas(outcome)
    assert schema["properties"]["calls"]["items"]["properties"]["name"]["const"] == "read_note"
    assert outcome.calls == CALL


async def test_where_one_call_is_asked_for_there_is_no_array() -> None:
    outcome = await play(demand(parallel=False), '{"call": {"name": "read_note", "arguments": {"path": "a.md"}}}')
    [schema] = schemas(outcome)
    assert [*schema["properties"]] == ["call"]
    assert '{"call": {"name": "...", "arguments": {...}}}' in str(outcome.backend.prompts[0].parts)
    assert outcome.calls == CALL


@pytest.mark.parametrize("choice", [ToolChoice(), ToolChoice(ChoiceMode.NONE)])
async def test_nothing_is_held_where_no_call_is_demanded(choice: ToolChoice) -> None:
    outcome = await play(demand(choice=choice), "Hello.")
    assert schemas(outcome) == [None]


async def test_a_schema_is_sent_where_the_backend_can_hold_it_only_and_why_not_is_known() -> None:
    backend = MemoryBackend([write_call("read_note", '{"path": "a.md"}')])
    outcome = await outcome_of(demand(), backend)
    assert schemas(outcome) == [None]
    assert outcome.calls == CALL
    assert outcome.report.held == "subset"


class Picky(MemoryBackend):
    """Holds its model to schemas without a pattern."""

    def holds(self, schema: str) -> bool:
        return "pattern" not in schema


async def test_the_backend_says_of_each_schema_whether_it_can_hold_it() -> None:
    refused = await outcome_of(demand(), Picky([write_call("read_note", '{"path": "a.md"}')]))
    assert (schemas(refused), refused.report.held) == ([None], "subset")
    held = await outcome_of(demand(SEARCH), Picky(['{"calls": [{"name": "search", "arguments": {}}]}']))
    assert (held.report.held, held.calls) == (True, [("search", "{}")])


async def test_a_conversation_is_kept_before_an_answer_is_held() -> None:
    """An agent that always sends `required` reads its provider's cache; its second try is held."""
    tagged = await play(demand(), write_call("read_note", '{"path": "a.md"}'), lanes=True)
    assert schemas(tagged) == [None]
    again = await play(demand(), "No need.", HELD, lanes=True)
    assert [schema is not None for schema in schemas(again)] == [False, True]
    assert again.calls == CALL
    assert f"{call_missing()} {write_held(calls_form(parallel=True))}" in text_of_parts(again.backend.prompts[1].parts)
    strict = await play(demand(STRICT, SEARCH), HELD, lanes=True)
    assert [schema is not None for schema in schemas(strict)] == [True]
    assert strict.calls == CALL
    assert strict.report.difference is None
    told = [[prompt.calls_held for prompt in outcome.backend.prompts] for outcome in (tagged, again, strict)]
    assert told == [[False], [False, True], [True]]


async def test_a_refusal_is_answered_without_and_remembered_for_this_model_and_these_tools() -> None:
    options = keyless_model()
    tagged = write_call("read_note", '{"path": "a.md"}')
    first = await play(demand(), REFUSED, tagged, options=options)
    assert [schema is not None for schema in schemas(first)] == [True, False]
    assert first.calls == CALL
    assert first.report.held == "refused"
    assert '{"calls"' not in str(first.backend.prompts[1].parts)
    later = await play(demand(), tagged, options=options)
    assert (schemas(later), later.report.held) == ([None], "refused")
    assert schemas(await play(demand(model="other"), HELD, options=options)) != [None]
    assert schemas(await play(demand(READ), HELD, options=options)) != [None]


async def test_where_nothing_is_remembered_a_refusal_counts_for_its_turn() -> None:
    options = keyless_model(held_calls=HeldCalls(most=0))
    outcome = await play(demand(), REFUSED, "No.", write_call("read_note", '{"path": "a.md"}'), options=options)
    assert [schema is not None for schema in schemas(outcome)] == [True, False, False]
    assert schemas(await play(demand(), HELD, options=options)) != [None]


async def test_a_held_call_that_does_not_fit_all_the_same_is_asked_for_once_more() -> None:
    bad = '{"calls": [{"name": "read_note", "arguments": {"path": "b.md"}}]}'
    outcome = await play(demand(STRICT), bad, HELD)
    assert outcome.report.again == ["arguments_misfit"]
    assert outcome.calls == CALL


async def test_a_held_answer_in_which_the_server_fails_is_asked_for_once_more() -> None:
    failed = BackendError("It does not match the expected format.", status=502, code="backend_error")
    half: list[BackendEvent | BackendError] = [TextPiece(HELD[:30]), failed]
    outcome = await play(demand(), half, HELD)
    assert outcome.report.again == ["held_failed"]
    assert outcome.calls == CALL
    assert (await play(demand(), half, half)).error is failed
    assert (await play(demand(), failed)).error is failed


async def test_a_server_that_passes_over_the_schema_is_read_as_ever() -> None:
    outcome = await play(demand(), write_call("read_note", '{"path": "a.md"}'))
    assert outcome.calls == CALL


async def test_a_held_answer_that_is_cut_shows_nobody_half_a_call() -> None:
    outcome = await play(demand(max_output_tokens=8), HELD + " " * 400)
    assert outcome.text == ""
    assert outcome.calls == []
    assert outcome.finished


async def test_what_cannot_be_sent_is_not_and_why_is_known() -> None:
    outcome = await play(demand(Tool("read_note", None, REMOTE)), write_call("read_note", '{"path": "a.md"}'))
    assert schemas(outcome) == [None]
    assert outcome.report.held == "reference"
    assert outcome.calls == CALL


WRONG = write_call("read_note", '{"path": "b.md"}')


@pytest.mark.parametrize("before", ["", "I look.\n"])
@pytest.mark.parametrize("lanes", [False, True])
async def test_a_strict_call_that_did_not_fit_is_held_when_it_is_asked_for_again(before: str, lanes: bool) -> None:
    request = ask(registry=ToolRegistry([STRICT, SEARCH]))
    outcome = await play(request, before + WRONG, HELD, lanes=lanes)
    first, second = schemas(outcome)
    assert first is None
    assert len(second["properties"]["calls"]["items"]["anyOf"]) == 2
    assert (outcome.calls, outcome.text, outcome.finished) == (CALL, before, True)


async def test_any_other_second_answer_is_free() -> None:
    lenient = await play(ask(registry=ToolRegistry([READ])), WRONG, WRONG)
    broken = await play(ask(registry=ToolRegistry([STRICT])), "<tool_call>{", "Well.")
    off = keyless_model(held_calls=HeldCalls(HoldCalls.OFF))
    unheld = await play(ask(registry=ToolRegistry([STRICT])), WRONG, HELD, options=off)
    assert [schemas(outcome) for outcome in (lenient, broken, unheld)] == [[None, None]] * 3
    assert unheld.calls == []


async def test_a_strict_call_is_asked_for_without_a_schema_that_is_refused() -> None:
    request = ask(registry=ToolRegistry([STRICT]))
    outcome = await play(request, WRONG, REFUSED, write_call("read_note", '{"path": "a.md"}'))
    assert [schema is not None for schema in schemas(outcome)] == [False, True, False]
    assert outcome.calls == CALL


def hold_all() -> TurnOptions:
    """New ones for each test: they remember what was refused."""
    return keyless_model(held_calls=HeldCalls(HoldCalls.ALL))


def call_schemas(outcome: Outcome) -> list[Any]:
    texts = [prompt.call_schema for prompt in outcome.backend.prompts]
    return [None if text is None else json.loads(text) for text in texts]


async def test_a_call_that_nobody_demands_is_held_where_the_owner_wants_all_held() -> None:
    request = ask(registry=ToolRegistry([READ, SEARCH]))
    assert call_schemas(await play(request, "Hello.")) == [None]
    [schema] = call_schemas(await play(request, "Hello.", options=hold_all()))
    read, search = schema["anyOf"]
    assert list(read["properties"]) == ["key", "name", "arguments"]
    assert read["properties"]["key"] == {"type": "string", "maxLength": 32}
    assert read["properties"]["arguments"] == json.loads(PATH)
    assert read["required"] == search["required"] == ["name", "arguments"]
    unkeyed = TurnOptions(call_keys=CallKeys(KeyMode.OFF), held_calls=HeldCalls(HoldCalls.ALL))
    [schema] = call_schemas(await play(request, "Hello.", options=unkeyed))
    assert [list(form["properties"]) for form in schema["anyOf"]] == [["name", "arguments"]] * 2
    unheld = await play(ask(registry=ToolRegistry([Tool("t", None, REMOTE)])), "Hello.", options=hold_all())
    assert (call_schemas(unheld), unheld.report.held) == ([None], "reference")


async def test_a_second_try_is_held_too_and_a_plain_one_has_no_calls() -> None:
    outcome = await play(ask(registry=ToolRegistry([READ])), WRONG, WRONG, options=hold_all())
    assert [schema is not None for schema in call_schemas(outcome)] == [True, True]
    unknown = write_call("unknown", "{}")
    outcome = await play(ask(registry=ToolRegistry([READ])), unknown, "Hello.", options=hold_all())
    assert [schema is not None for schema in call_schemas(outcome)] == [True, False]


async def test_a_demanded_call_is_held_as_a_whole_answer_and_within_one_where_that_is_refused() -> None:
    outcome = await play(demand(), REFUSED, write_call("read_note", '{"path": "a.md"}'), options=hold_all())
    assert [schema is not None for schema in schemas(outcome)] == [True, False]
    assert [schema is not None for schema in call_schemas(outcome)] == [False, True]
