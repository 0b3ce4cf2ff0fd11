"""`tools` and `tool_choice` of the Responses API.

The model is offered functions, and custom tools as functions of one string. A namespace's members are offered under
one flat name each and come back with `name` and `namespace`. A `tool_search` that the client executes is offered as
well; the input of the next requests brings the tools that it finds. Hosted tools are accepted and echoed, because real
clients always list them. They are not offered, because nothing here could run them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Literal

import orjson
from msgspec import Struct, field

from parser import Tool, ToolRegistry
from prompts import ChoiceMode, RecentlyMade, ToolChoice

from ..errors import RequestError
from .custom_tools import grammar_of, has_grammar, input_schema, parse_format, pattern_of
from .json_body import JsonObject, JsonValue
from .reader import Reader, missing, shown, wrong_type, wrong_value

# The form of the names of functions, namespaces and formats, and their most characters. A tool's name may be as long in
# Chat Completions as in the Responses API and in MCP.
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]+")
MAX_TOOL_NAME, MAX_FORMAT_NAME = 128, 64

# Functions of one request, those in namespaces included.
MAX_TOOLS = 128

# Bytes of JSON that the parameters of all tools may take together.
MAX_SCHEMA_BYTES = 256 * 1024

# Kinds of tools that the model may call.
CALLABLE_TOOLS = ("function", "custom")

# Tools that run at OpenAI. They are echoed and not offered.
HOSTED_TOOLS = frozenset({
    "apply_patch", "code_interpreter", "computer", "computer_use", "computer_use_preview", "file_search",
    "image_generation", "local_shell", "mcp", "programmatic_tool_calling", "shell", "tool_search", "web_search",
    "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11",
})  # fmt: skip

# The tool with which the model can look for more tools.
SEARCH = "tool_search"

# The kinds of items as which calls come back.
CallKind = Literal["function", "custom", "tool_search"]

# Members of a function or a custom tool that the echo repeats.
ECHOED_MEMBERS = ("allowed_callers", "async", "defer_loading", "output_schema")


class DeclaredName(Struct, frozen=True):
    """The client's name for a tool that the model knows by a flat name."""

    name: str
    namespace: str | None = None
    kind: CallKind = "function"


