"""`tools` and `tool_choice` of the Responses API.

Function tools are offered to the model. A namespace's functions are offered under one flat name each
and come back with `name` and `namespace`. Hosted tools are accepted, echoed and not offered: real
clients list them always, and nothing here could run them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from parser import Tool, ToolRegistry
from prompts import ChoiceMode, ToolChoice

from ..errors import RequestError
from .json_body import JsonObject, JsonValue
from .reader import Reader, missing, wrong_type, wrong_value

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
MAX_TOOLS = 128
MAX_SCHEMA_BYTES = 256 * 1024

HOSTED_TOOLS = frozenset({
    "apply_patch", "code_interpreter", "computer", "computer_use_preview", "custom", "file_search", "image_generation",
    "local_shell", "mcp", "programmatic_tool_calling", "shell", "tool_search", "web_search", "web_search_2025_08_26",
    "web_search_preview", "web_search_preview_2025_03_11",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class DeclaredName:
    """How the client knows a tool that the model knows by a flat name."""

    name: str
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class ToolSet:
    """The tools of a request: what the model is offered, what the client is told, and the way back."""

    registry: ToolRegistry = field(default_factory=ToolRegistry)
    echo: tuple[JsonObject, ...] = ()
    declared: Mapping[str, DeclaredName] = field(default_factory=dict)
    hosted: frozenset[str] = frozenset()

    def client_name(self, name: str) -> DeclaredName:
        return self.declared.get(name) or DeclaredName(name)

    def model_name(self, name: str, namespace: str | None) -> str:
        """The flat name of a tool that the client names, whether it is declared in this request or not."""
        if namespace is None:
            return name
        for flat, declared in self.declared.items():
            if declared == DeclaredName(name, namespace):
                return flat
        return _flat_name(namespace, name)


def _flat_name(namespace: str, name: str) -> str:
    return f"{namespace.rstrip('_')}__{name}"


class _Collector:
    """Gathers tools in order and keeps count of what they weigh."""

    def __init__(self) -> None:
        self.tools: list[Tool] = []
        self.echo: list[JsonObject] = []
        self.declared: dict[str, DeclaredName] = {}
        self.hosted: set[str] = set()
        self._schema_bytes = 0

    def add(self, tool: Reader) -> None:
        kind = tool.required_string("type")
        if kind == "function":
            self.echo.append(self._add_function(tool, None))
        elif kind == "namespace":
            namespace = tool.matching("name", TOOL_NAME)
            members = [self._add_function(member, namespace) for member in self._namespace_members(tool)]
            self.echo.append({**tool.raw, "tools": list(members)})
        elif kind in HOSTED_TOOLS:
            self.hosted.add(kind)
            self.echo.append(tool.raw)
        else:
            raise wrong_value(tool.at("type"), kind, ("function", "namespace", *sorted(HOSTED_TOOLS)))

    @staticmethod
    def _namespace_members(tool: Reader) -> list[Reader]:
        if tool.get("tools") is None:
            raise missing(tool.at("tools"))
        members = list(tool.objects("tools", max_length=MAX_TOOLS))
        return [member for member in members if member.required_string("type") == "function"]

    def _add_function(self, tool: Reader, namespace: str | None) -> JsonObject:
        if len(self.tools) == MAX_TOOLS:
            raise RequestError(
                f"Invalid 'tools': more than {MAX_TOOLS} functions, those in namespaces included.",
                code="array_above_max_length",
                param="tools",
            )
        # Chat's nested shape is taken as well: clients are seen to send it to either endpoint.
        body = tool.object("function") or tool
        name = body.matching("name", TOOL_NAME)
        description = body.string("description")
        parameters = self._schema(body)
        strict = body.boolean("strict")
        flat = name if namespace is None else _flat_name(namespace, name)
        if flat in self.declared:
            raise RequestError(
                f"Invalid '{body.at('name')}': tool names must be unique, but '{name}' is declared twice.",
                code="invalid_value",
                param=body.at("name"),
            )
        self.declared[flat] = DeclaredName(name, namespace)
        self.tools.append(Tool(flat, description, parameters, strict=strict is True))
        schema: JsonValue = body.get("parameters")
        return {
            "type": "function",
            "name": name,
            "description": description,
            "parameters": schema,
            "strict": True if strict is None else strict,
        }

    def _schema(self, body: Reader) -> str | None:
        schema = body.get("parameters")
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


def parse_tools(request: Reader) -> ToolSet:
    """`tools` of a request, checked; the order is the client's."""
    collector = _Collector()
    for tool in request.objects("tools", max_length=MAX_TOOLS):
        collector.add(tool)
    return ToolSet(
        ToolRegistry(collector.tools), tuple(collector.echo), collector.declared, frozenset(collector.hosted)
    )


def _not_in_tools(kind: str) -> RequestError:
    return RequestError(f"Tool choice '{kind}' not found in 'tools' parameter.", param="tool_choice")


def _named(reader: Reader, tools: ToolSet) -> str:
    name = tools.model_name(reader.required_string("name"), reader.string("namespace"))
    if name not in tools.registry:
        raise _not_in_tools(reader.required_string("type"))
    return name


def _allowed(reader: Reader, tools: ToolSet) -> ToolChoice:
    mode = reader.choice("mode", ("auto", "required")) or "auto"
    reader.require("tools")
    entries = reader.objects("tools", max_length=MAX_TOOLS)
    names = tuple(_named(entry, tools) for entry in entries if entry.required_string("type") == "function")
    if mode == "required" and not names:
        raise RequestError("Tool choice 'allowed_tools' requires a call but allows no function.", param="tool_choice")
    return ToolChoice(ChoiceMode(mode), names)


def parse_tool_choice(request: Reader, tools: ToolSet) -> ToolChoice:
    """`tool_choice` of a request. A choice of a hosted tool cannot be honoured and counts as `auto`."""
    value = request.get("tool_choice")
    match value:
        case None:
            return ToolChoice()
        case str():
            mode = ChoiceMode(request.choice("tool_choice", [mode.value for mode in ChoiceMode]))
            if mode is ChoiceMode.REQUIRED and not tools.echo:
                raise RequestError(
                    "Tool choice 'required' must be specified with 'tools' parameter.", param="tool_choice"
                )
            # With hosted tools alone there is nothing that could be required of the model.
            return ToolChoice(mode if len(tools.registry) else ChoiceMode.NONE)
        case dict():
            reader = Reader.of(value, "tool_choice")
            kind = reader.required_string("type")
            match kind:
                case "function":
                    return ToolChoice(ChoiceMode.REQUIRED, (_named(reader, tools),))
                case "allowed_tools":
                    return _allowed(reader, tools)
                case _ if kind in HOSTED_TOOLS:
                    if kind not in tools.hosted:
                        raise _not_in_tools(kind)
                    return ToolChoice()
                case _:
                    raise wrong_value(reader.at("type"), kind, ("function", "allowed_tools", *sorted(HOSTED_TOOLS)))
        case _:
            raise wrong_type("tool_choice", "one of 'none', 'auto', 'required' or an object", value)
