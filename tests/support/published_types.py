"""What others published of the Responses API, as judges of what leaves: OpenAI's own client and Open Responses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

from jsonschema import Draft202012Validator
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import ConfigDict, TypeAdapter

# Strict: a number in a string's place is a fault and not a conversion.
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent, config=ConfigDict(strict=True))
SCHEMA: Mapping[str, Any] = json.loads((Path(__file__).parent / "open_responses.schema.json").read_text("utf-8"))


@cache
def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]})


def _in_open_responses(response: Mapping[str, Any]) -> bool:
    """Whether Open Responses has words for all of it: it knows functions alone, and echoes no schema of an answer."""
    tools = all(tool["type"] == "function" for tool in response["tools"])
    items = all(item["type"] in ("message", "reasoning", "function_call") for item in response["output"])
    choice = response["tool_choice"] in ("auto", "none", "required") or response["tool_choice"]["type"] in (
        "function", "allowed_tools",
    )  # fmt: skip
    return tools and items and choice and response["text"]["format"]["type"] != "json_schema"


def check_published_events(events: Sequence[Mapping[str, Any]]) -> None:
    for event in events:
        EVENT.validate_python(dict(event))
    if not _in_open_responses(events[-1]["response"]):
        return
    for event in events:
        _validator(SCHEMA["events"][event["type"]]).validate(event)


def check_published_response(response: Mapping[str, Any]) -> None:
    Response.model_validate(response, strict=True)
    if _in_open_responses(response):
        _validator("ResponseResource").validate(response)


def literals(hint: Any) -> set[str]:
    """The strings that a type of the official client allows."""
    return {
        name
        for argument in get_args(hint)
        for name in ({argument} if isinstance(argument, str) else literals(argument))
    }


def type_names(union: Any) -> set[str]:
    """What `type` may be in the dicts of a union of the official client's."""
    return {name for member in get_args(union) for name in literals(get_type_hints(member)["type"])}
