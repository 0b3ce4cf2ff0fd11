"""`input` of the Responses API to a transcript, and the pairing rules of calls and their outputs.

What OpenAI refuses is refused in its words (docs/reference/errors.md); what it is known to accept is
accepted, also without ids, with nulls and with members we do not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prompts import AssistantText, Entry, Guidance, Image, Part, PastCall, Text, ToolResult, UserTurn

from ..contracts import WireObject
from ..errors import RequestError
from .json_body import JsonObject, JsonValue
from .reader import Reader, missing, shown, wrong_type, wrong_value
from .tools import ToolSet

CALL_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
MAX_ITEMS = 10_000

ROLES = ("assistant", "developer", "system", "user")

# Kinds that are part of a real client's history but say nothing to a text model.
SILENT_ITEMS = frozenset({
    "apply_patch_call", "apply_patch_call_output", "code_interpreter_call", "compaction", "compaction_trigger",
    "computer_call", "computer_call_output", "custom_tool_call", "custom_tool_call_output", "file_search_call",
    "image_generation_call", "local_shell_call", "local_shell_call_output", "mcp_approval_request",
    "mcp_approval_response", "mcp_call", "mcp_list_tools", "reasoning", "shell_call", "shell_call_output",
    "tool_search_call", "tool_search_output", "web_search_call",
})  # fmt: skip

ITEM_KINDS = ("message", "function_call", "function_call_output", "item_reference", *sorted(SILENT_ITEMS))


def _image(part: Reader) -> Image:
    if part.get("image_url") is None:
        if part.get("file_id") is not None:
            raise RequestError(
                "Images by 'file_id' are not supported: send the image as a data URL in 'image_url'.",
                code="unsupported_value",
                param=part.at("file_id"),
            )
        raise missing(part.at("image_url"))
    nested = part.get("image_url")
    if isinstance(nested, dict):  # Chat's shape
        part = Reader(nested, part.at("image_url"))
        url, param = part.required_string("url"), part.at("url")
    else:
        url, param = part.required_string("image_url"), part.at("image_url")
    if not url.startswith("data:image/"):
        raise RequestError(
            "Remote images are not fetched: send the image as a data URL ('data:image/png;base64,...').",
            code="invalid_image_url",
            param=param,
        )
    return Image(url)


def _part(part: Reader) -> Part:
    kind = part.required_string("type")
    match kind:
        case "input_text" | "output_text" | "text":
            part.require("text")
            return Text(part.string("text") or "")
        case "refusal":
            part.require("refusal")
            return Text(part.string("refusal") or "")
        case "input_image" | "image_url":
            return _image(part)
        case "input_file" | "input_audio" | "file":
            raise RequestError(
                f"Content of type '{kind}' is not supported by this backend: send text or images.",
                code="unsupported_value",
                param=part.at("type"),
            )
        case _:
            raise wrong_value(
                part.at("type"), kind, ("input_text", "input_image", "input_file", "output_text", "refusal")
            )


def _parts(item: Reader, key: str) -> tuple[Part, ...]:
    """A string or an array of content parts; empty content is no part."""
    value = item.get(key)
    match value:
        case None:
            return ()
        case str():
            return (Text(value),) if value else ()
        case list():
            return tuple(_part(part) for part in item.objects(key))
        case _:
            raise wrong_type(item.at(key), "a string or an array of content parts", value)


def _joined_text(parts: Iterable[Part]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, Text))


@dataclass(frozen=True, slots=True)
class History:
    """What was stored before: the items that stand before the request's own, and those it refers to by id."""

    items: tuple[WireObject, ...] = ()
    referred: Mapping[str, WireObject] = field(default_factory=dict)


NO_HISTORY = History()


