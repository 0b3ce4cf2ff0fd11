"""POST /v1/responses: a request body to what the turn needs and what the answer echoes.

docs/reference/parameters.md says for each parameter whether it is honoured, echoed or refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypedDict

from prompts import Transcript

from ..contracts import TurnRequest
from ..errors import RequestError
from .ids import MintId, mint_id
from .input_items import NO_HISTORY, History, parse_input, referred_id
from .json_body import JsonObject, JsonValue
from .reader import Reader, wrong_type, wrong_value
from .tools import ToolSet, parse_tool_choice, parse_tools

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
SUMMARIES = ("auto", "concise", "detailed")
SERVICE_TIERS = ("auto", "default", "flex", "scale", "priority", "fast", "ultrafast")
INCLUDES = (
    "code_interpreter_call.outputs", "computer_call_output.output.image_url", "file_search_call.results",
    "message.input_image.image_url", "message.output_text.logprobs", "reasoning.encrypted_content",
    "web_search_call.action.sources", "web_search_call.results",
)  # fmt: skip
MAX_METADATA = 16

# Wide enough for every name in use; what is no name at all is not worth a turn.
MODEL_NAME = re.compile(r"[^\s\x00-\x1f\x7f](?:.{0,254}[^\s\x00-\x1f\x7f])?")

# Of items that a client sends without an id.
ID_PREFIXES = {"message": "msg", "function_call": "fc", "function_call_output": "fco", "reasoning": "rs"}


class Echo(TypedDict):
    """The members of a Response object that repeat the request, defaults filled in."""

    background: bool
    instructions: str | None
    max_output_tokens: int | None
    max_tool_calls: int | None
    metadata: JsonObject
    model: str
    parallel_tool_calls: bool
    previous_response_id: str | None
    prompt_cache_key: str | None
    reasoning: JsonObject
    safety_identifier: str | None
    store: bool
    temperature: float
    text: JsonObject
    tool_choice: JsonValue
    tools: list[JsonObject]
    top_logprobs: int
    top_p: float
    truncation: str
    user: str | None


@dataclass(frozen=True, slots=True)
class ResponsesRequest:
    turn: TurnRequest
    tools: ToolSet
    echo: Echo
    stream: bool
    service_tier: str
    include: frozenset[str]
    input: JsonValue


@dataclass(frozen=True, slots=True)
class Lookups:
    """What has to be found in the store before a request can be read."""

    previous_response_id: str | None
    referred: tuple[str, ...]


def lookups(body: JsonObject) -> Lookups:
    """What `body` refers to; nothing else of it is looked at."""
    items = body.get("input")
    referred = [referred_id(item) for item in items] if isinstance(items, list) else []
    previous = Reader(body).string("previous_response_id")
    return Lookups(previous, tuple(identifier for identifier in referred if identifier is not None))


def _refuse_unserved(request: Reader) -> None:
    """Parameters that would change the answer's meaning and cannot be served."""
    if request.get("prompt") is not None:
        raise RequestError(
            "Stored prompt templates are not available here: send 'instructions' and 'input' instead of 'prompt'.",
            code="unsupported_parameter",
            param="prompt",
        )
    if request.boolean("background"):
        raise RequestError(
            "Background responses are not available here: leave 'background' out.",
            code="unsupported_parameter",
            param="background",
        )
    conversation = request.get("conversation")
    if request.get("previous_response_id") is not None and conversation is not None:
        raise RequestError(
            "Mutually exclusive parameters: Ensure you are only providing one of: 'previous_response_id' or "
            "'conversation'.",
            code="mutually_exclusive_parameters",
        )
    if conversation is not None:
        raise RequestError(
            "Conversations are not kept here: send the whole conversation in 'input'.",
            code="unsupported_parameter",
            param="conversation",
        )


def _metadata(request: Reader) -> JsonObject:
    metadata = request.object("metadata")
    if metadata is None:
        return {}
    if len(metadata.raw) > MAX_METADATA:
        raise RequestError(
            f"Invalid 'metadata': too many properties. Expected an object with at most {MAX_METADATA} properties, but "
            f"got an object with {len(metadata.raw)} properties instead.",
            code="object_above_max_properties",
            param="metadata",
        )
    for key in metadata.raw:
        if metadata.get(key) is None:
            raise wrong_type(metadata.at(key), "a string", None)
        metadata.string(key, max_length=512)
    return metadata.raw


