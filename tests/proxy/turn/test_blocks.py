"""Calls that are text: who watches is told of them, and so is the client."""

from __future__ import annotations

import pytest

from proxy.turn import Fate, Reason

from .playing import READ_A, play

BARE = '{"name": "read_note", "arguments": {"path": "a.md"}}'
MANY = "So. " * 1000


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        (BARE, "read_note"),
        (f"Here:\n```json\n{BARE}\n```", "read_note"),
        (f"Here:\n{BARE}\n\nSo.", "read_note"),
        ('[search] {"query": "beans"}', "search"),
        ('Here:\n[tool:search] {"query": "beans"}', "search"),
        ('Here:\n[tool] {"name": "search", "arguments": {}}', "search"),
        ('{"name": "Ada", "age": 36}', None),
        ("I read the note now.", None),
        ("[search] is a tool.", None),
        ("", None),
        (f"{MANY}{BARE}", None),
    ],
)
async def test_a_call_without_tags_is_known_by_the_name_of_a_tool(text: str, tool: str | None) -> None:
    outcome = await play(text)
    assert (outcome.calls, outcome.text.startswith(text)) == ([], True)
    assert outcome.notes == ([(Fate.TEXT, Reason.UNTAGGED, tool)] if tool else [])
    sentence = f"A call of the tool '{tool}' left as text: it has no tags."
    assert outcome.report.warnings == ([sentence] if tool else [])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"```\n{READ_A}\n```", ("read_note", True)),
        (f"`{READ_A}`", ("read_note", False)),
        (f"```\none\n```\n```\n{READ_A}\n```", ("read_note", True)),
        (f"```\n{READ_A.replace('read_note', 'rm')}\n```", None),
        ("`<tool_call>`", None),
    ],
)
async def test_a_call_in_code_is_told_with_its_fence(text: str, found: tuple[str, bool] | None) -> None:
    outcome = await play(text)
    assert (outcome.calls, outcome.text) == ([], text)
    notes = [(note.reason, note.name, note.fenced) for note in outcome.report.notes]
    assert notes == ([(Reason.QUOTED, *found)] if found else [])
    assert len(outcome.report.warnings) == len(notes)


async def test_beside_a_call_no_other_is_looked_for() -> None:
    outcome = await play(f"{READ_A}\nHere:\n{BARE}\n\nSo.")
    assert [note.reason for note in outcome.report.notes] == [Reason.GOOD]
