"""Blocks of every kind, as they stand in histories: ours, Anthropic's own and those of next week."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from prompts import AssistantText, Entry, Guidance, Image, PastCall, Text, ToolResult, UserTurn
from proxy.errors import RequestError
from proxy.wire.anthropic.blocks import BroughtTools, brought_tools, parse_conversation
from proxy.wire.parameters import MAX_ITEMS
from proxy.wire.reader import Reader
from tests.support.parts import text
from tests.support.pdf import pdf

PIXEL = base64.b64encode(b"a picture").decode()
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
SHOWN = Image(f"data:image/png;base64,{PIXEL}")


def entries_of(*messages: Any) -> tuple[Entry, ...]:
    return parse_conversation(Reader({"messages": [*messages]})).entries


def said(*blocks: Any) -> tuple[Entry, ...]:
    return entries_of({"role": "user", "content": [*blocks]})


def refusal(*messages: Any, param: str | None = None) -> str:
    with pytest.raises(RequestError) as refused:
        entries_of(*messages)
    assert refused.value.status == 400
    assert param in (None, refused.value.param)
    return refused.value.message


def result(content: Any, **members: Any) -> ToolResult:
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}]}
    block = {"type": "tool_result", "tool_use_id": "t1", "content": content, **members}
    *_, last = entries_of(call, {"role": "user", "content": [block]})
    assert isinstance(last, ToolResult)
    return last


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ({"type": "text", "text": "hi"}, Text("hi")),
        (IMAGE, SHOWN),
        ({"type": "image", "source": {"type": "url", "url": SHOWN.url}}, SHOWN),
        (
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Beans."}},
            Text("Beans."),
        ),
        (
            {
                "type": "document",
                "title": "a.md",
                "context": "A note.",
                "source": {"type": "content", "content": "Peas."},
            },
            Text("Document 'a.md':\nA note.\nPeas."),
        ),
        (
            {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "Peas."}, IMAGE]}},
            Text("Peas."),
        ),
        (
            {"type": "document", "source": {"type": "base64", "data": base64.b64encode(b"Beans.").decode()}},
            Text("Beans."),
        ),
        (
            {"type": "search_result", "title": "T", "source": "s", "content": [{"type": "text", "text": "Beans."}]},
            Text("Search result 'T' (s):\nBeans."),
        ),
    ],
)
def test_what_the_user_shows_the_model_is_shown(block: Any, part: Any) -> None:
    assert said(block) == (UserTurn((part,)),)
    assert result([block]) == ToolResult("t1", (part,))


@pytest.mark.parametrize(
    "block", [{"type": "container_upload", "file_id": "f"}, {"type": "of_next_week", "x": [1]}, {"type": "text"}]
)
def test_what_is_unknown_is_left_out(block: Any) -> None:
    assert said(block) == ()
    assert said(block, {"type": "text", "text": "hi"}) == (UserTurn(text("hi")),)


URL = {"type": "url", "url": "https://example.com/a"}
FILE = {"type": "file", "file_id": "file_1"}
IMAGES = "Remote and uploaded images are not fetched: send them with a source of type 'base64'."
DOCUMENTS = "Remote and uploaded documents are not fetched: send them with a source of type 'base64' or 'text'."
BINARY = "This backend can only be shown PDFs and files of UTF-8 text: send the text of the document."


@pytest.mark.parametrize(
    ("kind", "source", "told", "param"),
    [
        ("image", URL, IMAGES, "source.type"),
        ("image", FILE, IMAGES, "source.type"),
        ("document", URL, DOCUMENTS, "source.type"),
        ("document", FILE, DOCUMENTS, "source.type"),
        ("image", {"type": "base64", "media_type": "image/png", "data": "!"}, "not base64", "source"),
        ("image", {"type": "base64", "media_type": "text/plain", "data": "aGk="}, "unsupported MIME type", "source"),
        ("document", {"type": "base64", "data": "//8="}, BINARY, "source"),
        ("document", {"type": "base64", "data": "!"}, BINARY, "source"),
        ("document", {"type": "base64", "data": base64.b64encode(b"%PDF-").decode()}, "PDF", "source"),
    ],
)
def test_what_cannot_be_shown_is_refused(kind: str, source: Any, told: str, param: str) -> None:
    with pytest.raises(RequestError) as refused:
        said({"type": kind, "source": source})
    assert told in refused.value.message
    assert "send " in refused.value.message or kind == "image"
    assert (refused.value.status, refused.value.param) == (400, f"messages[0].content[0].{param}")


def test_a_pdf_is_shown_as_its_text() -> None:
    data = base64.b64encode(pdf("Beans and peas.")).decode()
    (turn,) = said({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": data}})
    assert isinstance(turn, UserTurn)
    assert "Beans and peas." in "".join(part.text for part in turn.parts if isinstance(part, Text))


def test_only_references_of_results_name_what_was_found() -> None:
    found = [
        {"type": "tool_reference", "tool_name": "fetch"},
        {"type": "tool_reference", "tool_name": 1},
        {"type": "text", "text": "x", "tool_name": "read"},
        "text",
    ]
    block = {"type": "tool_result", "tool_use_id": "t1", "content": [*found]}
    messages: list[Any] = [
        {"role": "user", "content": [block, {"type": "text", "content": found}, "x"]},
        {"role": "user", "content": "hi"},
        "hi",
    ]
    assert brought_tools(Reader({"messages": messages})) == BroughtTools(frozenset({"fetch"}))
    assert brought_tools(Reader({"messages": "hi"})) == BroughtTools()
    assert brought_tools(Reader({})) == BroughtTools()


def change(kind: str, tool: Any) -> dict[str, Any]:
    return {"type": f"tool_{kind}", "tool": tool}


def test_a_system_message_brings_tools_by_name_or_as_they_are() -> None:
    write: dict[str, Any] = {"name": "write", "input_schema": {"type": "object"}}
    changes: list[Any] = [
        change("addition", {"type": "tool_reference", "name": "fetch"}),
        change("addition", {"type": "tool_definition", "definition": write}),
        change("addition", {"type": "mcp_toolset_reference", "server_name": "s"}),
        change("addition", {"type": "tool_definition", "definition": {"type": "mcp_toolset"}}),
        change("addition", None),
        change("removal", {"type": "tool_reference", "name": "read"}),
    ]
    brought = brought_tools(Reader({"messages": [{"role": "system", "content": changes}]}))
    assert brought == BroughtTools(frozenset({"fetch", "write"}), (write,))
    assert parse_conversation(Reader({"messages": [{"role": "system", "content": changes}]})).entries == ()


@pytest.mark.parametrize(
    ("content", "members", "shown"),
    [
        (None, {}, ()),
        ("", {}, ()),
        ("beans", {}, text("beans")),
        ([{"type": "text", "text": "beans"}, IMAGE], {}, (Text("beans"), SHOWN)),
        ("Exit code 3", {"is_error": True}, text("error: Exit code 3")),
        (None, {"is_error": True}, text("error")),
        ([IMAGE], {"is_error": True}, (Text("error"), SHOWN)),
        ("beans", {"is_error": False}, text("beans")),
    ],
)
def test_a_result_is_what_its_tool_said(content: Any, members: dict[str, Any], shown: Any) -> None:
    assert result(content, **members).parts == shown


@pytest.mark.parametrize(
    ("block", "entry"),
    [
        ({"type": "text", "text": "Hello"}, AssistantText("Hello")),
        ({"type": "compaction", "content": "They spoke of beans."}, AssistantText("They spoke of beans.")),
        ({"type": "tool_use", "id": "t1", "name": "f", "input": '{"a": 1}'}, PastCall("t1", "f", '{"a": 1}')),
        ({"type": "tool_use", "id": "t1", "name": "f", "input": None}, PastCall("t1", "f", "{}")),
        ({"type": "tool_use", "id": "t1", "name": "f", "input": ""}, PastCall("t1", "f", "{}")),
        ({"type": "tool_use", "id": "t1", "name": "f", "caller": {"type": "direct"}}, PastCall("t1", "f", "{}")),
        ({"type": "thinking", "thinking": "Hm.", "signature": "x"}, None),
        ({"type": "redacted_thinking", "data": "x"}, None),
        ({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, None),
        ({"type": "web_search_tool_result", "tool_use_id": "s", "content": []}, None),
        ({"type": "mcp_tool_use", "id": "m", "name": "f", "server_name": "s", "input": {}}, None),
        ({"type": "fallback", "from": "a"}, None),
        ({"type": "text", "text": " \n"}, None),
    ],
)
def test_what_the_assistant_said(block: Any, entry: Entry | None) -> None:
    first, *rest = entries_of({"role": "assistant", "content": [block]}, {"role": "user", "content": "Go on."})
    assert first == (entry or UserTurn(text("Go on.")))
    assert isinstance(rest[-1] if rest else first, UserTurn)


def test_guidance_stays_where_it_stands() -> None:
    entries = entries_of(
        {"role": "user", "content": "hi"},
        {"role": "system", "content": [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]},
        {"role": "assistant", "content": "Hello"},
        {"role": "system", "content": ""},
        {"role": "user", "content": "Go on."},
    )
    assert entries == (
        UserTurn(text("hi")), Guidance("One.\n\nTwo."), AssistantText("Hello"), UserTurn(text("Go on.")),
    )  # fmt: skip


@pytest.mark.parametrize(
    "written",
    ["hi", [{"type": "text", "text": "hi"}], [{"type": "text", "text": "hi", "cache_control": {}}]],
)
def test_how_a_text_is_written_does_not_show(written: Any) -> None:
    assert entries_of({"role": "user", "content": written}) == (UserTurn(text("hi")),)


def test_an_answer_that_is_begun_cannot_be_gone_on_with() -> None:
    user = {"role": "user", "content": "hi"}
    assert "prefill" in refusal(user, {"role": "assistant", "content": "The answer is"}, param="messages")
    assert entries_of(user, {"role": "assistant", "content": " \n"}) == (UserTurn(text("hi")),)


@pytest.mark.parametrize(
    ("messages", "named"),
    [
        ([], "at least one message"),
        ([{"content": "hi"}], "messages[0].role"),
        ([{"role": "tool", "content": "hi"}], "'user', 'assistant', 'system'"),
        ([{"role": "user", "content": 1}], "messages[0].content"),
        ([{"role": "user", "content": [{"type": "tool_result"}]}], "messages[0].content[0].tool_use_id"),
        ([{"role": "user", "content": [{"type": "image"}]}], "messages[0].content[0].source"),
        ([{"role": "assistant", "content": [{"type": "tool_use", "name": "f"}]}], "messages[0].content[0].id"),
    ],
)
def test_what_is_wrong_is_named_by_its_place(messages: list[Any], named: str) -> None:
    assert named in refusal(*messages)


def test_a_fault_has_its_place() -> None:
    refusal({"role": "tool", "content": "hi"}, param="messages[0].role")
    refusal({"role": "user", "content": 1}, param="messages[0].content")
    refusal(*[{"role": "user", "content": "hi"}] * (MAX_ITEMS + 1), param="messages")
    empty = {"type": "document", "title": "a.md", "source": {"type": "text"}}
    assert said(empty) == (UserTurn((Text("Document 'a.md':"),)),)
