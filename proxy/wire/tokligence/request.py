"""Requests in the dialect of tokligence-gateway, as requests of the Responses API.

Besides `input` it has `messages` in the shape of Chat Completions, and that API's names for the rest. Parameters that
it does not know (`store`, `previous_response_id`, ...) are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..json_body import JsonObject, JsonValue
from ..reader import Reader, missing

# Members that mean the same in both.
SHARED_MEMBERS = (
    "input", "instructions", "max_output_tokens", "metadata", "model", "parallel_tool_calls", "reasoning", "stream",
    "temperature", "text", "tool_choice", "tools", "top_p", "user",
)  # fmt: skip

# The Responses API's own minimum; smaller ones are sent all the same.
MIN_OUTPUT_TOKENS = 16


def responses_body(body: JsonObject) -> JsonObject:
    """Raises `RequestError` for what has not the dialect's shape; the rest is checked with the request itself."""
    request = Reader(body)
    made: JsonObject = {name: body[name] for name in SHARED_MEMBERS if body.get(name) is not None}
    if body.get("messages") is not None:
        made["input"] = list(_items(request))
    if (outputs := body.get("tool_outputs")) is not None and isinstance(made.get("input", []), list):
        made["input"] = (
            [*_listed(made.get("input")), *submitted(request).values()] if outputs else made.get("input", [])
        )
    for name in ("max_output_tokens", "max_completion_tokens", "max_tokens"):
        if (limit := request.integer(name)) is not None:
            made["max_output_tokens"] = max(MIN_OUTPUT_TOKENS, limit)
            break
    if (effort := request.string("reasoning_effort")) is not None:
        made["reasoning"] = {"effort": effort}
    if (form := request.object("response_format")) is not None:
        nested = form.object("json_schema")
        made["text"] = {"format": {**(nested.raw if nested else {}), "type": form.required_string("type")}}
    match body.get("tool_choice"):
        case bool(wanted):
            made["tool_choice"] = "auto" if wanted else "none"
        case {"type": "function", "function": {"name": str(name)}}:
            made["tool_choice"] = {"type": "function", "name": name}
        case _:
            pass
    return made


def _listed(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _items(request: Reader) -> Iterator[JsonValue]:
    """`messages` as input items."""
    for message in request.objects("messages"):
        match role := message.required_string("role"):
            case "tool":
                call_id = message.required_string("tool_call_id")
                yield {"type": "function_call_output", "call_id": call_id, "output": message.get("content") or ""}
            case _:
                yield {"type": "message", "role": role, "content": message.get("content") or ""}
        for call in message.objects("tool_calls"):
            function = Reader.of(call.get("function"), call.at("function"))
            yield {
                "type": "function_call",
                "call_id": call.required_string("id"),
                "name": function.required_string("name"),
                "arguments": function.string("arguments") or "{}",
            }


def submitted(request: Reader) -> dict[str, JsonObject]:
    """`tool_outputs`, as input items by the id of their call. Raises `RequestError`, also when there is none."""
    outputs: dict[str, JsonObject] = {}
    for output in request.objects("tool_outputs"):
        call_id = output.required_string("tool_call_id")
        if "output" not in output.raw:
            raise missing(output.at("output"))
        outputs[call_id] = {
            "type": "function_call_output",
            "call_id": call_id,
            "output": output.get("output") if isinstance(output.get("output"), list) else output.string("output") or "",
        }
    if not outputs:
        raise missing("tool_outputs")
    return outputs


def call_ids(items: JsonValue, kind: str) -> set[str]:
    """The `call_id`s of the items of a kind."""
    found: set[str] = set()
    for item in _listed(items):
        match item:
            case {"type": str(named), "call_id": str(call_id)} if named == kind:
                found.add(call_id)
            case _:
                pass
    return found
