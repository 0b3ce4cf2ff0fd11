from __future__ import annotations

import pytest

from parser import Tool, ToolRegistry

TOOLS = (Tool("read_note"), Tool("web.search"), Tool("getFileTree"), Tool("get_time"), Tool("get-time"))
REGISTRY = ToolRegistry(TOOLS)


def test_tools_keep_the_order_in_which_they_were_declared() -> None:
    assert tuple(REGISTRY) == TOOLS
    assert REGISTRY.names == ("read_note", "web.search", "getFileTree", "get_time", "get-time")
    assert len(REGISTRY) == 5


def test_a_name_declared_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="read_note"):
        ToolRegistry([Tool("read_note"), Tool("read_note", "another")])


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_an_exact_name_is_that_tool(tool: Tool) -> None:
    assert REGISTRY.match(tool.name) is tool
    assert tool.name in REGISTRY


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Read_Note", "read_note"),
        ("readNote", "read_note"),
        ("read-note", "read_note"),
        ("functions.read_note", "read_note"),
        ("default_api.read_note", "read_note"),
        ("tools.web_search", "web.search"),
        ("get_file_tree", "getFileTree"),
        ("GETFILETREE", "getFileTree"),
        (" read_note\n", "read_note"),
        ("read\\_note", "read_note"),
        ("Read Note", "read_note"),
        ("`read_note`", "read_note"),
        ('"read_note"', "read_note"),
        ("read_note()", "read_note"),
        ("functions.read\\_note", "read_note"),
        ("Functions.Read_Note", "read_note"),
        ("functions.read_note:0", "read_note"),
        ("tools/read_note", "read_note"),
        ("tool:read-note", "read_note"),
        ("multi_tool_use.read_note", "read_note"),
    ],
)
def test_a_near_name_is_the_only_tool_that_it_can_mean(name: str, meant: str) -> None:
    tool = REGISTRY.match(name)
    assert tool is not None
    assert tool.name == meant
    assert name not in REGISTRY


@pytest.mark.parametrize(
    "name",
    ["", "read", "read_notes", "getTime", "other.read_note", "functions.", "functions.getTime", "functionsread_note",
     "read_note:0", "functions.tools.read_note"],
)  # fmt: skip
def test_a_name_that_means_none_or_two_is_no_tool(name: str) -> None:
    assert REGISTRY.match(name) is None


@pytest.mark.parametrize("tool", ["_", "-", "functions."])
def test_a_name_of_punctuation_alone_is_near_to_nothing(tool: str) -> None:
    registry = ToolRegistry([Tool(tool)])
    assert registry.match(tool) is not None
    for name in (".", "--", "tools.", ""):
        assert registry.match(name) is None


def test_a_choice_of_tools_keeps_their_order() -> None:
    chosen = REGISTRY.only(["get_time", "read_note", "no such tool"])
    assert [tool.name for tool in chosen] == ["read_note", "get_time"]


def test_a_near_name_can_become_unique_in_a_choice() -> None:
    tool = REGISTRY.only(["get_time"]).match("getTime")
    assert tool is not None
    assert tool.name == "get_time"


def test_a_tool_that_was_declared_with_a_prefix_is_nearer_than_one_without() -> None:
    registry = ToolRegistry([Tool("functions.read"), Tool("read"), Tool("tools.list")])
    for name, meant in {"Functions.Read": "functions.read", "READ": "read", "list": "tools.list"}.items():
        tool = registry.match(name)
        assert tool is not None
        assert tool.name == meant
    assert registry.match("tools.read") is None
