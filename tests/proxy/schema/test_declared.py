"""Schemas that a request declares, and what they say of the arguments of a call."""

from __future__ import annotations

import pytest

from parser import Tool, ToolRegistry
from proxy.errors import RequestError
from proxy.schema.declared import ToolSchemas, declared_schema

COUNT = '{"type":"object","properties":{"count":{"type":"integer"}},"required":["count"]}'
# Nobody can tell whether a long text has such a thing in it.
UNTELLABLE = '{"type":"object","properties":{"a":{"type":"string","pattern":"(?=a)b"}}}'


def problem(tool: Tool, arguments: str) -> tuple[str | None, list[str]]:
    """What is wrong with them, and why anything cannot be told."""
    unchecked: list[str] = []
    return ToolSchemas(ToolRegistry([tool]), unchecked.append).problem(tool, arguments), unchecked


@pytest.mark.parametrize("strict", [False, True])
def test_the_problem_of_arguments_says_where_it_is(strict: bool) -> None:
    tool = Tool("reserve", None, COUNT, strict=strict)
    assert problem(tool, '{"count": 2}') == (None, [])
    assert problem(tool, '{"count": "two"}') == ("at 'count': 'two' is not of type 'integer'", [])
    assert problem(tool, "{}") == ("'count' is a required property", [])


def test_arguments_that_are_no_json_fit_nothing() -> None:
    assert problem(Tool("reserve", None, COUNT), '{"count": NaN}') == ("they are not valid JSON", [])


@pytest.mark.parametrize("strict", [False, True])
def test_a_tool_without_a_schema_takes_anything(strict: bool) -> None:
    assert problem(Tool("search", None, None, strict=strict), "no JSON") == (None, [])


def test_a_lenient_tool_whose_schema_is_none_takes_anything_and_that_is_told() -> None:
    assert problem(Tool("search", None, '{"type": 5}'), "{}") == (None, ["the schema is none"])


def test_a_strict_tool_whose_schema_is_none_is_refused_at_once() -> None:
    with pytest.raises(RequestError) as raised:
        ToolSchemas(ToolRegistry([Tool("reserve", None, '{"type": 5}', strict=True)]), lambda why: None)
    assert str(raised.value).startswith("Invalid schema for function 'reserve': ")
    assert (raised.value.code, raised.value.param) == ("invalid_function_parameters", "tools")


def test_a_schema_that_cannot_be_checked_is_refused_only_where_it_is_strict() -> None:
    of, how = "response_format 'x'", {"code": "invalid_json_schema", "param": "text.format.schema"}
    assert declared_schema(UNTELLABLE, of, strict=False, **how).unusable_pattern == "(?=a)b"
    with pytest.raises(RequestError) as raised:
        declared_schema(UNTELLABLE, of, strict=True, **how)
    assert str(raised.value).startswith("Invalid schema for response_format 'x': ")
    assert (raised.value.code, raised.value.param) == ("invalid_json_schema", "text.format.schema")


def test_a_registry_is_strict_if_one_of_its_tools_is() -> None:
    lenient, strict = Tool("search", None, COUNT), Tool("reserve", None, COUNT, strict=True)
    for tools, is_strict in (([lenient], False), ([lenient, strict], True)):
        assert ToolSchemas(ToolRegistry(tools), lambda why: None).strict is is_strict