class _Items:
    """Reads items one after the other and holds the pairing rules."""

    def __init__(self, tools: ToolSet, history: History) -> None:
        self.entries: list[Entry] = []
        self._tools = tools
        self._referred = history.referred
        self._calls: dict[str, JsonObject] = {}
        self._outputs: dict[str, JsonValue] = {}
        self._ids: set[str] = set()

    def add(self, item: Reader) -> None:
        if (stored := self._referred.get(referred_id(item.raw) or "")) is not None:
            item = Reader(dict(stored), item.path)
        self._check_id(item)
        kind = item.string("type") or ("message" if item.get("role") is not None else None)
        match kind:
            case None:
                raise missing(item.at("type"))
            case "message":
                self._message(item)
            case "function_call":
                self._call(item)
            case "function_call_output":
                self._output(item)
            case "item_reference":
                identifier = shown(item.required_string("id"))
                raise RequestError(f"Item with id '{identifier}' not found.", status=404, param="input")
            case _ if kind in SILENT_ITEMS:
                pass
            case _:
                raise wrong_value(item.at("type"), kind, ITEM_KINDS)

    def _check_id(self, item: Reader) -> None:
        identifier = item.string("id")
        if not identifier:
            return
        if identifier in self._ids:
            raise RequestError(
                f"Duplicate item found with id {identifier[:64]}. Remove duplicate items from your input and try "
                "again.",
                param="input",
            )
        self._ids.add(identifier)

    def _message(self, item: Reader) -> None:
        role = item.required_string("role")
        if "content" not in item.raw:
            raise missing(item.at("content"))
        parts = _parts(item, "content")
        match role:
            case "user":
                self.entries.append(UserTurn(parts))
            case "assistant":
                # An empty message before a call says nothing, and real clients send it.
                if text := _joined_text(parts):
                    self.entries.append(AssistantText(text))
            case "system" | "developer":
                if text := _joined_text(parts):
                    self.entries.append(Guidance(text))
            case _:
                raise wrong_value(item.at("role"), role, ROLES)

    def _call(self, item: Reader) -> None:
        call_id = item.matching("call_id", CALL_ID)
        name = item.required_string("name")
        item.require("arguments")
        arguments = item.string("arguments") or "{}"
        if call_id in self._calls:
            raise RequestError(f"Duplicate function call found with call_id {call_id}.", param="input")
        self._calls[call_id] = item.raw
        self.entries.append(PastCall(call_id, self._tools.model_name(name, item.string("namespace")), arguments))

    def _output(self, item: Reader) -> None:
        call_id = item.matching("call_id", CALL_ID)
        if "output" not in item.raw or item.get("output") is None:
            raise missing(item.at("output"))
        parts = _parts(item, "output")
        if call_id not in self._calls:
            raise RequestError(f"No tool call found for function call output with call_id {call_id}.", param="input")
        output = item.get("output")
        if call_id in self._outputs:
            if self._outputs[call_id] == output:
                return  # said twice in the same words: nothing to choose between
            raise RequestError(f"Duplicate function call output found with call_id {call_id}.", param="input")
        self._outputs[call_id] = output
        self.entries.append(ToolResult(call_id, parts))

    def finish(self) -> tuple[Entry, ...]:
        for call_id in self._calls:
            if call_id not in self._outputs:
                raise RequestError(f"No tool output found for function call {call_id}.", param="input")
        return tuple(self.entries)


def referred_id(item: JsonValue) -> str | None:
    """The id of an `item_reference`, whose `type` clients may leave out."""
    match item:
        case {"type": "item_reference", "id": str(identifier)}:
            return identifier
        case {"id": str(identifier), **rest} if not any(value is not None for value in rest.values()):
            return identifier
        case _:
            return None


def parse_input(request: Reader, tools: ToolSet, history: History) -> tuple[Entry, ...]:
    """What stands in `history` and then in `input`, a string or an array of items, as transcript entries."""
    value = request.require("input")
    items = _Items(tools, history)
    for index, stored in enumerate(history.items):
        items.add(Reader(dict(stored), f"previous_response.items[{index}]"))
    match value:
        case str():
            items.entries.append(UserTurn((Text(value),)))
        case list():
            for item in request.objects("input", max_length=MAX_ITEMS):
                items.add(item)
        case _:
            raise wrong_type("input", "a string or an array of input items", value)
    return items.finish()
