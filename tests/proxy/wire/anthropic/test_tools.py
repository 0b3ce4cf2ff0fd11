"""Tools of Messages: which the model is offered, which are told and which are refused."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from prompts import ChoiceMode, ToolChoice
from proxy.errors import RequestError
from proxy.wire.anthropic.tools import PLACEHOLDER, MessagesTools, parse_messages_tools
from proxy.wire.json_body import JsonObject
from proxy.wire.reader import Reader

READ: JsonObject = {"name": "read", "description": "Reads.", "input_schema": {"type": "object"}, "strict": True}


def parsed(*tools: Any, **members: Any) -> MessagesTools:
    return parse_messages_tools(Reader({"tools": [*tools], **members}))


def refusal(*tools: Any, **members: Any) -> str:
    with pytest.raises(RequestError) as refused:
        parsed(*tools, **members)
    assert refused.value.status == 400
    return refused.value.message


@pytest.mark.parametrize("kind", [{}, {"type": None}, {"type": "custom"}, {"type": "of_next_week"}])
def test_a_tool_with_a_schema_is_offered(kind: dict[str, Any]) -> None:
    more = {"cache_control": {"type": "ephemeral"}, "eager_input_streaming": True, "allowed_callers": ["direct"]}
    (tool,) = parsed({**READ, **kind, **more}).tools.registry
    assert (tool.name, tool.description, tool.parameters, tool.strict) == ("read", "Reads.", '{"type":"object"}', True)


@pytest.mark.parametrize(
    ("kind", "name", "members"),
    [
        ("bash_20250124", "bash", {"command", "restart"}),
        ("text_editor_20250728", "str_replace_based_edit_tool", {"command", "path", "old_str", "new_str"}),
        ("memory_20250818", "memory", {"command", "path", "old_path", "new_path"}),
    ],
)
def test_a_tool_of_the_clients_own_has_the_schema_that_its_client_knows(
    kind: str, name: str, members: set[str]
) -> None:
    (tool,) = parsed({"type": kind, "name": name}).tools.registry
    schema = orjson.loads(tool.parameters or "{}")
    assert tool.name == name
    assert members <= set(schema["properties"])


@pytest.mark.parametrize("kind", ["web_search_20250305", "tool_search_tool_regex_20251119", "code_execution_20260120"])
def test_a_tool_that_runs_at_the_server_is_told_and_not_offered(kind: str) -> None:
    chosen = parsed({"type": kind, "name": "it"}, READ)
    assert [tool.name for tool in chosen.tools.registry] == ["read"]
    assert kind in chosen.tools.warnings[0]
    assert "'it'" in refusal({"type": kind, "name": "it"}, tool_choice={"type": "tool", "name": "it"})


def test_a_tool_without_a_schema_that_nobody_knows_is_told_and_not_offered() -> None:
    assert "telepathy_20270101" in parsed({"type": "telepathy_20270101", "name": "it"}).tools.warnings[0]


@pytest.mark.parametrize("kind", ["computer_20250124", "computer_toolset_20260801", "browser_toolset_20260801"])
def test_sets_of_tools_that_nobody_describes_are_refused(kind: str) -> None:
    with pytest.raises(RequestError) as refused:
        parsed(READ, {"type": kind, "name": "computer"})
    assert kind in refused.value.message
    assert refused.value.param == "tools[1].type"


def test_the_placeholder_is_never_shown() -> None:
    assert not len(parsed({**READ, "name": PLACEHOLDER}).tools.registry)


@pytest.mark.parametrize(
    ("choice", "meant"),
    [
        (None, ToolChoice()),
        ({"type": "auto"}, ToolChoice()),
        ({"type": "none"}, ToolChoice(ChoiceMode.NONE)),
        ({"type": "any"}, ToolChoice(ChoiceMode.REQUIRED)),
        ({"type": "tool", "name": "read"}, ToolChoice(ChoiceMode.REQUIRED, ("read",))),
    ],
)
@pytest.mark.parametrize("alone", [True, False])
def test_a_choice_and_how_many_calls(choice: Any, meant: ToolChoice, alone: bool) -> None:
    given = choice and {**choice, "disable_parallel_tool_use": alone}
    chosen = parsed(READ, tool_choice=given)
    assert chosen.choice == meant
    assert chosen.parallel is not (alone and choice is not None)


@pytest.mark.parametrize(
    ("tools", "choice", "named"),
    [
        ([READ], {"type": "some"}, "'auto', 'any', 'tool', 'none'"),
        ([READ], {"type": "tool"}, "tool_choice.name"),
        ([READ], {"type": "tool", "name": "write"}, "'write'"),
        ([], {"type": "any"}, "'tools'"),
        ([READ], {}, "tool_choice.type"),
        ([READ], "auto", "tool_choice"),
        ([READ, READ], None, "declared twice"),
        ([{**READ, "name": "a b"}], None, "tools[0].name"),
    ],
)
def test_what_is_wrong_is_named(tools: list[Any], choice: Any, named: str) -> None:
    assert named in refusal(*tools, tool_choice=choice)


def test_a_choice_that_names_no_tool_names_its_place() -> None:
    with pytest.raises(RequestError) as refused:
        parsed(READ, tool_choice={"type": "tool", "name": "write"})
    assert refused.value.param == "tool_choice.name"


@pytest.mark.parametrize(
    ("examples", "shown"), [([{"path": "a.md"}], [{"path": "a.md"}]), ([], None), ("a.md", None), (None, None)]
)
def test_examples_of_an_input_are_shown_in_the_schema(examples: Any, shown: Any) -> None:
    (tool,) = parsed({**READ, "input_examples": examples}).tools.registry
    assert orjson.loads(tool.parameters or "{}").get("examples") == shown


FETCH: JsonObject = {"name": "fetch", "input_schema": {"type": "object"}, "defer_loading": True}


def names(chosen: MessagesTools) -> list[str]:
    return [tool.name for tool in chosen.tools.registry]


def test_a_deferred_tool_is_on_offer_once_it_was_found() -> None:
    unfound = parsed(FETCH, READ)
    assert (names(unfound), unfound.searchable) == (["read"], True)
    chosen = parse_messages_tools(Reader({"tools": [FETCH, READ]}), {"fetch", "read"})
    assert (names(chosen), chosen.searchable) == (["read", "fetch"], False)
    assert chosen.tools.late == {"fetch"}


def test_where_anthropic_would_search_deferred_tools_are_on_offer_at_once() -> None:
    search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    chosen = parsed(search, FETCH, READ)
    assert (names(chosen), chosen.searchable) == (["fetch", "read"], False)
    assert not chosen.tools.late


def test_a_placeholder_says_that_there_is_more_to_find() -> None:
    placeholder = {"name": "DeferredToolPlaceholder", "input_schema": {"type": "object"}}
    chosen = parsed(placeholder, READ)
    assert (names(chosen), chosen.searchable) == (["read"], True)


def test_a_schema_that_is_no_object_is_refused_by_the_name_that_its_client_knows() -> None:
    with pytest.raises(RequestError, match=r"tools\[0\]\.input_schema"):
        parsed({**READ, "input_schema": []})


def test_a_deferred_tool_whose_name_is_no_string_is_refused() -> None:
    with pytest.raises(RequestError, match=r"tools\[0\]\.name"):
        parsed({**FETCH, "name": {}})
