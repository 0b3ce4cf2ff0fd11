"""Tools of every kind: what the model is offered, what the client reads back, and what may be chosen of them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from openai.types.responses.tool_param import ToolParam

from prompts import ChoiceMode, PastCall, ToolChoice
from proxy.errors import RequestError
from proxy.wire.reader import Reader
from proxy.wire.responses.request import ResponsesRequest, parse_responses_request
from proxy.wire.tools import CALLABLE_TOOLS, HOSTED_TOOLS, DeclaredName, parse_tools
from tests.support.published_types import type_names

READ: dict[str, Any] = {"type": "function", "name": "read", "parameters": {"type": "object"}}
PATCH: dict[str, Any] = {
    "type": "custom",
    "name": "patch",
    "description": "Patch a file.",
    "format": {"type": "grammar", "syntax": "lark", "definition": 'start: "x"'},
}
NOTES: dict[str, Any] = {
    "type": "namespace",
    "name": "notes",
    "description": "Notes.",
    "tools": [{"type": "function", "name": "find"}, {"type": "custom", "name": "write"}],
}
TOOLS = [READ, PATCH, NOTES, {"type": "web_search"}, {"type": "mcp", "server_label": "s"}]


def parse(**members: Any) -> ResponsesRequest:
    return parse_responses_request({"model": "m", "input": "hi", **members})


def test_every_kind_of_tool_of_the_official_client_is_known() -> None:
    assert type_names(ToolParam) <= {*CALLABLE_TOOLS, "namespace", *HOSTED_TOOLS}


def test_hosted_tools_are_echoed_and_not_offered() -> None:
    hosted: list[dict[str, Any]] = [{"type": kind} for kind in sorted(HOSTED_TOOLS)]
    request = parse(tools=hosted)
    assert len(request.turn.registry) == 0
    assert list(request.echo["tools"]) == hosted


def test_a_custom_tool_is_offered_as_a_function_of_one_string() -> None:
    (tool,) = parse(tools=[PATCH]).turn.registry
    assert (tool.name, tool.description, tool.strict, tool.grammar) == ("patch", "Patch a file.", True, 'start: "x"')
    schema = orjson.loads(tool.parameters or "")
    assert schema["required"] == ["input"]
    assert 'start: "x"' in schema["properties"]["input"]["description"]


def test_a_custom_tool_is_as_strict_as_its_format() -> None:
    (free,) = parse(tools=[{**PATCH, "format": {"type": "text"}, "strict": True}]).turn.registry
    assert (free.strict, free.grammar) == (False, None)


def test_a_custom_tool_is_echoed_with_its_format() -> None:
    bare, full = parse(tools=[{"type": "custom", "name": "say"}, {**PATCH, "defer_loading": False}]).echo["tools"]
    assert bare == {"type": "custom", "name": "say", "description": None, "format": {"type": "text"}}
    assert full == {**PATCH, "defer_loading": False}


def test_the_members_of_a_namespace_are_offered_under_flat_names() -> None:
    request = parse(tools=[NOTES])
    assert [tool.name for tool in request.turn.registry] == ["notes__find", "notes__write"]
    write = request.tools.client_name("notes__write")
    assert (write.name, write.namespace, write.kind) == ("write", "notes", "custom")


def test_a_past_custom_call_is_shown_in_the_form_that_is_asked_for() -> None:
    call = {"type": "custom_tool_call", "call_id": "c", "name": "write", "namespace": "notes", "input": 'say "x"\n'}
    output = {"type": "custom_tool_call_output", "call_id": "c", "output": "done"}
    for tools in ([NOTES], None):
        past = parse(tools=tools, input=[call, output]).turn.transcript.entries[0]
        assert past == PastCall("c", "notes__write", '{"input":"say \\"x\\"\\n"}')


def test_tools_that_an_input_item_brings_are_offered_and_not_echoed() -> None:
    item = {"type": "additional_tools", "role": "developer", "tools": [READ, NOTES]}
    request = parse(tools=[READ], input=[item, {"role": "user", "content": "hi"}])
    assert [tool.name for tool in request.turn.registry] == ["read", "notes__find", "notes__write"]
    assert [tool["name"] for tool in request.echo["tools"]] == ["read"]
    with pytest.raises(RequestError, match=r"input\[0\].tools\[0\].name"):
        parse(input=[{**item, "tools": [{"type": "function"}]}])


def named(kind: str, name: str, **more: str) -> dict[str, str]:
    return {"type": kind, "name": name, **more}


def allowed(mode: str, *tools: dict[str, str]) -> dict[str, Any]:
    return {"type": "allowed_tools", "mode": mode, "tools": list(tools)}


REQUIRED, AUTO, NONE = ChoiceMode.REQUIRED, ChoiceMode.AUTO, ChoiceMode.NONE

CHOICES: list[tuple[Any, ToolChoice]] = [
    (None, ToolChoice()),
    ("auto", ToolChoice()),
    ("none", ToolChoice(NONE)),
    ("required", ToolChoice(REQUIRED)),
    (named("function", "read"), ToolChoice(REQUIRED, ("read",))),
    (named("custom", "patch"), ToolChoice(REQUIRED, ("patch",))),
    (named("function", "find", namespace="notes"), ToolChoice(REQUIRED, ("notes__find",))),
    (named("custom", "write", namespace="notes"), ToolChoice(REQUIRED, ("notes__write",))),
    ({"type": "web_search"}, ToolChoice()),
    ({"type": "mcp", "server_label": "s", "name": "x"}, ToolChoice()),
    (allowed("auto", named("function", "read")), ToolChoice(AUTO, ("read",))),
    (
        allowed("required", named("custom", "patch"), {"type": "web_search"}, named("function", "read")),
        ToolChoice(REQUIRED, ("patch", "read")),
    ),
    (allowed("auto", named("namespace", "notes")), ToolChoice(AUTO, ("notes__find", "notes__write"))),
    (allowed("auto", {"type": "mcp", "server_label": "s"}), ToolChoice(AUTO, ())),
    (allowed("required", {"type": "web_search"}), ToolChoice(NONE)),
]


@pytest.mark.parametrize(("choice", "expected"), CHOICES, ids=[str(choice)[:60] for choice, _ in CHOICES])
def test_every_form_of_tool_choice_is_understood_and_echoed(choice: Any, expected: ToolChoice) -> None:
    request = parse(tools=TOOLS, tool_choice=choice)
    assert request.turn.choice == expected
    assert request.echo["tool_choice"] == (choice or "auto")


def test_of_hosted_tools_alone_no_call_can_be_required() -> None:
    assert parse(tools=[{"type": "web_search"}], tool_choice="required").turn.choice == ToolChoice(NONE)


@pytest.mark.parametrize(
    ("choice", "missing"),
    [
        (named("function", "nothing"), "function"),
        (named("function", "patch"), "function"),
        (named("custom", "read"), "custom"),
        (named("function", "find"), "function"),
        ({"type": "shell"}, "shell"),
        (allowed("auto", named("function", "web_search")), "web_search"),
        (allowed("auto", {"type": "shell"}), "shell"),
        (allowed("auto", named("namespace", "other")), "other"),
    ],
)
@pytest.mark.parametrize("tools", [TOOLS, None])
def test_what_is_chosen_must_be_among_the_tools(choice: Any, missing: str, tools: Any) -> None:
    with pytest.raises(RequestError) as caught:
        parse(tools=tools, tool_choice=choice)
    error = caught.value
    assert (error.status, error.param, error.code) == (400, "tool_choice", None)
    assert error.message == f"Tool choice '{missing}' not found in 'tools' parameter."


@pytest.mark.parametrize(
    ("choice", "param", "code"),
    [
        ("sometimes", "tool_choice", "invalid_value"),
        (7, "tool_choice", "invalid_type"),
        ({"type": "function", "function": {"name": "read"}}, "tool_choice.name", "missing_required_parameter"),
        ({"type": "custom"}, "tool_choice.name", "missing_required_parameter"),
        ({"type": "wand"}, "tool_choice.type", "invalid_value"),
        ({}, "tool_choice.type", "missing_required_parameter"),
        ({"type": "allowed_tools", "mode": "auto"}, "tool_choice.tools", "missing_required_parameter"),
        (allowed("none", named("function", "read")), "tool_choice.mode", "invalid_value"),
        (allowed("auto", {"type": "wand"}), "tool_choice.tools[0].type", "invalid_value"),
        (allowed("required"), "tool_choice", None),
    ],
)
def test_a_choice_that_is_none_is_refused(choice: Any, param: str, code: str | None) -> None:
    with pytest.raises(RequestError) as caught:
        parse(tools=TOOLS, tool_choice=choice)
    assert (caught.value.status, caught.value.param, caught.value.code) == (400, param, code)


SEARCH: dict[str, Any] = {
    "type": "tool_search",
    "execution": "client",
    "description": "Finds tools.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
}


def test_a_search_that_the_client_executes_is_offered() -> None:
    request = parse(tools=[SEARCH, READ])
    search, _ = request.turn.registry
    assert (search.name, search.description, search.strict) == ("tool_search", "Finds tools.", False)
    assert search.parameters == orjson.dumps(SEARCH["parameters"]).decode()
    assert request.tools.client_name("tool_search").kind == "tool_search"
    assert request.echo["tools"][0] == SEARCH


@pytest.mark.parametrize("execution", [{}, {"execution": "server"}, {"execution": None}])
def test_with_a_hosted_search_deferred_tools_are_offered_at_once(execution: dict[str, Any]) -> None:
    request = parse(tools=[{"type": "tool_search", **execution}, {**READ, "defer_loading": True}])
    assert [tool.name for tool in request.turn.registry] == ["read"]


DEFERRED = {**READ, "defer_loading": True}


@pytest.mark.parametrize("search", [{"type": "tool_search"}, SEARCH])
def test_a_deferred_function_of_its_own_is_called_in_a_namespace_of_its_name(search: dict[str, Any]) -> None:
    found = {"type": "tool_search_output", "call_id": "c", "tools": [DEFERRED]}
    call = {"type": "tool_search_call", "call_id": "c", "arguments": {}}
    tools = parse(tools=[search, DEFERRED, PATCH], input=[call, found]).tools
    assert tools.client_name("read") == DeclaredName("read", "read")
    assert tools.client_name("patch") == DeclaredName("patch", kind="custom")
    assert tools.model_name("read", "read") == tools.model_name("read", None) == "read"
    assert parse(tools=[DEFERRED]).tools.client_name("read") == DeclaredName("read"), "nothing has searched"
    assert parse(tools=[READ]).tools.model_name("read", "read") == "read", "it was found in an earlier request"


def test_a_hosted_search_finds_what_the_input_has_not_brought_yet() -> None:
    hosted = {"type": "tool_search"}
    namespace = {**NOTES, "tools": [{"type": "function", "name": "find", "defer_loading": True}]}
    tools = [hosted, DEFERRED, PATCH, namespace]
    unfound = parse(tools=tools).tools.unfound
    assert {flat: found["type"] for flat, found in unfound.items()} == {"read": "function", "notes__find": "namespace"}
    assert unfound["notes__find"]["tools"]
    brought = {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": [namespace]}
    assert parse(tools=tools, input=[brought]).tools.unfound.keys() == {"read"}
    assert not parse(tools=[SEARCH, DEFERRED]).tools.unfound, "the client searches"
    assert not parse(tools=[DEFERRED]).tools.unfound


def test_beside_a_search_of_the_client_deferred_tools_are_offered_once_they_are_found() -> None:
    namespace = {**NOTES, "tools": [{"type": "function", "name": "find", "defer_loading": True}]}
    tools = [SEARCH, {**READ, "defer_loading": True}, PATCH, namespace]
    request = parse(tools=tools)
    assert [tool.name for tool in request.turn.registry] == ["tool_search", "patch"]
    assert request.turn.searchable
    assert not parse(tools=[{"type": "tool_search"}, *tools[1:]]).turn.searchable
    assert [tool["type"] for tool in request.echo["tools"]] == ["tool_search", "function", "custom", "namespace"]
    searched = [
        {"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {}},
        {"type": "tool_search_output", "call_id": "c", "execution": "client", "tools": [namespace]},
    ]
    assert [tool.name for tool in parse(tools=tools, input=searched).turn.registry] == [
        "tool_search", "patch", "notes__find",
    ]  # fmt: skip


def test_a_search_may_be_demanded_and_allowed() -> None:
    wanted = ToolChoice(ChoiceMode.REQUIRED, ("tool_search",))
    assert parse(tools=[SEARCH, READ], tool_choice={"type": "tool_search"}).turn.choice == wanted
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "tool_search"}]}
    assert parse(tools=[SEARCH, READ], tool_choice=allowed).turn.choice == wanted
    # A hosted one is of no consequence.
    assert parse(tools=[{"type": "tool_search"}, READ], tool_choice={"type": "tool_search"}).turn.choice == ToolChoice()


def test_a_call_may_be_demanded_of_tools_that_the_input_brings() -> None:
    brought = [{"type": "additional_tools", "role": "developer", "tools": [READ]}]
    turn = parse(tools=[], input=brought, tool_choice="required").turn
    assert (turn.choice, turn.registry.names) == (ToolChoice(ChoiceMode.REQUIRED), (READ["name"],))


def test_a_search_has_its_name_alone() -> None:
    with pytest.raises(RequestError, match="declared twice"):
        parse(tools=[SEARCH, {"type": "function", "name": "tool_search"}])


def test_tools_that_an_earlier_request_had_are_read_once_and_brought_ones_stand_beside_them() -> None:
    request = Reader({"tools": [{"type": "function", "name": "read", "description": "Reads a note."}]})
    same = Reader({"tools": [{"type": "function", "name": "read", "description": "Reads a note."}]})
    other = Reader({"tools": [{"type": "function", "name": "read", "description": "Reads a page."}]})
    assert parse_tools(request) is parse_tools(same)
    assert [tool.description for tool in parse_tools(other).registry] == ["Reads a page."]
    brought = parse_tools(same, [Reader({"type": "function", "name": "write"})])
    assert [tool.name for tool in brought.registry] == ["read", "write"]
    assert len(parse_tools(same).registry) == 1
