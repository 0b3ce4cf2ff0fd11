"""The drafts, by what they say in different ways."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft7Validator, Draft201909Validator, Draft202012Validator

from proxy.schema import SchemaError, read_schema

DRAFT_4 = {"$schema": "http://json-schema.org/draft-04/schema#"}
DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}
DRAFT_2019 = {"$schema": "https://json-schema.org/draft/2019-09/schema"}
DRAFT_2020 = {"$schema": "https://json-schema.org/draft/2020-12/schema"}

# A schema, values that fit, values that do not.
CASES: list[tuple[Any, list[Any], list[Any]]] = [
    (True, [1, None], []),
    (False, [], [1]),
    ({"prefixItems": [{"type": "integer"}], "items": False}, [[1], []], [["1"], [1, 2]]),
    ({**DRAFT_7, "items": [{"type": "integer"}], "additionalItems": False}, [[1]], [["1"], [1, 2]]),
    ({**DRAFT_7, "definitions": {"a": {"type": "integer"}}, "$ref": "#/definitions/a"}, [1], ["1"]),
    ({**DRAFT_7, "dependencies": {"a": ["b"], "c": {"required": ["d"]}}}, [{"a": 1, "b": 1}], [{"a": 1}, {"c": 1}]),
    ({**DRAFT_4, "minimum": 1, "exclusiveMinimum": True}, [2], [1]),
    ({"definitions": {"a": {"type": "integer"}}, "items": {"$ref": "#/definitions/a"}}, [[1]], [["1"]]),
    ({"$schema": "urn:unheard-of", "dependentRequired": {"a": ["b"]}}, [{"b": 1}], [{"a": 1}]),
    ({"$defs": {"a": {"$anchor": "x", "type": "integer"}}, "$ref": "#x"}, [1], ["1"]),
    (
        {"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False},
        [{"a": 1}, {}],
        [{"b": 1}],
    ),
    (
        {**DRAFT_2020, "$dynamicAnchor": "n", "properties": {"next": {"$dynamicRef": "#n"}}, "required": ["v"]},
        [{"v": 1, "next": {"v": 2}}],
        [{"v": 1, "next": {}}],
    ),
    (
        {**DRAFT_2019, "$recursiveAnchor": True, "properties": {"next": {"$recursiveRef": "#"}}, "required": ["v"]},
        [{"v": 1, "next": {"v": 2}}],
        [{"v": 1, "next": {}}],
    ),
    ({"properties": {"a": {**DRAFT_7, "type": "string"}}}, [{"a": "x"}], [{"a": 1}]),
    ({"format": "email", "title": "x", "x-mine": {"type": "nonsense"}}, ["no email"], []),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "fitting", "unfitting"), CASES)
def test_a_schema_lets_through_what_fits(schema: Any, fitting: list[Any], unfitting: list[Any]) -> None:
    read = read_schema(json.dumps(schema))
    assert [value for value in fitting if read.misfit(value) is not None] == []
    assert [value for value in unfitting if read.misfit(value) is None] == []


def test_each_draft_refuses_what_it_does_not_say() -> None:
    with pytest.raises(SchemaError):
        read_schema(json.dumps({**DRAFT_2020, "items": [{}]}))
    with pytest.raises(SchemaError):
        read_schema(json.dumps({**DRAFT_7, "exclusiveMinimum": True}))


@pytest.mark.parametrize("draft", [Draft7Validator, Draft201909Validator, Draft202012Validator])
def test_a_metaschema_is_a_schema(draft: Any) -> None:
    text = json.dumps(draft.META_SCHEMA)
    if "allOf" in draft.META_SCHEMA:
        with pytest.raises(SchemaError, match="same document"):
            read_schema(text)
    else:
        assert read_schema(text).misfit({"type": "strng"}) is not None
