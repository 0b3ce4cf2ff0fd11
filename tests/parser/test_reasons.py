"""Why a block could not be read, in the words that a model is told when it is asked once more."""

from __future__ import annotations

import pytest

from parser import CallMalformed
from tests.parser.reading import cut, read

REASONS = [
    ('<tool_call name="r" name="w">{"arguments": {}}</tool_call>', "the tag contradicts itself"),
    ('<tool_call>{\\"name": "r", "arguments": {}}</tool_call>', "some quotes are escaped and others are not"),
    ('<tool_call>{"name": "r", "arguments": {{"a": 1}: 2}}</tool_call>', "an object where a key should be"),
    ("<tool_call>[a]", "'a' is no JSON value"),
    ("<tool_call>[1 000]", "'0' where a comma or ']' should be"),
    ("<tool_call>{1} don't</tool_call>", "'1' where a key should be"),
    ('<tool_call>{"name": "f", "arguments": }</tool_call>', "'}' where a value should be"),
    (
        '<tool_call>{"name": "f", "arguments": {"a": {"name": "read_note", "arguments": {"path": "a.md"}}}</tool_call>',
        "a bracket too many or too few",
    ),
    ("<tool_call>r()", "a call in another notation that is not closed may be prose"),
    ('<tool_call>r {"function": {"name": "w"}}', "a call inside of a call"),
    ("<tool_call>[1]", "a call is not an object"),
    (
        '<tool_call>{"name": "f", "arguments": {"name": "r", "name": "r", "arguments": {}}}</tool_call>',
        "a key stands twice in the arguments",
    ),
    ('<tool_call>{"name": "r", "name": "r", "arguments": {}}', "a key stands twice in the call"),
    ('<tool_call>{"<tool_call>"}', "a key without a colon"),
    ("<tool_call><function=r><parameter=path>a.md", "a parameter does not end"),
    ('<tool_call>["a" "b"]', "a quote inside a string is not escaped"),
    ('<tool_call>"{', "a string does not end"),
    ('<tool_call>[“a"]', "a string in other quotes does not end"),
    ('<tool_call>["""</tool_call>"""]', "a tag in a string in other quotes"),
    (
        "<tool_call><function=r><parameter=a>1</parameter><parameter=a>2</parameter></function>",
        "an argument stands twice in the call",
    ),
    ("<tool_call>[]", "an empty array of calls"),
    ('<tool_call>{"name": "r"}, "arguments": {"p": "a.md"}}', "more than a call stands in the block"),
    ('<tool_call>{"name": "f", "arguments":  // x}</tool_call>', "more than a remark in a comment"),
    (
        "<tool_call><function=r><parameter=a><function=w></function></parameter></function>",
        "more than a value inside of a parameter",
    ),
    (
        "<tool_call><function=r><parameter=a><![CDATA[x</parameter></function></tool_call>",
        "a CDATA section does not end",
    ),
    ("<tool_call>[", "the JSON is cut off"),
    ('<tool_call>{"name": "r", "arguments": "{} {}"}', "the arguments are a string that holds more than an object"),
    ('<tool_call>{"name": "r", "arguments": 5}', "the arguments are not an object"),
    ("<tool_call>r(path='a.md'", "the call does not end"),
    (
        '<tool_call>{"name": "r", "function": {"name": "w", "arguments": {}}}',
        "the call has members both inside and outside of another object",
    ),
    ('<tool_call>{"name": "r", "p": 1}', "the call has members but no arguments"),
    ('<tool_call>{"name": "r", "arguments": {}, "args": {}}', "the call has more than one arguments"),
    ('<tool_call>{"name": "r", "tool": "w", "arguments": {}}', "the call has more than one name"),
    ("<tool_call>{}", "the call has no name"),
    ("<tool_call>{", "the call is cut off"),
    ('<tool_call>{"name": 5, "arguments": {}}', "the name is not a string with something in it"),
    ('<tool_call name="w">{"name": "r", "arguments": {"p": "a.md"}}</tool_call>', "the tag names another call"),
    ("<tool_call>['it's']", "a string in other quotes does not end"),
    ("<tool_call>[1", "the JSON is cut off"),
    ("<tool_call>{'a': 1,", "the JSON is cut off"),
    ("<tool_call>{a", "the JSON is cut off"),
    ("<tool_call>{a 1}</tool_call>", "a key without a colon"),
    ("<tool_call>" + "[" * 70, "nested too deep"),
    (r'<tool_call>{"name": "r", "arguments": {"\path": 1}}</tool_call>', "an escape in a key that is none"),
    (r'<tool_call>{"name": "r", "arguments": {"\p_": 1}}</tool_call>', "an escape in a key that is none"),
    (
        r'<tool_call>{"name": "r", "arguments": {"p": "C:\dir\new"}}</tool_call>',
        "backslashes in a path are not escaped",
    ),
    (
        r'<tool_call>{"name": "r", "arguments": {"p": "\alpha + \beta"}}</tool_call>',
        "some backslashes are escaped and others are not",
    ),
    ("<tool_call>[NaN]</tool_call>", "'NaN' is no JSON value"),
    (
        '<tool_call>{"name": "multi_tool_use.parallel", "arguments": {"tool_uses": [], "p": 1}}</tool_call>',
        "several calls at once, and something else",
    ),
    ('<tool_call>arguments: {"path": "a.md"}</tool_call>', "arguments without a call"),
    (
        '<tool_call>json {"calls": [{"name": "r", "arguments": {}}, {"name": "w", "arguments": {}}]}</tool_call>',
        "several calls under one label",
    ),
    ("<tool_call><function=r></tool_call>", "the call does not end"),
    ('<tool_call>r({"p": 1}, 1)</tool_call>', "the call does not end"),
    ("<tool_call>r<arg_key>a</arg_key></tool_call>", "the call is cut off"),
    ('<tool_call>```json\n"{r}"\n```</tool_call>', "a string that is no call"),
    (
        r'<tool_call>"{\"name\": \"r\", \"arguments\": {}} and so on"</tool_call>',
        "more than a call stands in the block",
    ),
    (r"<tool_call>{\"name\": \"r\"} and so on", "more than a call stands in the block"),
    ('<tool_call>{"name": "r"} and so on', "a call without arguments in the middle of a sentence"),
    ('<tool_call>{"name": "r"}\nAnd so on.</tool_call>', "the call has no arguments, and more stands in the block"),
    ('<tool_call>{"name": "r", "arguments": {"p": 1, "id": "c"}</tool_call>', "a bracket too many or too few"),
    ('<tool_call>{"x": 1, "name": "r", "arguments": {"p": 1}</tool_call>', "a bracket too many or too few"),
    (
        '<tool_call>{"name": "r", "arguments": null, "p": "a.md"}</tool_call>',
        "the arguments are empty, and the call has other members",
    ),
    ('<tool_call name="r">{"arguments": {"p": 1}}</tool_call>', "the call has members but no arguments"),
    (
        r'<tool_call>{"name": "r", "arguments": {"p": "\ud83d"}}</tool_call>',
        "half a surrogate pair stands alone in the arguments",
    ),
]


@pytest.mark.parametrize("size", [0, 1, 3])
@pytest.mark.parametrize(("text", "reason"), REASONS, ids=range(len(REASONS)))
def test_a_block_says_what_is_wrong_with_it(text: str, reason: str, size: int) -> None:
    reasons = [event.reason for event in read(cut(text, size)) if isinstance(event, CallMalformed)]
    assert reasons == [reason]


def test_behind_a_broken_block_it_is_said_that_a_repair_would_be_a_guess() -> None:
    text = '<tool_call>{"name": "r", "arguments": {"p": "a.md}}</tool_call>'
    reasons = [
        event.reason for event in read([text + text.replace(".md", '.md",')]) if isinstance(event, CallMalformed)
    ]
    assert reasons == ["a quote inside a string is not escaped", "a repair after a broken block would be a guess"]
