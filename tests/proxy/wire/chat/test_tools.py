"""Each shape in which clients name tools, and what is demanded of the model."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from prompts import ChoiceMode, ToolChoice
from proxy.errors import RequestError
from proxy.wire.chat.tools import ChatTools, parse_chat_tools
from proxy.wire.json_body import parse_json_object
from proxy.wire.reader import Reader

FUNCTION: dict[str, Any] = {
    "name": "read_note",
    "description": "Read a note.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
}
OTHER = {"name": "write_note", "strict": True}
READ = {"type": "function", "function": FUNCTION}
WRITE = {"type": "function", **OTHER}
PATCH = {"type": "custom", "custom": {"name": "patch", "description": "d"}}
TOOLS = [READ, WRITE, PATCH, {"type": "web_search"}]

NAMED = ToolChoice(ChoiceMode.REQUIRED, ("read_note",))


def parse(**members: object) -> ChatTools:
    return parse_chat_tools(Reader(parse_json_object(orjson.dumps(members))))


def test_tools_are_offered_in_the_clients_order_whatever_their_shape() -> None:
    chat = parse(tools=TOOLS)
    tools = list(chat.tools.registry)
    assert [(tool.name, tool.strict) for tool in tools] == [
        ("read_note", False), ("write_note", True), ("patch", False),
    ]  # fmt: skip
    assert tools[0].description == "Read a note."
    assert tools[0].parameters == orjson.dumps(FUNCTION["parameters"]).decode()
    assert chat.tools.client_name("patch").kind == "custom"
    assert not chat.legacy


def test_functions_are_tools_in_an_older_shape() -> None:
    chat = parse(functions=[FUNCTION, OTHER], tools=[])
    assert [tool.name for tool in chat.tools.registry] == ["read_note", "write_note"]
    assert chat.legacy


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, ToolChoice()),
        ("auto", ToolChoice()),
        ("none", ToolChoice(ChoiceMode.NONE)),
        ("required", ToolChoice(ChoiceMode.REQUIRED)),
        ({"type": "function", "function": {"name": "read_note"}}, NAMED),
        ({"type": "function", "name": "read_note"}, NAMED),
        ({"type": "custom", "custom": {"name": "patch"}}, ToolChoice(ChoiceMode.REQUIRED, ("patch",))),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [
                {"type": "function", "function": {"name": "read_note"}},
            ]}},
            NAMED,
        ),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "read_note"}]},
            ToolChoice(ChoiceMode.AUTO, ("read_note",)),
        ),
        ({"type": "web_search"}, ToolChoice()),
    ],
)  # fmt: skip
def test_each_tool_choice_is_understood(choice: object, expected: ToolChoice) -> None:
    assert parse(tools=TOOLS, tool_choice=choice).choice == expected


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, ToolChoice()),
        ("auto", ToolChoice()),
        ("none", ToolChoice(ChoiceMode.NONE)),
        ({"name": "read_note"}, NAMED),
    ],
)
def test_each_function_call_is_understood(choice: object, expected: ToolChoice) -> None:
    assert parse(functions=[FUNCTION], function_call=choice).choice == expected


REFUSED: list[tuple[dict[str, Any], str | None, str | None, str]] = [
    # members, param, code, a part of the message
    ({"tools": [READ], "functions": [OTHER]}, None, "mutually_exclusive_parameters", "'tools' or 'functions'"),
    ({"tools": {}}, "tools", "invalid_type", "expected an array"),
    ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name", "missing_required_parameter", ""),
    ({"tools": [{"type": "custom", "custom": {}}]}, "tools[0].custom.name", "missing_required_parameter", ""),
    ({"tools": [READ, READ]}, "tools[1].function.name", "invalid_value", "declared twice"),
    ({"functions": [{}]}, "functions[0].name", "missing_required_parameter", "'functions[0].name'"),
    ({"functions": [{"name": "a b"}]}, "functions[0].name", "invalid_value", "does not match pattern"),
    ({"functions": [FUNCTION], "function_call": "x"}, "function_call", "invalid_value", "'none', 'auto'"),
    ({"functions": [FUNCTION], "function_call": 1}, "function_call", "invalid_type", "got an integer"),
    (
        {"functions": [FUNCTION], "function_call": {"name": "x"}},
        "function_call",
        None,
        "no function named 'x' was specified in the 'functions' parameter",
    ),
    ({"tools": [READ], "tool_choice": "x"}, "tool_choice", "invalid_value", "'auto', 'none', 'required'"),
    ({"tool_choice": "required"}, "tool_choice", None, "must be specified with 'tools'"),
    (
        {"tools": [READ], "tool_choice": {"type": "function"}},
        "tool_choice.function",
        "missing_required_parameter",
        "'tool_choice.function'",
    ),
    (
        {"tools": [READ], "tool_choice": {"type": "function", "function": {"name": "x"}}},
        "tool_choice",
        None,
        "Tool choice 'function' not found in 'tools' parameter.",
    ),
    (
        {"tools": [READ], "tool_choice": {"type": "allowed_tools"}},
        "tool_choice.allowed_tools",
        "missing_required_parameter",
        "",
    ),
    (
        {"tools": [READ], "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto"}}},
        "tool_choice.allowed_tools.tools",
        "missing_required_parameter",
        "",
    ),
]


@pytest.mark.parametrize(("members", "param", "code", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_names_no_tool_is_refused_in_openais_words(
    members: dict[str, Any], param: str | None, code: str | None, message: str
) -> None:
    with pytest.raises(RequestError) as caught:
        parse(**members)
    error = caught.value
    assert (error.status, error.param, error.code) == (400, param, code)
    assert message in error.message
