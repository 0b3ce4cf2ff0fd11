"""`tools` and `tool_choice` of Messages; the rules are those of `tools`.

custom           offered: its `input_schema` is a function's parameters
  of the client's  offered with a schema of ours: bash, the text editor, memory (the request has none)
  of the server's  not offered, and told: nothing here could run them
  computer, ...    refused: a set of tools whose schemas nobody sends
  any other        offered if it has a schema, else not, and told
  deferred         offered once a search of the client's has found it, and shown where it was found
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from prompts import ChoiceMode, ToolChoice

from ...errors import RequestError
from ..json_body import JsonObject, JsonValue
from ..reader import Reader, shown, wrong_value
from ..tools import ToolSet, collect_tools

# What clients declare so that the server has heard of deferred tools. No model is meant to call it.
PLACEHOLDER = "DeferredToolPlaceholder"

# A type with its date behind it.
_DATED = re.compile(r"(.+?)_\d{8}")
_SERVERS = re.compile(r"(?:web_search|web_fetch|code_execution|tool_search_tool\w*|advisor|mcp_toolset)(?:_\d{8})?")
# The beginning of the types of Anthropic's own searches for tools.
HOSTED_SEARCH = "tool_search_tool"

# What can be told in a header.
_NAMEABLE = re.compile(r"[\w.-]{1,64}", re.ASCII)

_TOOLSETS = re.compile(r"(?:computer|browser)(?:_\w+)?")

CHOICES = ("auto", "any", "tool", "none")


_PATH: JsonObject = {"type": "string", "description": "The path of the file or folder."}
_EDITS: JsonObject = {
    "command": {
        "type": "string", "enum": ["view", "create", "str_replace", "insert"], "description": "What to do.",
    },
    "path": _PATH,
    "file_text": {"type": "string", "description": "For create: the text of the file."},
    "old_str": {"type": "string", "description": "For str_replace: the text to replace, which stands there once."},
    "new_str": {"type": "string", "description": "For str_replace: the text in its place."},
    "insert_line": {"type": "integer", "description": "For insert: the line to insert behind; 0 is the beginning."},
    "insert_text": {"type": "string", "description": "For insert: the text."},
    "view_range": {
        "type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2,
        "description": "For view: the first and the last line, from 1; -1 is the end of the file.",
    },
}  # fmt: skip

# The tools that the client runs and whose schemas it does not send: what they do, and their input.
_CLIENTS: Mapping[str, tuple[str, JsonObject]] = {
    "bash": (
        "Runs a command in a bash session that stays open.",
        {
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command; not wanted where the session is restarted."},
                "restart": {"type": "boolean", "description": "True starts a new session."},
            },
        },
    ),
    "text_editor": (
        "Shows, creates and edits text files.",
        {"type": "object", "properties": _EDITS, "required": ["command", "path"]},
    ),
    "memory": (
        "Keeps notes in files under /memories, from one conversation to the next.",
        {
            "type": "object",
            "properties": {
                **_EDITS,
                "command": {
                    "type": "string",
                    "enum": ["view", "create", "str_replace", "insert", "delete", "rename"],
                    "description": "What to do.",
                },
                "old_path": {"type": "string", "description": "For rename: the path as it is."},
                "new_path": {"type": "string", "description": "For rename: the path as it shall be."},
            },
            "required": ["command"],
        },
    ),
}


class MessagesTools(Struct, frozen=True):
    """The tools of a request, and what it demands of the answer. `searchable`: a search of its client finds more."""

    tools: ToolSet
    choice: ToolChoice
    parallel: bool
    searchable: bool


def parse_messages_tools(
    request: Reader, found: Collection[str] = (), added: Iterable[JsonObject] = ()
) -> MessagesTools:
    """`tools` and `tool_choice` of a request. Raises `RequestError`.

    Deferred tools are on offer once the conversation has `found` them, and so are those whose definitions it has
    `added`. Where Anthropic would search, nobody does: deferred ones are on offer at once.
    """
    hosted: set[str] = set()
    declared = list(request.objects("tools"))
    offered = list(_offered(declared, hosted))
    searched = not any(kind.startswith(HOSTED_SEARCH) for kind in hosted)
    front = (tool for tool in offered if not (searched and _is_deferred(tool)))
    deferred = [tool for tool in offered if searched and _is_deferred(tool)]
    late = [tool for tool in deferred if tool.string("name") in found]
    searchable = len(late) < len(deferred) or any(tool.get("name") == PLACEHOLDER for tool in declared)
    late += _offered((Reader(tool, "tool") for tool in added), hosted)
    tools = replace(collect_tools(front, late), hosted=frozenset(hosted))
    choice = request.object("tool_choice")
    parallel = choice is None or choice.boolean("disable_parallel_tool_use") is not True
    return MessagesTools(tools, _choice(choice, tools), parallel, searchable)


def _offered(tools: Iterable[Reader], hosted: set[str]) -> Iterator[Reader]:
    """The tools that the model may be offered, as functions. The types of the others are put into `hosted`."""
    for tool in tools:
        kind = tool.string("type") or "custom"
        if _TOOLSETS.fullmatch(kind):
            raise RequestError(
                f"Tools of type '{shown(kind)}' are not available here: offer your tools with an 'input_schema' each.",
                param=tool.at("type"),
            )
        if tool.get("name") == PLACEHOLDER:
            continue
        dated = _DATED.fullmatch(kind)
        if kind == "custom" or (tool.get("input_schema") is not None and not _SERVERS.fullmatch(kind)):
            yield _function(tool, tool.string("description"), _with_examples(tool))
        elif dated is not None and dated[1] in _CLIENTS:
            yield _function(tool, *_CLIENTS[dated[1]])
        else:
            hosted.add(kind if _NAMEABLE.fullmatch(kind) else "a type that is none")


def _with_examples(tool: Reader) -> JsonValue:
    """Its `input_schema`, in which JSON Schema has a place for examples."""
    schema, examples = tool.object("input_schema"), tool.get("input_examples")
    if schema is not None and isinstance(examples, list) and examples:
        return {**schema.raw, "examples": examples}
    return None if schema is None else schema.raw


def _is_deferred(tool: Reader) -> bool:
    return tool.boolean("defer_loading") is True


def _function(tool: Reader, description: str | None, schema: JsonValue) -> Reader:
    members: JsonObject = {name: tool.get(name) for name in ("name", "strict", "defer_loading")}
    return Reader({**members, "type": "function", "description": description, "parameters": schema}, tool.path)


def _choice(choice: Reader | None, tools: ToolSet) -> ToolChoice:
    if choice is None:
        return ToolChoice()
    match kind := choice.required_string("type"):
        case "auto":
            return ToolChoice()
        case "none":
            return ToolChoice(ChoiceMode.NONE)
        case "any" if len(tools.registry):
            return ToolChoice(ChoiceMode.REQUIRED)
        case "any":
            raise RequestError("A 'tool_choice' of type 'any' wants 'tools' that can be called.", param="tool_choice")
        case "tool":
            name = choice.required_string("name")
            if name not in tools.registry:
                raise RequestError(
                    f"Tool '{shown(name)}' of 'tool_choice' is not among the 'tools' that can be called here.",
                    param="tool_choice.name",
                )
            return ToolChoice(ChoiceMode.REQUIRED, (name,))
        case _:
            raise wrong_value(choice.at("type"), kind, CHOICES)
