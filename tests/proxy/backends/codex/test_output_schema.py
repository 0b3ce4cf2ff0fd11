from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.backends.codex.output_schema import output_schema


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
    "optional property": {**closed({"a": {}}), "required": []},
    "open definition": closed({}, **{"$defs": {"a": {"type": "object"}}}),
    "oneOf": closed({"a": {"oneOf": [{"type": "string"}]}}),
    "allOf in items": closed({"a": {"items": {"allOf": [{}]}}}),
    "tuple": closed({"a": {"items": [{"type": "string"}]}}),
    "true": True,
}


@pytest.mark.parametrize("schema", STRICT.values(), ids=STRICT)
def test_what_strict_mode_takes_is_passed_on_as_it_is(schema: dict[str, Any]) -> None:
    assert output_schema(json.dumps(schema)) == schema


@pytest.mark.parametrize("schema", OTHER.values(), ids=OTHER)
def test_what_strict_mode_refuses_is_not_passed_on(schema: Any) -> None:
    assert output_schema(json.dumps(schema)) is None
