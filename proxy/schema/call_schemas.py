"""The calls that a model is held to, as one JSON schema for an answer that has to be calls.

    {"calls": [<a call>, ...]}    {"call": <a call>} where one is asked for
    <a call>   {"name": <the tool's>, "arguments": <its parameters, whole>}, an alternative for each tool

A model that is held so can write nothing else, so the calls need no tags and no key (`parser.HELD_ANSWERS`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from typing import Any

from parser import CALL, CALLS, KEY, Tool

# Characters of a schema that is sent with each request, and levels of it. OpenAI's strict mode takes 120,000
# characters of names alone; a local server makes a grammar of it before the first word.
MAX_CHARACTERS = 128 * 1024
MAX_DEPTH = 64
# Characters that a model may write for its key, be it the right one or not.
MAX_KEY = 32
# Tool sets whose schemas are kept.
MOST_SCHEMAS = 64

_Schema = dict[str, Any]

# Where schemas stand in a schema: alone, in an array, by name.
_ALONE = frozenset({
    "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
    "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
})  # fmt: skip
_IN_ARRAYS = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_DEFINITIONS = ("$defs", "definitions")
_BY_NAME = frozenset({*_DEFINITIONS, "dependencies", "dependentSchemas", "patternProperties", "properties"})
# What makes a reference lead by names instead of by place: it would lead elsewhere in another document.
_NAMED = frozenset({"$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveAnchor", "$recursiveRef", "id"})


class Unheld(Enum):
    """Why calls are not held, as it is logged."""

    REFERENCE = "reference"
    """A schema refers to something outside of itself, or by more than the place of a definition."""
    SIZE = "size"
    SUBSET = "subset"
    """The backend's service takes a part of JSON Schema only."""
    REFUSED = "refused"
    """The service has refused this schema for this model."""


class UnheldError(Exception):
    def __init__(self, why: Unheld) -> None:
        self.why = why


def calls_form(*, parallel: bool) -> str:
    """What an answer looks like that fits the schema, for the model's eyes."""
    call = '{"name": "...", "arguments": {...}}'
    return f'{{"{CALLS}": [{call}]}}' if parallel else f'{{"{CALL}": {call}}}'


@lru_cache(maxsize=MOST_SCHEMAS)
def calls_schema(tools: Sequence[Tool], *, parallel: bool) -> str:
    """For an answer that has to be calls of `tools`, as JSON text. Raises `UnheldError`."""
    call, definitions = _any_call(tools)
    return _written(
        _closed({CALLS: {"type": "array", "items": call, "minItems": 1}} if parallel else {CALL: call}), definitions
    )


@lru_cache(maxsize=MOST_SCHEMAS)
def call_schema(tools: Sequence[Tool], *, keyed: bool) -> str:
    """Of one call of `tools`; `keyed`: with a key. Raises `UnheldError`."""
    return _written(*_any_call(tools, {KEY: {"type": "string", "maxLength": MAX_KEY}} if keyed else {}))


def _any_call(tools: Sequence[Tool], before: _Schema | None = None) -> tuple[_Schema, _Schema]:
    """A call of one of `tools`, and what is defined for it; the properties `before` may stand in front of its name."""
    definitions: _Schema = {}
    forms = [_form(tool, f"tool_{number}_", definitions) for number, tool in enumerate(tools, 1)]
    for form in forms:
        form["properties"] = {**(before or {}), **form["properties"]}
    return forms[0] if len(forms) == 1 else {"anyOf": forms}, definitions


def _written(root: _Schema, definitions: _Schema) -> str:
    if definitions:
        root = {**root, "$defs": definitions}
    text = json.dumps(root, ensure_ascii=False, separators=(",", ":"))
    if len(text) > MAX_CHARACTERS:
        raise UnheldError(Unheld.SIZE)
    return text


def _closed(properties: _Schema) -> _Schema:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _form(tool: Tool, prefix: str, definitions: _Schema) -> _Schema:
    """A call of `tool`. What its parameters define goes to `definitions`, under names that begin with `prefix`."""
    if tool.parameters is not None and len(tool.parameters) > MAX_CHARACTERS:
        raise UnheldError(Unheld.SIZE)
    # By the standard library, which keeps integers of any size.
    read = json.loads(tool.parameters) if tool.parameters else {}
    parameters = _placed(read, prefix, 0) if isinstance(read, dict) else {}
    parameters.pop("$schema", None)
    for keyword in _DEFINITIONS:
        named = parameters.pop(keyword, None)
        if isinstance(named, dict):  # a schema that is not strict may have anything there
            definitions |= {f"{prefix}{name}": schema for name, schema in named.items()}
    if parameters.keys().isdisjoint({"$ref", "anyOf"}):
        parameters["type"] = "object"  # whatever else they may be, arguments are an object
    return _closed({"name": {"type": "string", "const": tool.name}, "arguments": parameters})


def _placed(schema: _Schema, prefix: str, depth: int) -> _Schema:
    """A copy of it, with references to where its definitions will stand. Raises `UnheldError`."""
    if depth > MAX_DEPTH:
        raise UnheldError(Unheld.SIZE)
    if not _NAMED.isdisjoint(schema):
        raise UnheldError(Unheld.REFERENCE)

    def inner(value: object) -> object:
        return _placed(value, prefix, depth + 1) if isinstance(value, dict) else value

    placed = {**schema}
    for key, value in schema.items():
        if isinstance(value, list) and key in _IN_ARRAYS:
            placed[key] = [*map(inner, value)]
        elif isinstance(value, dict) and key in _BY_NAME:
            placed[key] = {name: inner(each) for name, each in value.items()}
        elif key in _ALONE:
            placed[key] = inner(value)
    if "$ref" in schema:
        placed["$ref"] = _reference(schema["$ref"], prefix)
    return placed


def _reference(reference: object, prefix: str) -> str:
    for keyword in _DEFINITIONS:
        start = f"#/{keyword}/"
        if isinstance(reference, str) and reference.startswith(start):
            return f"#/$defs/{prefix}{reference.removeprefix(start)}"
    raise UnheldError(Unheld.REFERENCE)
