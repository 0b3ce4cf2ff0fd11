"""The keywords that are ours."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.schema import read_schema

# A schema, values that fit, values that do not.
CASES: list[tuple[Any, list[Any], list[Any]]] = [
    ({"pattern": "b+"}, ["abba", 5], ["aca"]),
    ({"patternProperties": {"^n_": {"type": "integer"}}}, [{"n_a": 1, "a": ""}, "n_a"], [{"n_a": ""}]),
    ({"patternProperties": {"^n_": True}, "additionalProperties": False}, [{"n_a": 1}, []], [{"a": 1}]),
    ({"patternProperties": {"^n_": True}, "additionalProperties": {"const": 0}}, [{"n_a": 1, "a": 0}], [{"a": 1}]),
    ({"properties": {"a": True}, "additionalProperties": False}, [{"a": 1}, {}], [{"b": 1}]),
    ({"propertyNames": {"pattern": "^[a-z]+$"}}, [{"abc": 1}], [{"A": 1}]),
    ({"uniqueItems": True}, [[1, True], ["1", 1], [], {}], [[1, 1], [[1], [1]], [{"a": 1, "b": 2}, {"b": 2, "a": 1}]]),
    ({"uniqueItems": False}, [[1, 1]], []),
    ({"multipleOf": 5}, [10, 0, -5, "x", True], [7, 2.5]),
    ({"multipleOf": 0.01}, [19.99, 0.3, 7, 1e15], [19.995]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "fitting", "unfitting"), CASES)
def test_a_keyword_lets_through_what_fits(schema: Any, fitting: list[Any], unfitting: list[Any]) -> None:
    read = read_schema(json.dumps(schema))
    assert [value for value in fitting if read.misfit(value) is not None] == []
    assert [value for value in unfitting if read.misfit(value) is None] == []
