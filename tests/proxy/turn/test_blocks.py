from __future__ import annotations

import pytest

from proxy.turn.blocks import call_in_code, untagged_call
from tests.proxy.turn.playing import READ_A, TOOLS

BARE = '{"name": "read_note", "arguments": {"path": "a.md"}}'


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        (BARE, "read_note"),
        (f"Here:\n```json\n{BARE}\n```", "read_note"),
        (f"Here:\n{BARE}\n\nSo.", "read_note"),
        ('[search] {"query": "beans"}', "search"),
        ('[tool:search] {"query": "beans"}', "search"),
        ('[tool] {"name": "search", "arguments": {}}', "search"),
        ('{"name": "Ada", "age": 36}', None),
        ("I read the note now.", None),
        ("[search] is a tool.", None),
        ("", None),
    ],
)
def test_a_call_without_tags_is_known_by_the_name_of_a_tool(text: str, tool: str | None) -> None:
    assert untagged_call(text, TOOLS) == tool


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"```\n{READ_A}\n```", ("read_note", True)),
        (f"`{READ_A}`", ("read_note", False)),
        (f"```\none\n```\n```\n{READ_A}\n```", ("read_note", True)),
        (f"```\none\n```\n{READ_A}", ("read_note", False)),
        (READ_A.replace("read_note", "rm"), None),
        ("`<tool_call>`", None),
    ],
)
def test_a_call_in_code_is_told_with_its_fence(text: str, found: tuple[str, bool] | None) -> None:
    assert call_in_code(text, TOOLS) == found
