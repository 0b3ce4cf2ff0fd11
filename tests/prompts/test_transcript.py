"""A conversation as plain values, and who wrote them."""

from __future__ import annotations

from parser import ToolRegistry
from prompts import AssistantText, Guidance, PastCall, Text, ToolResult, Transcript, UserTurn, untrusted_strings


def test_untrusted_strings_are_all_that_is_shown_and_not_ours() -> None:
    read = PastCall("1", "read_note", "{}"), ToolResult("1", (Text("d"),))
    transcript = Transcript((Guidance("a"), UserTurn((Text("b"),)), AssistantText("c"), *read), "e")
    assert [*untrusted_strings(transcript, ToolRegistry())] == ["e", "a", "b", "c", "read_note", "{}", "d"]
