"""Results find their calls, and calls have the same ids in each request."""

from __future__ import annotations

from typing import Any

import pytest

from prompts import AssistantText, PastCall, ToolResult, UserTurn
from proxy.wire.ollama.messages import parse_messages
from proxy.wire.reader import Reader
from tests.support.parts import text

ASKED = {"role": "user", "content": "?"}


def call(name: str, arguments: Any = None, **more: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": {} if arguments is None else arguments}, **more}


def entries(*messages: dict[str, Any]) -> list[object]:
    return list(parse_messages(Reader({"messages": list(messages)}))[0].entries)


CALLED = {"role": "assistant", "content": "I look.", "tool_calls": [call("f"), call("g"), call("f", {"a": 1.50})]}
CALLS = [
    AssistantText("I look."),
    PastCall("call_0_0", "f", "{}"),
    PastCall("call_0_1", "g", "{}"),
    PastCall("call_0_2", "f", '{"a":1.5}'),
]


@pytest.mark.parametrize(
    ("results", "ids"),
    [
        ([{}, {}, {}], [0, 1, 2]),
        ([{"tool_name": "f"}, {"tool_name": "f"}, {"tool_name": "g"}], [0, 2, 1]),
        ([{"tool_name": "g"}, {}, {}], [1, 0, 2]),
        ([{"tool_name": "unknown"}, {"tool_name": "g"}, {}], [0, 1, 2]),
        ([{"tool_call_id": "call_0_2"}, {}, {}], [2, 0, 1]),
    ],
)
def test_a_result_belongs_to_its_id_its_name_or_the_next_call(results: list[dict[str, Any]], ids: list[int]) -> None:
    told = [{"role": "tool", "content": f"{number}", **result} for number, result in enumerate(results)]
    read = entries(ASKED, CALLED, *told)
    assert read[:5] == [UserTurn(text("?")), *CALLS]
    found = [entry for entry in read if isinstance(entry, ToolResult)]
    assert [entry.call_id for entry in found] == [f"call_0_{number}" for number in ids]


def test_each_answer_counts_its_calls_anew() -> None:
    later = {"role": "assistant", "tool_calls": [call("f", ""), call("g", '{"b": 2}')]}
    told = {"role": "tool", "content": "x"}
    read = entries(ASKED, CALLED, told, told, told, later, told, told)
    assert [entry for entry in read if isinstance(entry, PastCall)][3:] == [
        PastCall("call_1_0", "f", "{}"),
        PastCall("call_1_1", "g", '{"b": 2}'),
    ]


def test_an_id_of_the_clients_own_finds_its_call_and_changes_nothing() -> None:
    """LangChain makes new ids for the calls that it is told, and sends those back."""
    called = {"role": "assistant", "tool_calls": [call("f", id="a"), call("f", id="b")]}
    results = [{"role": "tool", "content": own, "tool_call_id": own} for own in "ba"]
    assert entries(ASKED, called, *results)[1:] == [
        PastCall("call_0_0", "f", "{}"),
        PastCall("call_0_1", "f", "{}"),
        ToolResult("call_0_1", text("b")),
        ToolResult("call_0_0", text("a")),
    ]


def test_a_result_that_comes_late_still_finds_the_call_of_its_id() -> None:
    called = {"role": "assistant", "tool_calls": [call("f", id="a")]}
    said = {"role": "assistant", "content": "Wait."}
    late = {"role": "tool", "content": "x", "tool_call_id": "a"}
    assert [each for each in entries(ASKED, called, said, late) if isinstance(each, ToolResult)] == [
        ToolResult("call_0_0", text("x"))
    ]


def test_a_result_without_any_call_stands_alone() -> None:
    assert entries(ASKED, {"role": "tool", "content": "x"})[1:] == [ToolResult("result_1", text("x"))]
