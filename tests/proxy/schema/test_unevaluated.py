"""What no other keyword has met."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.schema import read_schema

CLOSED = {"unevaluatedProperties": False}
REST = {"unevaluatedItems": {"type": "null"}}
DRAFT_2019 = {"$schema": "https://json-schema.org/draft/2019-09/schema"}
HAS_A = {"properties": {"a": True}, "required": ["a"]}

# A schema, values that fit, values that do not.
CASES: list[tuple[Any, list[Any], list[Any]]] = [
    ({**CLOSED, "properties": {"a": True}}, [{"a": 1}, {}, []], [{"b": 1}]),
    ({**CLOSED, "patternProperties": {"^n_": True}}, [{"n_a": 1}], [{"a": 1}]),
    ({**CLOSED, "additionalProperties": True}, [{"a": 1}], []),
    ({**CLOSED, "$ref": "#/$defs/a", "$defs": {"a": HAS_A}}, [{"a": 1}], [{"a": 1, "b": 1}]),
    ({**CLOSED, "anyOf": [HAS_A, {"properties": {"b": True}}]}, [{"a": 1, "b": 1}, {"b": 1}], [{"a": 1, "c": 1}]),
    ({**CLOSED, "if": HAS_A, "then": {"properties": {"b": True}}}, [{"a": 1, "b": 1}], [{"b": 1}]),
    ({**CLOSED, "if": HAS_A, "else": {"properties": {"c": True}}}, [{"a": 1}, {"c": 1}], [{"a": 1, "c": 1}]),
    ({**CLOSED, "dependentSchemas": {"a": {"properties": {"a": True, "b": True}}}}, [{"a": 1, "b": 1}], [{"b": 1}]),
    ({**CLOSED, "not": {"properties": {"a": False}}}, [], [{"a": 1}]),
    ({**CLOSED, "allOf": [{"unevaluatedProperties": {"type": "null"}}]}, [{"a": None}], [{"a": 1}]),
    ({"unevaluatedProperties": {"type": "null"}, "properties": {"a": True}}, [{"a": 1, "b": None}], [{"b": 1}]),
    ({**REST, "prefixItems": [True]}, [[1, None], {}], [[1, 2]]),
    ({**REST, "items": True}, [[1, 2]], []),
    ({**REST, "contains": {"type": "string"}}, [["a", None, "b"]], [["a", 1]]),
    ({**REST, "oneOf": [{"prefixItems": [{"const": 1}]}, {"prefixItems": [{"const": 2}]}]}, [[1], [2, None]], [[1, 1]]),
    ({**DRAFT_2019, **REST, "items": [True]}, [[1, None]], [[1, 2]]),
    ({**DRAFT_2019, **REST, "items": [True], "additionalItems": {"type": "integer"}}, [[1, 2]], [[1, "a"]]),
    ({**DRAFT_2019, **CLOSED, "$recursiveAnchor": True, "properties": {"a": {"$recursiveRef": "#"}}}, [{"a": {}}],
     [{"a": {"b": 1}}]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "fitting", "unfitting"), CASES)
def test_what_is_left_over_has_to_fit(schema: Any, fitting: list[Any], unfitting: list[Any]) -> None:
    read = read_schema(json.dumps(schema))
    assert [value for value in fitting if read.misfit(value) is not None] == []
    assert [value for value in unfitting if read.misfit(value) is None] == []


def test_it_says_what_is_left_over() -> None:
    assert read_schema(json.dumps(CLOSED)).misfit({"a": 1, "b": 2}) == (
        "Unevaluated properties are not allowed ('a', 'b' were unexpected)"
    )
    assert read_schema(json.dumps({"unevaluatedProperties": {"type": "null"}})).misfit({"a": 1}) == (
        "Unevaluated properties are not valid under the given schema ('a' was unevaluated and invalid)"
    )
    assert read_schema(json.dumps(REST)).misfit([1]) == "Unevaluated items are not allowed (1 was unexpected)"


def test_a_large_object_is_judged() -> None:
    members = {f"k{n}": n for n in range(5_000)}
    schema = read_schema(json.dumps({**CLOSED, "patternProperties": {"^k": {"type": "integer"}}}))
    assert schema.misfit(members) is None
    assert schema.misfit({**members, "a": 1}) is not None