def _text(request: Reader) -> JsonObject:
    text = request.object("text")
    verbosity = text.choice("verbosity", ("low", "medium", "high")) if text else None
    form = text.object("format") if text else None
    if form is not None:
        kind = form.required_string("type")
        match kind:
            case "text" | "json_object":
                pass
            case "json_schema":
                form.required_string("name")
                form.require("schema")
                form.object("schema")
                form.boolean("strict")
            case _:
                raise wrong_value(form.at("type"), kind, ("text", "json_object", "json_schema"))
    return {"format": form.raw if form else {"type": "text"}, "verbosity": verbosity or "medium"}


def _reasoning(request: Reader) -> tuple[JsonObject, str | None, str | None]:
    reasoning = request.object("reasoning")
    if reasoning is None:
        return {"effort": None, "summary": None}, None, None
    effort = reasoning.choice("effort", EFFORTS)
    summary = reasoning.choice("summary", SUMMARIES) or reasoning.choice("generate_summary", SUMMARIES)
    return {"effort": effort, "summary": summary}, effort, summary


def _include(request: Reader) -> frozenset[str]:
    names: set[str] = set()
    for index, value in enumerate(request.array("include") or []):
        path = f"include[{index}]"
        if not isinstance(value, str):
            raise wrong_type(path, "a string", value)
        if value not in INCLUDES:
            raise wrong_value(path, value, INCLUDES)
        names.add(value)
    return frozenset(names)


def stored_input(value: JsonValue, mint: MintId = mint_id) -> tuple[JsonObject, ...]:
    """`input` of a request as it is stored: items, each with a type and an id."""
    if isinstance(value, str):
        content: JsonValue = [{"type": "input_text", "text": value}]
        value = [{"type": "message", "role": "user", "content": content}]
    items = [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
    return tuple(
        {**item, "type": kind, "id": item.get("id") or mint(ID_PREFIXES.get(kind, "item"))}
        for item in items
        if (kind := str(item.get("type") or "message")) != "item_reference"
    )


def parse_responses_request(body: JsonObject, history: History = NO_HISTORY) -> ResponsesRequest:
    """The request in `body`, checked as a whole before any backend hears of it. `history` is what `lookups` found.

    Raises `RequestError`. Unknown members are accepted: clients send them, OpenAI's newest among them.
    """
    request = Reader(body)
    model = request.matching("model", MODEL_NAME)
    _refuse_unserved(request)
    tools = parse_tools(request)
    choice = parse_tool_choice(request, tools)
    entries = parse_input(request, tools, history)
    instructions = request.string("instructions")
    reasoning, effort, summary = _reasoning(request)
    parallel = request.boolean("parallel_tool_calls")
    temperature = request.number("temperature", minimum=0, maximum=2)
    top_p = request.number("top_p", minimum=0, maximum=1)
    store = request.boolean("store")
    request.object("stream_options")
    echo: Echo = {
        "background": False,
        "instructions": instructions,
        "max_output_tokens": request.integer("max_output_tokens", minimum=16),
        "max_tool_calls": request.integer("max_tool_calls", minimum=1),
        "metadata": _metadata(request),
        "model": model,
        "parallel_tool_calls": parallel is not False,
        "previous_response_id": request.string("previous_response_id"),
        "prompt_cache_key": request.string("prompt_cache_key"),
        "reasoning": reasoning,
        "safety_identifier": request.string("safety_identifier", max_length=64),
        "store": store is not False,
        "temperature": 1.0 if temperature is None else temperature,
        "text": _text(request),
        "tool_choice": request.get("tool_choice") or "auto",
        "tools": list(tools.echo),
        "top_logprobs": request.integer("top_logprobs", minimum=0, maximum=20) or 0,
        "top_p": 1.0 if top_p is None else top_p,
        "truncation": request.choice("truncation", ("auto", "disabled")) or "disabled",
        "user": request.string("user"),
    }
    return ResponsesRequest(
        turn=TurnRequest(
            model=model,
            transcript=Transcript(entries, instructions),
            registry=tools.registry,
            choice=choice,
            parallel=parallel is not False,
            effort=effort,
            summary=summary,
        ),
        tools=tools,
        echo=echo,
        stream=request.boolean("stream") is True,
        service_tier=request.choice("service_tier", SERVICE_TIERS) or "auto",
        include=_include(request),
        input=request.get("input"),
    )