class ToolSet(Struct, frozen=True, eq=False):
    """The tools of a request: those on offer, their echo, and the client's names by the model's."""

    registry: ToolRegistry = field(default_factory=ToolRegistry)
    echo: tuple[JsonObject, ...] = ()
    declared: Mapping[str, DeclaredName] = field(default_factory=dict)
    hosted: frozenset[str] = frozenset()
    unfound: Mapping[str, JsonObject] = field(default_factory=dict)
    """The model's names of deferred tools -> the echo that a hosted search brings: the tool, or its whole namespace."""
    late: frozenset[str] = frozenset()
    """The model's names of tools that the conversation brought."""
    unheld: tuple[str, ...] = ()
    """Names of custom tools with a grammar that cannot be checked here."""

    def brought(self, names: Iterable[str]) -> tuple[Tool, ...]:
        """Those of the named tools that the conversation brought. `names` are the model's."""
        late = (self.registry.match(name) for name in names if name in self.late)
        return tuple(tool for tool in late if tool is not None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the client."""
        hosted, unheld = ", ".join(sorted(self.hosted)), ", ".join(self.unheld)
        told = (
            f"Not offered to the model, because nothing here can run it: {hosted}." if hosted else "",
            f"The model was shown the grammar of these tools, but nothing checks it: {unheld}." if unheld else "",
        )
        return tuple(filter(None, told))

    @property
    def searchable(self) -> bool:
        """Whether a search of the client's finds more of them."""
        return bool(_search_of(self))

    def client_name(self, name: str) -> DeclaredName:
        return self.declared.get(name) or DeclaredName(name)

    def model_name(self, name: str, namespace: str | None) -> str:
        """The flat name of a tool that the client names. This request need not declare it."""
        if namespace is None:
            return name
        for flat, declared in self.declared.items():
            if (declared.name, declared.namespace) == (name, namespace):
                return flat
        # A tool that a search found has its own name as its namespace, even if this request does not declare it.
        return name if namespace == name else _flat_name(namespace, name)


NO_TOOLS = ToolSet()

# Bytes of memory for the tools of recent requests, and how many of them a byte of their JSON counts for.
_RECENT: RecentlyMade[ToolSet] = RecentlyMade(2 * 2**20)
_OBJECTS = 10


def _flat_name(namespace: str, name: str) -> str:
    return f"{namespace.rstrip('_')}__{name}"


def found_names(tools: Iterable[Reader]) -> list[str]:
    """The model's names of tools that a search has found."""
    names: list[str] = []
    for tool in tools:
        if tool.string("type") == "namespace":
            namespace = tool.required_string("name")
            names += [_flat_name(namespace, member.required_string("name")) for member in tool.objects("tools")]
        else:
            body = tool.object(tool.required_string("type")) or tool
            names.append(body.required_string("name"))
    return names


def _is_search(tool: Reader) -> bool:
    """Whether the client executes `tool`, a search. A hosted one finds nothing: deferred tools are offered at once."""
    return _is_any_search(tool) and tool.choice("execution", ("server", "client")) == "client"


def _is_any_search(tool: Reader) -> bool:
    return tool.string("type") == SEARCH


class _Collector:
    """Gathers tools in order and counts the bytes of their schemas.

    `searched`: the request has a search. `deferring`: a deferred tool is not offered before a search has found it.
    """

    def __init__(self, *, searched: bool, deferring: bool) -> None:
        self._searched = searched
        self._deferring = deferring
        self.tools: list[Tool] = []
        self.echo: list[JsonObject] = []
        self.declared: dict[str, DeclaredName] = {}
        self.hosted: set[str] = set()
        self.unheld: list[str] = []
        self.unfound: dict[str, JsonObject] = {}
        self.late: set[str] = set()
        self._schema_bytes = 0

    def add(self, tool: Reader, *, late: bool = False) -> None:
        """`late`: an input item brings the tool. It is not echoed, and ignored if it is known already."""
        kind = tool.required_string("type")
        if kind in CALLABLE_TOOLS:
            echo = self._add_callable(tool, kind, None, late=late)
        elif kind == "namespace":
            namespace = tool.matching("name", TOOL_NAME, max_length=MAX_TOOL_NAME)
            members: list[JsonValue] = [
                self._add_callable(member, member.required_string("type"), namespace, late=late)
                for member in self._namespace_members(tool)
            ]
            echo = {**tool.raw, "description": tool.string("description") or "", "tools": members}
            self.unfound |= {flat: echo for flat in self.unfound if self.declared[flat].namespace == namespace}
        elif _is_search(tool):
            self._offer(SEARCH, DeclaredName(SEARCH, kind="tool_search"), tool, tool.get("parameters"), late=late)
            echo = tool.raw
        elif kind in HOSTED_TOOLS:
            self.hosted.add(kind)
            echo = tool.raw
        else:
            raise wrong_value(tool.at("type"), kind, (*CALLABLE_TOOLS, "namespace", *sorted(HOSTED_TOOLS)))
        if not late:
            self.echo.append(echo)

    @staticmethod
    def _namespace_members(tool: Reader) -> list[Reader]:
        if tool.get("tools") is None:
            raise missing(tool.at("tools"))
        members = list(tool.objects("tools", max_length=MAX_TOOLS))
        return [member for member in members if member.required_string("type") in CALLABLE_TOOLS]

    def _add_callable(self, tool: Reader, kind: str, namespace: str | None, *, late: bool) -> JsonObject:
        """Adds a function or a custom tool; returns its echo."""
        # Chat's nested shape is accepted as well, because clients send it to either endpoint.
        body = tool.object(kind) or tool
        name = body.matching("name", TOOL_NAME, max_length=MAX_TOOL_NAME)
        description = body.string("description")
        form = parse_format(body) if kind == "custom" else None
        parameters = body.get("parameters") if form is None else input_schema(form)
        strict = body.boolean("strict")
        grammar = None if form is None else grammar_of(form)
        held = strict is True if form is None else grammar is not None or pattern_of(form) is not None
        if form is not None and has_grammar(form) and not held:
            self.unheld.append(name)
        body.boolean("async")
        deferred = body.boolean("defer_loading") is True
        flat = name if namespace is None else _flat_name(namespace, name)
        if late or not (deferred and self._deferring):
            # As at OpenAI, a function that a search finds outside any namespace has its own name as its namespace, by
            # which SDKs look it up.
            lone = deferred and self._searched and form is None and namespace is None
            known = DeclaredName(name, name if lone else namespace, "function" if form is None else "custom")
            self._offer(flat, known, body, parameters, strict=held, grammar=grammar, late=late)
        echo: JsonObject = {"type": kind, "name": name, "description": description}
        if form is None:
            echo |= {"parameters": body.get("parameters"), "strict": strict is True}
        else:
            echo["format"] = form
        echo |= {key: body.get(key) for key in ECHOED_MEMBERS if body.get(key) is not None}
        if late:
            self.unfound.pop(flat, None)
        elif deferred and self._searched and not self._deferring:
            self.unfound[flat] = echo
        return echo

    def _offer(
        self,
        flat: str,
        known: DeclaredName,
        body: Reader,
        parameters: JsonValue,
        *,
        late: bool,
        strict: bool = False,
        grammar: str | None = None,
    ) -> None:
        if flat in self.declared:
            if late:
                return
            raise RequestError(
                f"Invalid '{body.at('name')}': tool names must be unique, but '{known.name}' is declared twice.",
                code="invalid_value",
                param=body.at("name"),
            )
        if len(self.tools) == MAX_TOOLS:
            raise RequestError(
                f"Invalid 'tools': more than {MAX_TOOLS} functions, those in namespaces included.",
                code="array_above_max_length",
                param="tools",
            )
        self.declared[flat] = known
        if late:
            self.late.add(flat)
        schema = self._schema(body, parameters)
        self.tools.append(Tool(flat, body.string("description"), schema, strict=strict, grammar=grammar))

    def _schema(self, body: Reader, schema: JsonValue) -> str | None:
        if schema is None:
            return None
        if not isinstance(schema, dict):
            raise wrong_type(body.at("parameters"), "an object", schema)
        text = orjson.dumps(schema)
        self._schema_bytes += len(text)
        if self._schema_bytes > MAX_SCHEMA_BYTES:
            raise RequestError(
                f"Invalid 'tools': the parameters of all tools together take more than {MAX_SCHEMA_BYTES} bytes of "
                "JSON.",
                code="invalid_value",
                param="tools",
            )
        return text.decode()


def parse_tools(request: Reader, late: Iterable[Reader] = ()) -> ToolSet:
    """`tools` of a request, checked, in the client's order. `late` are those that its input brings besides."""
    # Their faults are reported before those of the late tools.
    alone = _collected(request, ())
    brought = [*late]
    return _collected(request, brought) if brought else alone


def _collected(request: Reader, late: Sequence[Reader]) -> ToolSet:
    """The set of these tools, kept from an earlier request if that had the same."""
    tools = request.array("tools", max_length=MAX_TOOLS) or []
    if not tools and not late:
        return NO_TOOLS
    written = orjson.dumps([tools, [tool.raw for tool in late]])
    digest = blake2b(written, digest_size=16).digest()
    make = partial(collect_tools, request.objects("tools"), late)
    return _RECENT.get(digest, make, lambda made: _OBJECTS * len(written))


def collect_tools(tools: Iterable[Reader], late: Iterable[Reader] = ()) -> ToolSet:
    tools = list(tools)
    collector = _Collector(searched=any(map(_is_any_search, tools)), deferring=any(map(_is_search, tools)))
    for tool in tools:
        collector.add(tool)
    for tool in late:
        collector.add(tool, late=True)
    return ToolSet(
        ToolRegistry(collector.tools), tuple(collector.echo), collector.declared, frozenset(collector.hosted),
        collector.unfound, frozenset(collector.late), tuple(collector.unheld),
    )  # fmt: skip


def _not_in_tools(what: str) -> RequestError:
    return RequestError(f"Tool choice '{what}' not found in 'tools' parameter.", param="tool_choice")


def _named(choice: Reader, tools: ToolSet) -> str | None:
    """The model's name of the function or custom tool that `choice` names, or None when it is not declared."""
    name = tools.model_name(choice.required_string("name"), choice.string("namespace"))
    declared = tools.declared.get(name)
    return name if declared and declared.kind == choice.string("type") else None


def _search_of(tools: ToolSet) -> tuple[str, ...]:
    """The model's name of the search that the client executes, if there is one."""
    return tuple(flat for flat, declared in tools.declared.items() if declared.kind == SEARCH)


def _allowed_names(entry: Reader, tools: ToolSet) -> tuple[str, ...]:
    """The tools that one entry of `allowed_tools` allows: a namespace allows its members, a hosted tool none."""
    kind = entry.required_string("type")
    if kind in CALLABLE_TOOLS:
        name = _named(entry, tools)
        if name is None:
            raise _not_in_tools(shown(entry.required_string("name")))
        return (name,)
    if kind == "namespace":
        namespace = entry.required_string("name")
        names = tuple(flat for flat, declared in tools.declared.items() if declared.namespace == namespace)
        if not names:
            raise _not_in_tools(shown(namespace))
        return names
    if kind == SEARCH and _search_of(tools):
        return _search_of(tools)
    if kind not in HOSTED_TOOLS:
        raise wrong_value(entry.at("type"), kind, (*CALLABLE_TOOLS, "namespace", *sorted(HOSTED_TOOLS)))
    if kind not in tools.hosted:
        raise _not_in_tools(kind)
    return ()


def _allowed(choice: Reader, tools: ToolSet) -> ToolChoice:
    mode = ChoiceMode(choice.choice("mode", ("auto", "required")) or "auto")
    choice.require("tools")
    entries = list(choice.objects("tools", max_length=MAX_TOOLS))
    names = tuple(name for entry in entries for name in _allowed_names(entry, tools))
    if mode is ChoiceMode.REQUIRED and not names:
        if not entries:
            raise RequestError("Tool choice 'allowed_tools' requires a call but allows no tool.", param="tool_choice")
        return ToolChoice(ChoiceMode.NONE)  # only hosted tools are allowed: no call can be required
    return ToolChoice(mode, tuple(dict.fromkeys(names)))


def parse_tool_choice(request: Reader, tools: ToolSet) -> ToolChoice:
    """`tool_choice` of a request. A choice of a hosted tool cannot be honoured and counts as `auto`."""
    value = request.get("tool_choice")
    match value:
        case None:
            return ToolChoice()
        case str():
            mode = ChoiceMode(request.choice("tool_choice", [mode.value for mode in ChoiceMode]))
            if mode is ChoiceMode.REQUIRED and not (tools.echo or len(tools.registry)):
                raise RequestError(
                    "Tool choice 'required' must be specified with 'tools' parameter.", param="tool_choice"
                )
            # If there are only hosted tools, no call can be required.
            return ToolChoice(mode if len(tools.registry) else ChoiceMode.NONE)
        case dict():
            reader = Reader.of(value, "tool_choice")
            kind = reader.required_string("type")
            match kind:
                case "function" | "custom":
                    if (name := _named(reader, tools)) is None:
                        raise _not_in_tools(kind)
                    return ToolChoice(ChoiceMode.REQUIRED, (name,))
                case "allowed_tools":
                    return _allowed(reader, tools)
                case "tool_search" if names := _search_of(tools):
                    return ToolChoice(ChoiceMode.REQUIRED, names)
                case _ if kind in HOSTED_TOOLS:
                    if kind not in tools.hosted:
                        raise _not_in_tools(kind)
                    return ToolChoice()
                case _:
                    raise wrong_value(
                        reader.at("type"), kind, (*CALLABLE_TOOLS, "allowed_tools", *sorted(HOSTED_TOOLS))
                    )
        case _:
            raise wrong_type("tool_choice", "one of 'none', 'auto', 'required' or an object", value)
