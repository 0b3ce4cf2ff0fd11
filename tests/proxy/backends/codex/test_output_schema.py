from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proxy.backends.codex.output_schema import (
    MOST_CHARACTERS,
    MOST_ENUM_VALUES,
    MOST_LEVELS,
    MOST_PROPERTIES,
    REFUSED,
    output_schema,
)


def closed(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    names = list(properties)
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False, **more}


STRICT = {
    "empty": closed({}),
    "nested": closed({"a": {"type": "array", "items": closed({"b": {"enum": ["x"]}})}}),
    "optional by null": closed({"a": {"anyOf": [{"type": "string", "pattern": "^a"}, {"type": "null"}]}}),
    "recursive": closed({"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, **{"$defs": {"a": closed({})}}),
}
OTHER = {
    "no object": {"type": "array", "items": closed({})},
    "several forms": closed({}, anyOf=[closed({})]),
    "open": {"type": "object"},
    "open inside": closed({"a": {"type": "object"}}),
    "open by its properties alone": closed({"a": {"properties": {"b": {}}}}),
    "properties that are none": closed({"a": {"type": "object", "properties": [], "additionalProperties": False}}),
    "required names that are none": {**closed({"a": {}}), "required": "a"},
    "optional property": {**closed({"a": {}}), "required": []},
    "open definition": closed({}, **{"$defs": {"a": {"type": "object"}}}),
    "oneOf": closed({"a": {"oneOf": [{"type": "string"}]}}),
    "allOf in items": closed({"a": {"items": {"allOf": [{}]}}}),
    "tuple": closed({"a": {"items": [{"type": "string"}]}}),
    "true": True,
    "remote": closed({"a": {"$ref": "https://example.com/a.json"}}),
}


@pytest.mark.parametrize("schema", STRICT.values(), ids=STRICT)
def test_what_strict_mode_takes_is_passed_on_as_it_is(schema: dict[str, Any]) -> None:
    assert output_schema(json.dumps(schema)) == schema


@pytest.mark.parametrize("schema", OTHER.values(), ids=OTHER)
def test_what_strict_mode_refuses_is_not_passed_on(schema: Any) -> None:
    assert output_schema(json.dumps(schema)) is None


def deep(levels: int) -> dict[str, Any]:
    return closed({"a": deep(levels - 1)}) if levels else {"type": "string"}


def wide(count: int) -> dict[str, Any]:
    return closed({f"p{number}": {} for number in range(count)})


def listing(count: int) -> dict[str, Any]:
    return closed({"a": {"enum": [*range(count)]}})


def long_constant(count: int) -> dict[str, Any]:
    return closed({"a": {"const": "x" * (count - 1)}})


def long_name(count: int) -> dict[str, Any]:
    return closed({}, **{"$defs": {"x" * count: {}}})


@pytest.mark.parametrize(
    ("make", "most"),
    [
        (deep, MOST_LEVELS),
        (wide, MOST_PROPERTIES),
        (listing, MOST_ENUM_VALUES),
        (long_constant, MOST_CHARACTERS),
        (long_name, MOST_CHARACTERS),
    ],
)
def test_what_is_larger_than_strict_mode_takes_is_not_passed_on(make: Callable[[int], Any], most: int) -> None:
    assert output_schema(json.dumps(make(most))) == make(most)
    assert output_schema(json.dumps(make(most + 1))) is None


def test_every_limit_is_documented() -> None:
    page = (Path(__file__).parents[4] / "docs/reference/schemas.md").read_text("utf-8")
    [row] = [line for line in page.splitlines() if line.startswith("| keywords |")]
    assert set(re.findall(r"`(\w+)`", row)) == REFUSED
    for most in (MOST_LEVELS, MOST_PROPERTIES, MOST_ENUM_VALUES, MOST_CHARACTERS):
        assert re.search(rf"^\|.*\| {most:,} ", page, re.MULTILINE)
