from __future__ import annotations

from prompts import AssistantText, PastCall, Text, ToolResult, Transcript, answered_calls, canonical


def test_a_call_with_a_result_is_answered() -> None:
    transcript = Transcript(
        (
            PastCall("call_1", "read_note", '{"path": "a.md", "limit": 1}'),
            PastCall("call_2", "read_note", '{"path": "b.md"}'),
            AssistantText("…"),
            ToolResult("call_1", (Text("# A"),)),
        )
    )
    assert answered_calls(transcript) == {("read_note", canonical('{"limit": 1.0, "path": "a.md"}'))}


def test_results_of_nothing_and_arguments_that_are_no_object_are_passed_over() -> None:
    transcript = Transcript(
        (
            ToolResult("call_1", (Text("early"),)),
            PastCall("call_1", "read_note", "{}"),
            PastCall("call_2", "read_note", "a.md"),
            ToolResult("call_2", ()),
        )
    )
    assert answered_calls(transcript) == frozenset()
