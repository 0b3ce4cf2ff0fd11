from __future__ import annotations

import pytest

from parser.placeholders import end_of_placeholder, is_placeholder
from tests.support.cpu_time import cpu_seconds


@pytest.mark.parametrize(
    "name",
    ["...", "....", "\u2026", " ... ", "<name>", "<tool name>", "<your-tool.name>", "<n\u00e4me>", "{name}", "{...}",
     "{ \u2026 }", "{{name}}", "{{ .Name }}", "{{- tool.name | lower -}}"],
)  # fmt: skip
def test_no_tool_has_the_name_of_a_placeholder(name: str) -> None:
    assert is_placeholder(name)


@pytest.mark.parametrize(
    "name",
    ["", " ", ".", "..", "read_note", "tool_name", "name", "read...", "...read", "a.b.c", "<>", "<1>", "< name>",
     "<name", "name>", "{}", "{{}}", "{a, b}", "<a><b>", "{{a}} {{b}}"],
)  # fmt: skip
def test_any_other_name_may_be_that_of_a_tool(name: str) -> None:
    assert not is_placeholder(name)


# Up to the end of the placeholder, and what follows it.
FOUND = [
    ("...", ""),
    (" {...", "}"),
    ("{{ .ToolCall }}", ""),
    ("[...", "]"),
    ('{"name": "..."', ', "arguments": {}}'),
    ('{"name" : "<name>"', "}"),
    ('{"name": "r", "arguments": "{...}"', "}"),
    ('{"name": "r", "parameters": "<JSON>"', "}"),
    ('{"name": <name>', ', "arguments": {}}'),
    ('{"name": "r", ...', "}"),
    ('{"name": "r", "arguments": {{ .Arguments }}', "}"),
    ('{"name": "r", "arguments": "{arguments}"', "}"),
    ('{"name": "r", "arguments": {"p": \u2026', "}}"),
    ('{"name": "r", "arguments": {<key>', ": <value>}}"),
    ('{"name": "say \\"...\\"", "arguments": {"p": [1, ... ', "]}}"),
    ("r(path=...", ")"),
]


@pytest.mark.parametrize(("begun", "rest"), FOUND)
def test_a_placeholder_stands_where_a_value_would(begun: str, rest: str) -> None:
    assert end_of_placeholder(begun + rest) == len(begun.rstrip())


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"name": "r", "arguments": {"p": "..."}}',
        '{"name": "r", "arguments": {"p": "<path>", "q": "{{ .Q }}", "r": "{...}"}}',
        '{"name": "r", "arguments": {"p": "a: ..., b"}}',
        '{"name": "r", "arguments": {"p": "say \\": ..., \\""}}',
        '{"name": "r...", "arguments": "see ..."}',
        '{"name": "r", "arguments": {"p": <b>bold</b>}}',
        '{"name": "r", "arguments": {"p": a...}}',
        '{"name": "r", "arguments": {{"p": 1}}}',
        '{"name": "r", "arguments": {p: 1}}',
        '{"name": "r", "arguments": {p}}',
        "{p}",
        "<function=r><parameter=p>...</parameter></function>",
        # A lost quote: what seems to stand outside of strings may stand in one.
        '{"name": "r", "arguments": {"p": "say "hi now, ..., so"}}',
        '{"name": "r", "arguments": {"p": ..., "q": "a}}',
        '{"name": ..., "p": "a\\',
    ],
)
def test_elsewhere_it_may_be_meant(text: str) -> None:
    assert end_of_placeholder(text) is None


@pytest.mark.growth
@pytest.mark.parametrize(
    "unit", [":", ": ", ": <a", "{a", "{{ a", ", ...x", '"name": ', '"name": "<a', '"\\', "[<a>x", "{{"]
)
def test_time_grows_with_the_length_alone(unit: str) -> None:
    def seconds(count: int) -> float:
        return cpu_seconds(lambda: end_of_placeholder(unit * count))

    assert seconds(40_000) < 40 * max(seconds(4_000), 1e-3)
