"""The set is sound: whoever answers rightly is right, and what it asks can be asked."""

from __future__ import annotations

import json
from collections import Counter
from itertools import permutations

import pytest
from jsonschema import Draft202012Validator

from prompts import PastCall, ToolResult, UserTurn
from proxy.cli.eval.cases import AFTER_RESULTS, CATEGORIES, HALVES, EvalCase, WantedCall, chosen, load_cases
from proxy.cli.eval.grade import MadeCall, Mistake, mistakes

CASES = load_cases()
TOOLS = {tool.name: tool for case in CASES for tool in case.request.registry}


def made(call: WantedCall) -> MadeCall:
    return MadeCall(call.name, json.dumps(call.example))


def gold_text(case: EvalCase) -> str:
    return " ".join(words.partition("|")[0] for words in case.says) or "Gladly."


def found(case: EvalCase, calls: list[MadeCall], text: str = "") -> tuple[Mistake, ...]:
    return mistakes(case.calls, case.says, case.request.registry, calls, text)


def test_it_is_large_enough_and_its_halves_are_alike() -> None:
    counted = Counter((case.category, case.half) for case in CASES)
    assert set(counted) == {(category, half) for category in CATEGORIES for half in HALVES}
    for category in CATEGORIES:
        # What was seen while rules were written for it has moved over.
        times = 3 if category in AFTER_RESULTS else 1
        assert counted[category, HALVES[0]] == times * counted[category, HALVES[1]]
    follow_ups = sum(case.category in AFTER_RESULTS for case in CASES)
    assert follow_ups >= 20
    assert len(CASES) - follow_ups >= 60


def test_no_case_is_there_twice() -> None:
    assert len({case.id for case in CASES}) == len(CASES)
    assert len({repr(case.request.transcript) for case in CASES}) == len(CASES)


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_a_tools_parameters_are_a_schema(tool: object) -> None:
    schema = json.loads(getattr(tool, "parameters"))  # noqa: B009 -- what a case has for a tool
    Draft202012Validator.check_schema(schema)
    assert set(schema["required"]) <= set(schema["properties"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_case_can_be_right(case: EvalCase) -> None:
    assert found(case, [made(call) for call in case.calls], "" if case.calls else gold_text(case)) == ()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_each_value_that_a_case_takes_fits_the_tools_schema(case: EvalCase) -> None:
    for call in case.calls:
        schema = json.loads(TOOLS[call.name].parameters or "{}")
        properties = schema["properties"]
        assert {*schema["required"]} <= {*call.exact, *call.holds} <= {*properties}
        assert {*call.may} <= {*properties} - {*call.exact, *call.holds}
        for name, values in call.exact.items():
            for value in values:
                Draft202012Validator(properties[name]).validate(value)
        assert all(properties[name]["type"] == "string" for name in call.holds)


@pytest.mark.parametrize("case", [case for case in CASES if len(case.calls) > 1], ids=lambda case: case.id)
def test_no_call_of_a_case_stands_for_another_one(case: EvalCase) -> None:
    for one, other in permutations(case.calls, 2):
        assert mistakes([one], (), case.request.registry, [made(other)], "") != ()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_case_is_asked_as_its_category_says(case: EvalCase) -> None:
    entries = case.request.transcript.entries
    assert (case.category in AFTER_RESULTS) == isinstance(entries[-1], ToolResult)
    assert isinstance(entries[-1], ToolResult | UserTurn)
    assert bool(case.calls) == (case.category not in {"no_tool", "refusal", "answer"})
    assert bool(case.says) == (case.category == "answer")
    assert (len(case.calls) > 1) == (case.category == "parallel")
    assert (len(entries) > 2) >= (case.category == "turns")
    asked = [(entry.call_id, entry.name) for entry in entries if isinstance(entry, PastCall)]
    answered = [entry.call_id for entry in entries if isinstance(entry, ToolResult)]
    assert [call_id for call_id, _ in asked] == answered
    assert {name for _, name in asked} <= {tool.name for tool in case.request.registry}


@pytest.mark.parametrize("case", [case for case in CASES if case.category == "optional"], ids=lambda case: case.id)
def test_a_case_on_optional_parameters_asks_for_one(case: EvalCase) -> None:
    for call in case.calls:
        assert {*call.exact} - {*json.loads(TOOLS[call.name].parameters or "{}")["required"]}


def test_a_selection_has_all_categories_and_those_with_the_same_tools_together() -> None:
    few = chosen(CASES, every=5)
    assert {(case.category, case.half) for case in few} == {(case.category, case.half) for case in CASES}
    order = [case.tools for case in few]
    assert order == sorted(order)
    assert len(few) < len(CASES) / 3


def test_a_selection_is_of_one_half_and_of_some_categories() -> None:
    some = chosen(CASES, half="confirmation", categories=["single", "answer"])
    assert {(case.category, case.half) for case in some} == {("single", "confirmation"), ("answer", "confirmation")}
    assert sorted(case.id for case in chosen(CASES)) == sorted(case.id for case in CASES)
