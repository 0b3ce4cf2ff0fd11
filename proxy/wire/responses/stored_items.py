"""Items as they are kept: each with a type and an id, and its content in parts.

Clients may send short forms: a string, an "easy" message, an item without an id. They get back the one long form that
OpenAI lists and that SDKs have types for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from hashlib import blake2b
from itertools import repeat

import orjson

from ...contracts import WireObject
from ...ids import MintId, mint_id
from ..json_body import JsonObject, JsonValue
from .foreign_items import CLIENT_CALLS, CLIENT_OUTPUTS
from .input_items import OUTPUTS, is_trigger, referred_id

# Of items that come without an id.
ID_PREFIXES = {
    "compaction": "cmp", "custom_tool_call": "ctc", "custom_tool_call_output": "ctco", "function_call": "fc",
    "function_call_output": "fco", "message": "msg", "reasoning": "rs", "tool_search_call": "tsc",
    "tool_search_output": "tso",
}  # fmt: skip

# Kinds that are listed with a status. That of an `apply_patch_call_output` is what it says.
KINDS_WITH_STATUS = frozenset({
    "custom_tool_call", "custom_tool_call_output", "function_call", "function_call_output", "message",
    "tool_search_call", "tool_search_output", *CLIENT_CALLS, *CLIENT_OUTPUTS,
}) - {"apply_patch_call_output"}  # fmt: skip

# Members that they always have, as clients may leave them out.
MEMBERS: Mapping[str, Mapping[str, JsonValue]] = {
    "computer_call": {"pending_safety_checks": []}, "reasoning": {"summary": []}, "shell_call": {"environment": None},
    "shell_call_output": {"max_output_length": None}, "tool_search_call": {"execution": "client"},
    "tool_search_output": {"execution": "client"},
}  # fmt: skip


def stored_input(
    value: JsonValue, referred: Mapping[str, WireObject] | None = None, mint: MintId | None = mint_id
) -> tuple[JsonObject, ...]:
    """`input` of a request that was accepted, as it is kept. `referred` holds what its references stand for.

    Without `mint`, an item gets its id by its content and that of those before it: a history that is sent again has the
    same ids.
    """
    if isinstance(value, str):
        value = [{"type": "message", "role": "user", "content": value}]
    found = referred or {}
    given = value if isinstance(value, list) else []
    items = [item for item in given if isinstance(item, dict) and not is_trigger(item)]
    resolved = [dict(found.get(referred_id(item) or "", item)) for item in items]
    return tuple(map(_stored, resolved, _by_content(resolved) if mint is None else repeat(mint)))


def _by_content(items: Iterable[JsonObject]) -> Iterator[MintId]:
    """What makes the id of each item."""
    digest = b""
    for item in items:
        digest = blake2b(digest + orjson.dumps(item), digest_size=16).digest()
        yield partial("{1}_{0}".format, digest.hex())


def _stored(item: JsonObject, mint: MintId) -> JsonObject:
    kind = str(item.get("type") or "message")
    identifier = item.get("id") or mint(ID_PREFIXES.get(kind, "item"))
    stored: JsonObject = {**MEMBERS.get(kind, {}), **item, "id": identifier, "type": kind}
    if kind in KINDS_WITH_STATUS:
        stored["status"] = item.get("status") or "completed"
    if kind == "message":
        stored["content"] = _parts(item.get("content"), assistant=item.get("role") == "assistant")
    elif kind in OUTPUTS and isinstance(item.get("output"), list):
        stored["output"] = _parts(item["output"], assistant=False)
    return stored


def _parts(content: JsonValue, *, assistant: bool) -> JsonValue:
    parts: list[JsonValue] = [{"type": "text", "text": content}] if isinstance(content, str) else []
    if isinstance(content, list):
        parts = content
    return [_part(part, assistant=assistant) for part in parts]


def _part(part: JsonValue, *, assistant: bool) -> JsonValue:
    """In the words of this API, also where it came in Chat's."""
    if not isinstance(part, dict):
        return part
    match part.get("type"):
        case "text" | "input_text" | "output_text" if assistant:
            return {"annotations": [], "logprobs": [], **part, "type": "output_text"}
        case "text" | "input_text" | "output_text":
            return {**part, "type": "input_text"}
        case "input_image" | "image_url":
            nested = part.get("image_url")
            if isinstance(nested, dict):
                part = {"image_url": nested.get("url"), "detail": nested.get("detail")}
            return {**part, "type": "input_image", "detail": part.get("detail") or "auto"}
        case "input_file" | "file":
            nested = part.get("file")
            return {**(nested if isinstance(nested, dict) else part), "type": "input_file"}
        case _:
            return part
