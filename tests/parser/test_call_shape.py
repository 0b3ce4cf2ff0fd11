from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser.call_shape import Call, calls_of, is_another_shape
from parser.relaxed_json import UnreadableError
from parser.rules import Rule

PLAIN = Call("r", '{"p": 1}', None, ())

SHAPES = {
    "as taught": ('{"name": "r", "arguments": {"p": 1}}', []),
    "turned round": ('{"arguments": {"p": 1}, "name": "r"}', []),
    "parameters": ('{"name": "r", "parameters": {"p": 1}}', ["alias-keys"]),
    "input": ('{"tool": "r", "input": {"p": 1}}', ["alias-keys"]),
    "camel case": ('{"toolName": "r", "toolInput": {"p": 1}}', ["alias-keys"]),
    "other separators": ('{"tool-name": "r", "Tool_Input": {"p": 1}}', ["alias-keys"]),
    "an action": ('{"action": "r", "action_input": {"p": 1}}', ["alias-keys"]),
    "arguments of a function": ('{"function_name": "r", "function_args": {"p": 1}}', ["alias-keys"]),
    "a string": (r'{"name": "r", "arguments": "{\"p\": 1}"}', []),
    "a string in a string": (r'{"name": "r", "arguments": "\"{\\\"p\\\": 1}\""}', ["double-encoded"]),
    "a string with a fault": (r'{"name": "r", "arguments": "{\"p\": 1,}"}', ["trailing-comma"]),
    "in a function": ('{"type": "function", "function": {"name": "r", "arguments": {"p": 1}}}', ["nested-call"]),
    "in a call": ('{"tool_call": {"tool": "r", "args": {"p": 1}}}', ["wrapper-object", "alias-keys"]),
    "in a list": ('[{"name": "r", "arguments": {"p": 1}}]', ["array-of-calls"]),
    "in a list of calls": (
        '{"tool_calls": [{"name": "r", "arguments": {"p": 1}}]}', ["wrapper-object", "array-of-calls"]),
    "in a list of uses": (
        '{"tool_uses": [{"recipient_name": "r", "parameters": {"p": 1}}]}',
        ["wrapper-object", "array-of-calls", "alias-keys"]),
}  # fmt: skip


@pytest.mark.parametrize(("value", "rules"), SHAPES.values(), ids=SHAPES)
def test_each_shape_of_a_call_is_the_same_call(value: str, rules: list[str]) -> None:
    [call] = calls_of(value)
    assert (call.name, call.arguments, call.id, call.extra) == ("r", '{"p": 1}', None, ()) or "type" in value
    assert list(call.rules) == rules


@pytest.mark.parametrize(
    ("members", "call_id", "extra"),
    [
        ('"id": "a"', "a", ()),
        ('"call_id": "b", "id": "a"', "b", ()),
        ('"id": null', None, (("id", "null"),)),
        ('"id": 7, "call_id": "b"', "b", (("id", "7"),)),
        ('"type": "tool_use", "x": [1,  2]', None, (("type", '"tool_use"'), ("x", "[1,  2]"))),
        ('"action": "call"', None, (("action", '"call"'),)),
    ],
)
def test_what_stands_beside_is_the_id_or_kept(members: str, call_id: str | None, extra: tuple[object, ...]) -> None:
    [call] = calls_of(f'{{"name": "r", {members}, "arguments": {{}}}}')
    assert (call.id, call.extra, call.rules) == (call_id, extra, ())


@pytest.mark.parametrize(
    ("outside", "inside", "call_id", "extra"),
    [
        ('"id": "a"', '"x": 1', "a", (("x", "1"),)),
        ('"call_id": "a", "id": "b"', '"x": 1', "a", (("x", "1"),)),
        ('"x": 1', '"id": "b"', "b", (("x", "1"),)),
        ('"id": "a", "x": 1', '"id": "b", "y": 2', "b", (("y", "2"), ("x", "1"))),
        ('"id": null', '"id": ""', "", (("id", "null"),)),
        ('"type": "function"', '"x": 1', None, (("x", "1"), ("type", '"function"'))),
    ],
)
def test_what_stands_beside_a_nested_call_is_its_id_or_kept(
    outside: str, inside: str, call_id: str | None, extra: tuple[object, ...]
) -> None:
    [call] = calls_of(f'{{{outside}, "function": {{"name": "r", "arguments": {{}}, {inside}}}}}')
    assert (call.id or None, call.extra) == (call_id or None, extra)


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ('{"name": "r"}', "missing-arguments"),
        ('{"name": "r", "id": "c"}', "missing-arguments"),
        ('{"name": "r", "arguments": null}', "null-arguments"),
        ('{"name": "r", "arguments": ""}', "empty-arguments"),
        ('{"name": "r", "arguments": " \\n"}', "empty-arguments"),
    ],
)
def test_a_call_without_arguments_has_none(value: str, rule: str) -> None:
    [call] = calls_of(value)
    assert (call.arguments, list(call.rules)) == ("{}", [rule])


@pytest.mark.parametrize(
    "value",
    ['"r"', "5", "[]", "[5]", "{}",
     '{"arguments": {}}', '{"name": 5, "arguments": {}}', '{"name": "", "arguments": {}}',
     '{"name": "r", "arguments": []}', '{"name": "r", "arguments": 5}', '{"name": "r", "arguments": "p"}',
     '{"name": "r", "arguments": {}, "args": {}}', '{"name": "r", "tool": "w", "arguments": {}}',
     '{"name": "r", "name": "r", "arguments": {}}', '{"name": "r", "p": 1}', '{"r": {"p": 1}}',
     '{"name": "r", "function": {"name": "w", "arguments": {}}}', r'{"name": "r", "arguments": "{} {}"}',
     '{"key": "k", "key": "l", "tool_calls": [{"name": "r", "arguments": {}}]}',
     '{"content": "Hi.", "tool_calls": [{"name": "r", "arguments": {}}]}',
     '{"tool_calls": []}', '{"tool_calls": [{"name": "r", "arguments": {}}, 5]}'],
)  # fmt: skip
def test_any_other_value_is_no_call(value: str) -> None:
    with pytest.raises(UnreadableError):
        calls_of(value)


@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text()))
def test_arguments_keep_their_characters(arguments: dict[str, object]) -> None:
    text = json.dumps(arguments, indent=1)
    [call] = calls_of(f'{{"name": "r", "arguments": {text}}}')
    assert call.arguments == text


def test_a_rule_is_named_once_and_the_first_ones_first() -> None:
    call = PLAIN.after([Rule.ALIAS_KEYS]).after([Rule.FENCE, Rule.ALIAS_KEYS])
    assert call.rules == (Rule.FENCE, Rule.ALIAS_KEYS)


@pytest.mark.parametrize(
    "value",
    [
        '{"arguments": {}}',
        '{"input": "{}"}',
        '{"name": "r", "arguments": {}}',
        '{"function": {}}',
        '{"tool_calls": []}',
    ],
)
def test_an_object_that_holds_arguments_is_not_taken_for_them(value: str) -> None:
    assert is_another_shape(value)


@pytest.mark.parametrize(
    "value", ["{}", '{"path": "a"}', '{"name": "x", "content": "y"}', '{"input": "x"}', '{"args": {}, "path": "a"}']
)
def test_arguments_may_have_the_names_of_members(value: str) -> None:
    assert not is_another_shape(value)
