"""Tools of Chat Completions: `tools` and `tool_choice` in their nested shape, and the older `functions`.

What differs from the Responses API is where names stand; the rules are those of `tools`.
"""

from __future__ import annotations

from msgspec import Struct

from prompts import ChoiceMode, ToolChoice

from ...errors import RequestError
from ..json_body import JsonObject, JsonValue
from ..reader import Reader, missing, shown, wrong_type
from ..tools import MAX_TOOLS, ToolSet, collect_tools, parse_tool_choice, parse_tools

# Kinds whose members stand in an object of the kind's name.
NESTED = frozenset({"allowed_tools", "custom", "function"})


class ChatTools(Struct, frozen=True):
    """`legacy`: the client speaks of functions, and is answered with `function_call`."""

    tools: ToolSet
    choice: ToolChoice
    legacy: bool = False


def parse_chat_tools(request: Reader) -> ChatTools:
    """`tools` and `tool_choice` of a request, or the `functions` and `function_call` that they replaced."""
    if not request.get("functions"):
        tools = parse_tools(request)
        return ChatTools(tools, parse_tool_choice(Reader({"tool_choice": _flat_choice(request)}), tools))
    if request.get("tools"):
        raise RequestError(
            "Mutually exclusive parameters: Ensure you are only providing one of: 'tools' or 'functions'.",
            code="mutually_exclusive_parameters",
        )
    functions = request.objects("functions", max_length=MAX_TOOLS)
    tools = collect_tools(Reader({**function.raw, "type": "function"}, function.path) for function in functions)
    return ChatTools(tools, _function_choice(request, tools), legacy=True)


def _flat_choice(request: Reader) -> JsonValue:
    """`tool_choice` in the shape of the Responses API."""
    value = request.get("tool_choice")
    return _flat(Reader(value, "tool_choice")) if isinstance(value, dict) else value


def _flat(choice: Reader) -> JsonObject:
    """A choice with its members beside its type; taken as it is when they stand there already."""
    kind = choice.required_string("type")
    if kind not in NESTED:
        return choice.raw
    inner = choice.object(kind)
    if inner is None:
        if choice.get("tools" if kind == "allowed_tools" else "name") is None:
            raise missing(choice.at(kind))
        inner = choice
    if kind != "allowed_tools":
        return {**inner.raw, "type": kind, "name": inner.required_string("name")}
    inner.require("tools")
    tools: list[JsonValue] = [_flat(tool) for tool in inner.objects("tools", max_length=MAX_TOOLS)]
    return {**inner.raw, "type": kind, "tools": tools}


def _function_choice(request: Reader, tools: ToolSet) -> ToolChoice:
    value = request.get("function_call")
    match value:
        case None | str():
            return ToolChoice(ChoiceMode(request.choice("function_call", ("none", "auto")) or "auto"))
        case dict():
            name = Reader(value, "function_call").required_string("name")
            if name not in tools.registry:
                raise RequestError(
                    f"Invalid value for 'function_call': no function named '{shown(name)}' was specified in the "
                    "'functions' parameter.",
                    param="function_call",
                )
            return ToolChoice(ChoiceMode.REQUIRED, (name,))
        case _:
            raise wrong_type("function_call", "one of 'none', 'auto' or an object", value)
