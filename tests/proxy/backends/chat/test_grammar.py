"""What an answer may be where its calls are held by llama.cpp's grammar."""

from __future__ import annotations

import json
from typing import Any

import pytest

from parser import Tool, write_call
from proxy.backends.chat.grammar import text_and_calls
from proxy.schema.call_schemas import call_schema
from tests.support.gbnf import is_of

NODE = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}}
PARAMETERS: Any = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "maxLength": 4},
        "lines": {"type": ["integer", "null"]},
        "kind": {"enum": ["a", 1, None]},
        "share": {"type": "number"},
        "page": {"type": "integer", "minimum": 8, "maximum": 11},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "node": {"$ref": "#/$defs/node"},
        "open": {"type": "object", "additionalProperties": {"type": "string"}},
        "loose": {
            "type": "object",
            "properties": {"x": {"type": "string"}},
            "additionalProperties": {"type": "integer"},
        },
        "any": True,
    },
    "required": ["lines"],
    "$defs": {"node": NODE},
}
TOOLS = (Tool("read", "", json.dumps(PARAMETERS)), Tool('say "it"', "", None))


def allowed(text: str, *, keyed: bool = True) -> bool:
    return is_of(text_and_calls(call_schema(TOOLS, keyed=keyed)), text)


def called(arguments: dict[str, Any], name: str = "read", key: str | None = None) -> str:
    return write_call(name, json.dumps(arguments), key=key)


@pytest.mark.parametrize(
    "text",
    [
        "", "Well.", "1 < 2 <", "<table><tr><title>T</title></tr></table>", "<tool>", "<tool_calls>", "<<tool_cal",
        "<tool_call", "</tool_call>", r"<\tool_call>", "<tool_call <tool_call\n>", "<Tool_call>",
    ],
)  # fmt: skip
def test_what_is_not_the_tag_is_text(text: str) -> None:
    assert allowed(text)


@pytest.mark.parametrize(
    "arguments",
    [
        {"lines": None}, {"lines": -12}, {"path": "ab\"d", "lines": 1}, {"lines": 1, "kind": None},
        {"lines": 1, "kind": "a", "share": -1.5e3}, {"lines": 1, "page": 10, "tags": ["x", "y"]},
        {"lines": 1, "node": {"next": {"next": None}}}, {"lines": 1, "open": {"x": "y"}, "any": [{"x": 1}, False]},
        {"lines": 1, "loose": {"x": "y", "z": 1}},
    ],
)  # fmt: skip
def test_a_call_that_fits_is_allowed_wherever_it_stands(arguments: dict[str, Any]) -> None:
    call = called(arguments)
    assert allowed(call)
    assert allowed(f"I look. <b>\n{call}\n{called({}, TOOLS[1].name)} and so on")
    assert allowed(call.replace(" ", "\n   "))


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>", "a <tool_call>{}</tool_call>", called({}), called({"lines": "1"}), called({"lines": 1}, "raed"),
        called({"lines": 1, "kind": "b"}), called({"lines": 1, "path": "a"}), called({"path": "abcde", "lines": 1}),
        called({"lines": 1, "page": 12}), called({"lines": 1, "tags": []}), called({"lines": 1, "more": 1}),
        called({"lines": 1, "node": {"next": 1}}), called({"lines": 1})[:-1], f"{called({'lines': 1})} <tool_call>x",
        called({"lines": 1}).replace(" ", " " * 20), called({"lines": 1}).replace(">{", ">\n\n{"),
        write_call(TOOLS[1].name, "[1]"),
    ],
)  # fmt: skip
def test_behind_the_tag_nothing_else_is_allowed(text: str) -> None:
    assert not allowed(text)


def test_the_model_writes_the_key_itself() -> None:
    """A decoder that wrote it would say of a quotation that it is meant."""
    for key in ("0abcdefghi", "another", None):
        assert allowed(called({"lines": 1}, key=key))
    assert not allowed(called({"lines": 1}, key="x"), keyed=False)


@pytest.mark.parametrize("required", [[{}], [["path"]], [None], {"path": True}, "path"])
def test_what_requires_no_property_by_its_name_requires_none(required: object) -> None:
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}, "required": required}
    grammar = text_and_calls(call_schema((Tool("read", "", json.dumps(parameters)),), keyed=False))
    assert is_of(grammar, called({}))


def test_a_grammar_is_made_once_for_a_set_of_tools() -> None:
    schema = call_schema(TOOLS, keyed=True)
    assert text_and_calls(schema) is text_and_calls(call_schema((*TOOLS,), keyed=True))
