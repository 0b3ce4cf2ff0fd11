"""Calls and results of tools that are not offered here, in the items that OpenAI has for them.

    the client ran it       shell_call, and a shell_call_output with its result
    OpenAI ran it           mcp_call, which holds its result

A conversation that began at OpenAI brings them. Its model has seen them, so ours is shown them like any call and
result. They were not written for tagcall: whatever is missing or has another shape is left out or shown as it is, never
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import orjson
from msgspec import Struct

from prompts import Image, Part, Text

from ...ids import shown_id
from ..content import image_fault
from ..json_body import JsonObject, JsonValue
from ..tools import ToolSet

# Calls whose results are items of their own: the model's name of the tool, and what holds its arguments.
CLIENT_CALLS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "apply_patch_call": ("apply_patch", ("operation",)),
    "computer_call": ("computer", ("action", "actions")),
    "local_shell_call": ("local_shell", ("action",)),
    "shell_call": ("shell", ("action",)),
}
CLIENT_OUTPUTS = frozenset(f"{kind}_output" for kind in CLIENT_CALLS)

# What stands for an image that is not here.
NO_IMAGE = Text("(an image that is not here)")


class HostedCall(Struct, frozen=True):
    """A call with its result, which is empty where the item has none."""

    name: str
    arguments: str
    result: tuple[Part, ...]


def client_call(kind: str, item: JsonObject) -> tuple[str, str]:
    """The name and the arguments of one of `CLIENT_CALLS`."""
    name, members = CLIENT_CALLS[kind]
    value = next((value for member in members if (value := item.get(member)) is not None), None)
    return name, _arguments(value if isinstance(value, dict) else {} if value is None else {members[-1]: value})


def client_result(kind: str, item: JsonObject) -> tuple[Part, ...]:
    """What one of `CLIENT_OUTPUTS` holds."""
    output = item.get("output")
    match kind, output:
        case "shell_call_output", list():
            return _texts(_shell_output(chunk) for chunk in output)
        case "apply_patch_call_output", _:
            return _texts([_text(item.get("status")), _text(output)])
        case "computer_call_output", {"image_url": str(url)}:
            return (_image(url),)
        case "computer_call_output", {"file_id": _}:
            return (NO_IMAGE,)
        case _:
            return _texts([_text(output)])


def _shell_output(chunk: JsonValue) -> str:
    if not isinstance(chunk, dict):
        return _text(chunk)
    match chunk.get("outcome"):
        case {"type": "exit", "exit_code": int(code)} if code:
            ended = f"(exit code {code})"
        case {"type": "timeout"}:
            ended = "(timed out)"
        case _:
            ended = ""
    return "\n".join(filter(None, [_text(chunk.get("stdout")), _text(chunk.get("stderr")), ended]))


def _mcp(item: JsonObject, tools: ToolSet) -> HostedCall:
    error, label = item.get("error"), item.get("server_label")
    name = tools.model_name(_text(item.get("name")) or "mcp", label if isinstance(label, str) and label else None)
    arguments = item.get("arguments")
    said = [_text(item.get("output")), f"Error: {_text(error)}" if error else ""]
    return HostedCall(name, arguments if isinstance(arguments, str) else _arguments(arguments), _texts(said))


def _code_interpreter(item: JsonObject, tools: ToolSet) -> HostedCall:
    outputs = item.get("outputs")
    return HostedCall(
        "code_interpreter",
        _arguments({"code": item.get("code")}),
        tuple(part for output in (outputs if isinstance(outputs, list) else []) for part in _code_output(output)),
    )


def _code_output(output: JsonValue) -> tuple[Part, ...]:
    match output:
        case {"type": "image", "url": str(url)}:
            return (_image(url),)
        case {"type": "image"}:
            return (NO_IMAGE,)
        case {"logs": logs}:
            return _texts([_text(logs)])
        case _:
            return _texts([_text(output)])


def _web_search(item: JsonObject, tools: ToolSet) -> HostedCall:
    action = item.get("action")
    asked = dict(action) if isinstance(action, dict) else {}
    found = [asked.pop("sources", None), item.get("results")]
    lines = [_text(_source(source)) for sources in found if isinstance(sources, list) for source in sources]
    return HostedCall("web_search", _arguments(asked), _texts(lines))


def _source(source: JsonValue) -> JsonValue:
    match source:
        case {"url": str(url), **rest} if rest.keys() <= {"type"}:
            return url
        case _:
            return source


def _file_search(item: JsonObject, tools: ToolSet) -> HostedCall:
    results = item.get("results")
    said = [_found(result) for result in results] if isinstance(results, list) else []
    return HostedCall("file_search", _arguments({"queries": item.get("queries")}), _texts(said))


def _found(result: JsonValue) -> str:
    match result:
        case {"text": str(text), **rest}:
            name = rest.get("filename") or rest.get("file_id")
            return f"File '{name}':\n{text}" if name else text
        case _:
            return _text(result)


# How calls are read whose results stand in them.
HOSTED_CALLS: Mapping[str, Callable[[JsonObject, ToolSet], HostedCall]] = {
    "code_interpreter_call": _code_interpreter,
    "file_search_call": _file_search,
    "mcp_call": _mcp,
    "web_search_call": _web_search,
}


def foreign_id(item: JsonObject, kind: str, nameless: list[str]) -> str:
    """The id of a foreign call or of the call that an output answers; a `local_shell_call_output` has it as its `id`.

    Where it is none that can be shown, it is one that each request finds again: `nameless` are those in front of it.
    """
    given = next((value for name in ("call_id", "id") if isinstance(value := item.get(name), str) and value), "")
    if given:
        return shown_id(given)
    nameless.append(f"{kind}_{len(nameless) + 1}")
    return nameless[-1]


def _arguments(value: JsonValue) -> str:
    """`value` as JSON text, an object without its nulls."""
    if isinstance(value, dict):
        value = {name: member for name, member in value.items() if member is not None}
    return orjson.dumps(value).decode() if value is not None else "{}"


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else "" if value is None else orjson.dumps(value).decode()


def _texts(texts: Iterator[str] | list[str]) -> tuple[Part, ...]:
    joined = "\n".join(filter(None, texts))
    return (Text(joined),) if joined else ()


def _image(url: str) -> Part:
    return Image(url) if image_fault(url) is None else NO_IMAGE
