"""The schema that calls are held to: compact, whole, and of what can be sent alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import count
from typing import Any

import jsonschema
import pytest

from parser import Tool
from proxy.schema.call_schemas import MAX_CHARACTERS, MAX_DEPTH, Unheld, UnheldError, calls_schema

PATH = '{"type":"object","properties":{"path":{"type":"string","pattern":"^a"}},"required":["path"]}'
READ = Tool("read_note", "Read a note.", PATH)
SEARCH = Tool("search", "Search.", None)


def test_a_schema_is_made_once_for_a_tool_set() -> None:
    calls_schema.cache_clear()
    for _ in range(3):
        calls_schema((READ, SEARCH), parallel=True)
    assert calls_schema.cache_info().misses == 1


def test_the_schema_is_compact_and_the_same_each_time() -> None:
    """A local server keeps the grammar that it made of it, by its text."""
    size = {
        "$schema": "x",
        "type": "string",
        "description": "Gr\u00f6\u00dfe",
        "properties": {"a": {"$ref": "#/$defs/a"}},
    }
    tools = Tool("resize", None, json.dumps(size | {"$defs": {"a": {"enum": [1]}}})), SEARCH
    assert calls_schema(tools, parallel=True) == (
        '{"type":"object","properties":{"calls":{"type":"array","items":{"anyOf":['
        '{"type":"object","properties":{"name":{"type":"string","const":"resize"},"arguments":{"type":"object",'
        '"description":"Gr\u00f6\u00dfe","properties":{"a":{"$ref":"#/$defs/tool_1_a"}}}},'
        '"required":["name","arguments"],"additionalProperties":false},'
        '{"type":"object","properties":{"name":{"type":"string","const":"search"},"arguments":{"type":"object"}},'
        '"required":["name","arguments"],"additionalProperties":false}]},"minItems":1}},'
        '"required":["calls"],"additionalProperties":false,"$defs":{"tool_1_a":{"enum":[1]}}}'
    )


def held_arguments(parameters: object) -> Any:
    """The schema of the arguments of a tool with these parameters."""
    [held] = [json.loads(calls_schema((Tool("t", None, json.dumps(parameters)),), parallel=False))]
    return held["properties"]["call"]["properties"]["arguments"]


@pytest.mark.parametrize(
    ("parameters", "arguments"),
    [
        (True, {"type": "object"}),
        ({}, {"type": "object"}),
        ({"type": "array"}, {"type": "object"}),
        ({"anyOf": [{"required": ["a"]}]}, {"anyOf": [{"required": ["a"]}]}),
        ({"$ref": "#/definitions/a", "definitions": {"a": {}}}, {"$ref": "#/$defs/tool_1_a"}),
        ({"$defs": None, "definitions": ["a"]}, {"type": "object"}),
    ],
)
def test_arguments_are_an_object_whatever_else_is_declared(parameters: object, arguments: object) -> None:
    assert held_arguments(parameters) == arguments


NESTINGS: list[Callable[[object], dict[str, object]]] = [
    lambda inner: {"items": inner},
    lambda inner: {"anyOf": [True, inner]},
    lambda inner: {"properties": {"$ref": inner, "$id": True}, "additionalProperties": False},
    lambda inner: {"dependencies": {"a": ["b"], "b": inner}},
    lambda inner: {"prefixItems": [inner], "items": False},
]


@pytest.mark.parametrize("nest", NESTINGS)
def test_definitions_go_to_the_root_and_references_find_them_from_anywhere(
    nest: Callable[[object], dict[str, object]],
) -> None:
    node = nest({"$ref": "#/$defs/node"})
    one = Tool("one", None, json.dumps({"type": "object", **node, "$defs": {"node": node}}))
    two = Tool("two", None, json.dumps({"$ref": "#/definitions/node", "definitions": {"node": node}}))
    schema = calls_schema((one, two), parallel=True)
    assert [*json.loads(schema)["$defs"]] == ["tool_1_node", "tool_2_node"]
    assert re.findall(r'"#[^"]*"', schema) == [f'"#/$defs/tool_{n}_node"' for n in (1, 2, 1, 2)]


def test_what_is_defined_is_held() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "$ref": {"type": "integer"}}}
    one = {"type": "object", "properties": {"list": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}}
    two = {"$ref": "#/definitions/node", "definitions": {"node": {"type": "object", "required": ["x"]}}}
    tools = tuple(Tool(name, None, json.dumps(wanted)) for name, wanted in (("one", one), ("two", two)))
    schema = json.loads(calls_schema(tools, parallel=True))

    def fits(name: str, arguments: object) -> bool:
        validator = jsonschema.Draft202012Validator(schema)
        return validator.is_valid({"calls": [{"name": name, "arguments": arguments}]})

    assert fits("one", {"list": {"next": {"next": {}}}})
    assert not fits("one", {"list": {"next": 3}})
    assert fits("two", {"x": 1})
    assert not fits("two", {})


def nested(nest: Callable[[object], dict[str, object]], levels: int) -> str:
    schema: object = {"type": "object"}
    for _ in range(levels):
        schema = nest(schema)
    return json.dumps(schema)


HOLDABLE = [
    PATH.ljust(MAX_CHARACTERS),
    *(nested(nest, MAX_DEPTH) for nest in NESTINGS),
]
UNHELD = [
    ('{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}', "reference"),
    ('{"type":"object","properties":{"a":{"items":[{"$ref":"#"}]}}}', "reference"),
    ('{"type":"object","properties":{"a":{"not":{"$id":"urn:a"}}}}', "reference"),
    ('{"type":"object","$ref":7}', "reference"),
    (PATH.ljust(MAX_CHARACTERS + 1), "size"),
    *((nested(nest, MAX_DEPTH + 1), "size") for nest in NESTINGS),
]


def test_the_longest_schema_has_just_so_many_characters() -> None:
    def schema(title: str) -> str:
        return calls_schema((Tool("read_note", None, json.dumps({"type": "object", "title": title})),), parallel=True)

    title = "x" * (MAX_CHARACTERS - len(schema("")))
    assert len(schema(title)) == MAX_CHARACTERS
    with pytest.raises(UnheldError) as refused:
        schema(f"{title}x")
    assert refused.value.why is Unheld.SIZE


@pytest.mark.parametrize("parameters", HOLDABLE, ids=count())
def test_what_can_be_sent_has_room_to_the_last_character_and_level(parameters: str) -> None:
    assert len(calls_schema((Tool("read_note", None, parameters),), parallel=True)) <= MAX_CHARACTERS


@pytest.mark.parametrize(("parameters", "why"), UNHELD, ids=count())
def test_of_what_cannot_be_sent_there_is_no_schema(parameters: str, why: str) -> None:
    with pytest.raises(UnheldError) as refused:
        calls_schema((Tool("read_note", None, parameters),), parallel=True)
    assert refused.value.why.value == why


def test_values_that_look_like_schemas_are_left_alone() -> None:
    value = {"$ref": "https://example.com", "$id": "x"}
    parameters = {"type": "object", "properties": {"a": {"const": value}, "b": {"enum": [value]}}, "default": value}
    assert held_arguments(parameters) == parameters
