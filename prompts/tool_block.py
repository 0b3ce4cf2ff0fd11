"""The tool block: what the model is told about the client's tools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from sys import getsizeof

from parser import Tool, ToolRegistry, write_call

from .conversation import one_line
from .escape import escape_json
from .passages import call_form, line, passage
from .profiles import PromptProfile
from .recent import RecentlyMade
from .transcript import ChoiceMode, JsonAnswer, ToolChoice

# Tools that are not the client's: a model that calls one of them gives itself away. They differ in their way to
# write names, and one has a quote and a line break to escape.
_EXAMPLE_CALLS = (
    ("print_label", r'{"text": "\"Fragile\"\nthis side up"}'),
    ("reserveSeats", '{"city": "Oslo", "count": 2}'),
)


# Bytes of offers that were made lately: those of some clients with many tools.
_OFFERS: RecentlyMade[str] = RecentlyMade(2**20)
# And of notations, each with the names of the tools that its example must not have.
_NOTATIONS: RecentlyMade[str] = RecentlyMade(2**18)


def offered_tools(registry: ToolRegistry, choice: ToolChoice) -> ToolRegistry:
    """The tools that this turn may call."""
    if choice.mode is ChoiceMode.NONE:
        return ToolRegistry()
    return registry if choice.names is None else registry.only(choice.names)


def tool_line(tool: Tool) -> str:
    """One tool as one line of compact JSON, its schema in the client's own characters."""
    members = [f'"name":{json.dumps(tool.name, ensure_ascii=False)}']
    if tool.description is not None:
        members.append(f'"description":{json.dumps(tool.description, ensure_ascii=False)}')
    if tool.parameters is not None:
        members.append(f'"parameters":{tool.parameters}')
    return one_line(escape_json(f"{{{','.join(members)}}}"))


def show_tools(tools: Sequence[Tool]) -> str:
    """What a search for tools has found, to stand where it was found: the block at the front stays as it is.

    Not escaped twice: like any result it is escaped where it is shown.
    """
    return "\n".join([line("tools_found"), *map(tool_line, tools)]) if tools else line("no_tools_found")


def front_tools(tools: ToolRegistry, brought: frozenset[str]) -> ToolRegistry:
    """Those of the `tools` on offer that the block shows: all but what is shown where it was found."""
    front = tools.only(tool.name for tool in tools if tool.name not in brought) if brought else tools
    return front if len(front) else tools


def _unlike(registry: ToolRegistry, name: str) -> str:
    while registry.match(name):
        name += "_demo"
    return name


def worked_example(registry: ToolRegistry, key: str | None) -> str:
    """The example, whose tools have names that no tool of `registry` could be meant by."""
    (first, first_arguments), (second, second_arguments) = (
        (_unlike(registry, name), arguments) for name, arguments in _EXAMPLE_CALLS
    )
    return passage(
        "example",
        first=first,
        second=second,
        first_call=write_call(first, first_arguments, key=key),
        second_call=write_call(second, second_arguments, key=key),
    )


# Two functions, since the key is made from what stands in front of it.


def offer(tools: ToolRegistry, *, parallel: bool, named_results: bool = False) -> str:
    """The first part of the block: the tools, and the rules for calling them. `named_results`: as results are shown."""
    # Each request has its tools again, and needs this twice: for the key, and to be shown.
    key = (tuple(tools), parallel, named_results)
    return _OFFERS.get(key, partial(_offer, *key), lambda text: 2 * getsizeof(text))


def _offer(tools: Sequence[Tool], parallel: bool, named_results: bool) -> str:
    return passage(
        "tools",
        tools="\n".join(map(tool_line, tools)),
        results=line("named_results" if named_results else "results"),
        blocks=line("blocks_many" if parallel else "blocks_one"),
    )


def notation(tools: ToolRegistry, profile: PromptProfile, key: str | None) -> str:
    """The second part: how a call is written, which may be with a key."""
    names = tools.names
    return _NOTATIONS.get(
        (names, profile.example, key),
        partial(_notation, tools, profile, key),
        lambda text: getsizeof(text) + sum(map(getsizeof, names)),
    )


def _notation(tools: ToolRegistry, profile: PromptProfile, key: str | None) -> str:
    passages = [passage("form", form=call_form(key))]
    if profile.example:
        passages.append(worked_example(tools, key))
    if key is not None:
        passages.append(passage("key", key=json.dumps(key)))
    return "\n\n".join(passages)


def json_passage(wanted: JsonAnswer, *, beside_calls: bool) -> str:
    """What form the answer must have, which with `beside_calls` may hold calls instead."""
    if wanted.schema is None:
        demand = line("json_object")
    else:
        demand = line("json_schema", schema=one_line(escape_json(wanted.schema)))
    return passage("json_answer", answer=line("json_beside_calls" if beside_calls else "json_alone"), demand=demand)
