"""What a conversation that was begun at OpenAI holds of tools that are not offered here."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts import Entry, Image, Part, PastCall, Text, ToolResult, UserTurn
from proxy.errors import RequestError
from proxy.ids import shown_id
from proxy.wire.responses.foreign_items import CLIENT_CALLS, CLIENT_OUTPUTS, HOSTED_CALLS, NO_IMAGE
from proxy.wire.responses.input_items import History
from proxy.wire.responses.request import parse_responses_request

PNG = "data:image/png;base64,iVBORw0KGgo="
NO_RESULT = Text("(no separate result)")
USER: dict[str, Any] = {"role": "user", "content": "Go on."}

# Item or items, the name and the arguments of the call, its result.
SHOWN: list[tuple[list[dict[str, Any]], str, str, tuple[Part, ...]]] = [
    (
        [
            {"type": "local_shell_call", "id": "lsh_1", "call_id": "c1", "status": "completed",
             "action": {"type": "exec", "command": ["ls", "-l"], "env": {}, "timeout_ms": None}},
            {"type": "local_shell_call_output", "id": "c1", "output": "a.md"},
        ],
        "local_shell", '{"type":"exec","command":["ls","-l"],"env":{}}', (Text("a.md"),),
    ),
    (
        [
            {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls", "cat x"]}},
            {"type": "shell_call_output", "call_id": "c1", "output": [
                {"stdout": "a.md\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
                {"stdout": "", "stderr": "No such file", "outcome": {"type": "exit", "exit_code": 1}},
                {"stdout": "", "stderr": "", "outcome": {"type": "timeout"}},
            ]},
        ],
        "shell", '{"commands":["ls","cat x"]}', (Text("a.md\n\nNo such file\n(exit code 1)\n(timed out)"),),
    ),
    (
        [
            {"type": "apply_patch_call", "call_id": "c1", "status": "completed",
             "operation": {"type": "delete_file", "path": "a.md"}},
            {"type": "apply_patch_call_output", "call_id": "c1", "status": "failed", "output": "no such file"},
        ],
        "apply_patch", '{"type":"delete_file","path":"a.md"}', (Text("failed\nno such file"),),
    ),
    (
        [
            {"type": "computer_call", "id": "cu_1", "call_id": "c1", "action": {"type": "click", "x": 1, "y": 2}},
            {"type": "computer_call_output", "call_id": "c1",
             "output": {"type": "computer_screenshot", "image_url": PNG}},
        ],
        "computer", '{"type":"click","x":1,"y":2}', (Image(PNG),),
    ),
    (
        [
            {"type": "computer_call", "call_id": "c1", "actions": [{"type": "wait"}]},
            {"type": "computer_call_output", "call_id": "c1",
             "output": {"type": "computer_screenshot", "file_id": "file_1"}},
        ],
        "computer", '{"actions":[{"type":"wait"}]}', (NO_IMAGE,),
    ),
    ([{"type": "shell_call", "call_id": "c1", "action": {"commands": []}}], "shell", '{"commands":[]}', (NO_RESULT,)),
    (
        [{"type": "mcp_call", "id": "c1", "server_label": "notes", "name": "read", "arguments": '{"a": 1}',
          "output": "text", "error": None}],
        "notes__read", '{"a": 1}', (Text("text"),),
    ),
    (
        [{"type": "mcp_call", "id": "c1", "server_label": "notes", "name": "read", "arguments": "{}", "output": None,
          "error": {"type": "http_error", "code": 500}}],
        "notes__read", "{}", (Text('Error: {"type":"http_error","code":500}'),),
    ),
    (
        [{"type": "code_interpreter_call", "id": "c1", "code": "print(1)", "container_id": "x", "outputs": [
            {"type": "logs", "logs": "1"}, {"type": "image", "url": "https://x/y.png"}]}],
        "code_interpreter", '{"code":"print(1)"}', (Text("1"), NO_IMAGE),
    ),
    (
        [{"type": "code_interpreter_call", "id": "c1", "code": "print(1)", "container_id": "x", "outputs": None}],
        "code_interpreter", '{"code":"print(1)"}', (NO_RESULT,),
    ),
    (
        [{"type": "web_search_call", "id": "c1", "status": "completed", "action": {
            "type": "search", "query": "tides", "sources": [{"type": "url", "url": "https://a"}, {"url": "https://b"}]}}],
        "web_search", '{"type":"search","query":"tides"}', (Text("https://a\nhttps://b"),),
    ),
    (
        [{"type": "file_search_call", "id": "c1", "queries": ["tides"], "results": [
            {"file_id": "f", "filename": "sea.md", "score": 0.9, "text": "High at six."}, {"text": "Low at noon."}]}],
        "file_search", '{"queries":["tides"]}', (Text("File 'sea.md':\nHigh at six.\nLow at noon."),),
    ),
]  # fmt: skip


def entries(*items: dict[str, Any], history: History | None = None) -> tuple[Entry, ...]:
    return parse_responses_request({"model": "m", "input": list(items)}, history or History()).turn.transcript.entries


@pytest.mark.parametrize(("items", "name", "arguments", "result"), SHOWN, ids=[str(row[0][0]["type"]) for row in SHOWN])
def test_a_foreign_result_is_shown_with_its_call(
    items: list[dict[str, Any]], name: str, arguments: str, result: tuple[Part, ...]
) -> None:
    shown = (PastCall("c1", name, arguments), ToolResult("c1", result))
    assert entries(*items) == shown
    assert entries(*items, USER)[:2] == shown


def test_ids_that_cannot_be_shown_are_replaced_by_the_same_in_each_request() -> None:
    items: list[dict[str, Any]] = [
        {"type": "shell_call", "call_id": "not an id", "action": {}},
        {"type": "shell_call_output", "call_id": "not an id", "output": "x"},
        {"type": "web_search_call", "action": {"query": "tides"}},
        {"type": "web_search_call", "action": {"query": "moon"}},
    ]
    shown = entries(*items)
    assert [entry.call_id for entry in shown if isinstance(entry, ToolResult)] == [
        shown_id("not an id"), "web_search_call_1", "web_search_call_2",
    ]  # fmt: skip
    assert entries(*items, USER) == (*shown, UserTurn((Text("Go on."),)))


def test_a_call_that_says_nothing_is_not_shown() -> None:
    assert entries({"type": "web_search_call", "id": "ws_1", "status": "failed"}) == ()


def test_a_strict_history_wants_an_output_for_what_the_client_runs() -> None:
    with pytest.raises(RequestError, match="No tool output found for shell call c1"):
        entries({"type": "shell_call", "call_id": "c1", "action": {}}, history=History(strict=True))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "search", "image", "c1", PNG, "a b"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "url", "image_url", "logs", "text", "stdout", "outcome", "sources", "exit_code"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
MEMBERS = [
    "call_id", "action", "operation", "output", "outputs", "results", "queries", "code", "name", "arguments",
    "server_label", "error", "status",
]  # fmt: skip


@given(
    st.lists(
        st.fixed_dictionaries(
            {"type": st.sampled_from(sorted({*CLIENT_CALLS, *CLIENT_OUTPUTS, *HOSTED_CALLS}))},
            optional=dict.fromkeys(MEMBERS, JSON),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_foreign_items_are_never_refused_whatever_they_hold(items: list[dict[str, Any]]) -> None:
    shown = entries(*items)
    called = {entry.call_id for entry in shown if isinstance(entry, PastCall)}
    assert called <= {entry.call_id for entry in shown if isinstance(entry, ToolResult)}
