"""Which schemas values can be held against, and what is said of those that do not fit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.schema import SchemaError, read_schema


def deep(levels: int) -> Any:
    schema: Any = {}
    for _ in range(levels):
        schema = {"properties": {"a": schema}}
    return schema


UNUSABLE: dict[str, Any] = {
    "no schema": [],
    "unknown type": {"type": "strng"},
    "type of the wrong kind": {"type": [{}]},
    "required of the wrong kind": {"required": [{}]},
    "required as a flag": {"properties": {"a": {"required": True}}},
    "properties of the wrong kind": {"properties": [1]},
    "schema of the wrong kind": {"items": "string"},
    "enum of the wrong kind": {"enum": "a"},
    "identifier of the wrong kind": {"$id": 5},
    "division by nothing": {"multipleOf": 0},
    "negative length": {"minLength": -1},
    "remote reference": {"$ref": "http://127.0.0.1:9/schema.json"},
    "reference to a file": {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
    "reference to another document": {"$ref": "other.json#/a"},
    "reference to a metaschema": {"$ref": "https://json-schema.org/draft/2020-12/schema"},
    "reference to nothing": {"$ref": "#/$defs/a"},
    "reference to no anchor": {"$ref": "#a"},
    "reference to no schema": {"$defs": {}, "title": "x", "$ref": "#/title"},
    "reference into a string": {"title": "x", "$ref": "#/title/y"},
    "fault in a schema that is not reached": {"$defs": {"a": {"type": 5}}},
    "fault in another dialect": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"a": {"type": 5}},
    },
    "deep": deep(200),
    "large": {"anyOf": [{"const": number} for number in range(10_000)]},
    "very large": {"enum": ["x" * 1000] * 1000},
    "long identifier": {"$id": "http://a/" + "b" * 1_000},
    "large with dynamic references": {"$dynamicAnchor": "a", "$dynamicRef": "#a", "title": "x" * 20_000},
}


@pytest.mark.parametrize("schema", UNUSABLE.values(), ids=UNUSABLE)
def test_a_schema_that_nothing_can_be_held_against_is_an_error(schema: Any) -> None:
    with pytest.raises(SchemaError):
        read_schema(json.dumps(schema))


@pytest.mark.parametrize("text", ["", "{", '{"a": NaN}', "[" * 100_000])
def test_text_that_is_not_json_is_an_error(text: str) -> None:
    with pytest.raises(SchemaError):
        read_schema(text)


def test_the_error_says_where() -> None:
    with pytest.raises(SchemaError, match=r"^at 'properties\.a\.required': True is not of type 'array'$"):
        read_schema('{"properties": {"a": {"required": true}}}')
    with pytest.raises(SchemaError, match=r"^'#/nowhere' must lead to a schema in the same document"):
        read_schema('{"items": {"$ref": "#/nowhere"}}')


MESSAGES = [
    ({"required": ["path"]}, {}, "'path' is a required property"),
    ({"properties": {"a": {"items": {"type": "string"}}}}, {"a": ["x", 5]}, "at 'a[1]': 5 is not of type 'string'"),
    ({"additionalProperties": False}, {"x": 1}, "Additional properties are not allowed ('x' was unexpected)"),
    ({"enum": ["a", "b"]}, "c", "'c' is not one of ['a', 'b']"),
    ({"maxLength": 3}, "x" * 100, f"'{'x' * 59}… is too long"),
    ({"anyOf": [{"properties": {"a": {"const": 1}}}, {"type": "null"}]}, {"a": 2}, "at 'a': 1 was expected"),
    ({"items": {"type": "integer"}, "maxItems": 1}, ["x", "y"], "['x', 'y'] is too long"),
]


@pytest.mark.parametrize(("schema", "value", "message"), MESSAGES)
def test_a_misfit_says_what_and_where(schema: Any, value: Any, message: str) -> None:
    assert read_schema(json.dumps(schema)).misfit(value) == message


def test_a_message_is_short_whatever_the_schema_and_the_value() -> None:
    name = "n" * 5_000
    schema = read_schema(json.dumps({"properties": {name: {"enum": ["x" * 5_000]}}}))
    found = schema.misfit({name: "y" * 5_000})
    assert found is not None
    assert len(found) < 400
    assert "is not one of" in found


def test_what_is_wrong_first_is_said_when_the_rest_takes_too_long() -> None:
    schema = read_schema('{"items": {"type": "integer"}}')
    assert schema.misfit(["x", *range(9_000)]) == "at '[0]': 'x' is not of type 'integer'"


def test_names_of_properties_are_no_keywords() -> None:
    assert read_schema('{"properties": {"$ref": {"type": "string"}, "type": true}}').misfit({"type": 5}) is None


def test_a_hundred_rows_are_judged() -> None:
    columns = {name: {"type": "string"} for name in "abcdef"}
    row = {"type": "object", "properties": columns, "required": list(columns), "additionalProperties": False}
    schema = read_schema(json.dumps({"properties": {"rows": {"items": row}}}))
    rows: list[dict[str, Any]] = [dict.fromkeys(columns, "x") for _ in range(100)]
    assert schema.misfit({"rows": rows}) is None
    rows[-1]["f"] = 1
    assert schema.misfit({"rows": rows}) == "at 'rows[99].f': 1 is not of type 'string'"


def test_nothing_is_fetched_or_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("something was opened")

    for way in ("socket.socket.connect", "urllib.request.urlopen", "builtins.open"):
        monkeypatch.setattr(way, refuse)
    text = (
        '{"$id": "http://127.0.0.1:9/a", "$schema": "file:///b", "items": {"$ref": "#/$defs/x"}, "$defs": {"x": true}}'
    )
    assert read_schema(text).misfit([1]) is None
    for reference in ("http://127.0.0.1:9/b", "file:///etc/hostname", "b.json"):
        with pytest.raises(SchemaError):
            read_schema(json.dumps({"$id": "http://127.0.0.1:9/a", "$ref": reference}))


def test_a_schema_is_read_once_for_all_who_ask() -> None:
    text = '{"type": "integer", "title": "shared"}'
    assert read_schema(text) is read_schema(text)


def test_a_long_schema_is_not_kept() -> None:
    text = f'{{"title": "{"x" * 100_000}"}}'
    assert read_schema(text) is not read_schema(text)
