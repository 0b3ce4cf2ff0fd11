"""POST /v1/responses: a request body to what the turn needs and what the answer echoes.

docs/reference/parameters.md says for each parameter whether it is honoured, echoed or refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NotRequired, TypedDict

import orjson
from msgspec import Struct, convert

from prompts import Transcript, outline_of

from ...contracts import Compaction, OutputFormat, Sampling, TurnRequest
from ...errors import RequestError
from ..json_body import JsonObject, JsonValue
from ..parameters import (
    INCLUDES,
    MODEL_NAME,
    MOVED_FROM_CHAT,
    RESPONSES,
    check_parameters,
    parse_metadata,
    parse_tier,
    wishes,
)
from ..reader import Reader, wrong_prefix, wrong_value
from ..tools import MAX_FORMAT_NAME, TOOL_NAME, ToolSet, parse_tool_choice, parse_tools
from .input_items import (
    NO_HISTORY,
    History,
    Input,
    ends_with_trigger,
)

# Tokens of a conversation that is summed up where `context_management` names no threshold: OpenAI publishes none.
DEFAULT_THRESHOLD = 200_000


# What a Response repeats of `prompt_cache_options`.
ECHOED_CACHE = ("comparison_response_id", "mode", "ttl")


class Echo(TypedDict):
    """The members of a Response object that repeat the request, defaults filled in."""

    background: bool
    conversation: NotRequired[JsonObject]
    instructions: str | None
    max_output_tokens: int | None
    max_tool_calls: int | None
    metadata: JsonObject
    model: str
    parallel_tool_calls: bool
    previous_response_id: str | None
    prompt_cache_key: str | None
    prompt_cache_options: NotRequired[JsonObject]
    prompt_cache_retention: NotRequired[str]
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


class ResponsesRequest(Struct, frozen=True):
    turn: TurnRequest
    tools: ToolSet
    echo: Echo
    stream: bool
    service_tier: str
    include: frozenset[str]
    input: JsonValue

    @property
    def only_compacts(self) -> bool:
        """Whether a summary is all that is asked for."""
        return self.turn.compaction == Compaction()


class Parameters(Struct, frozen=True):
    """The members of a request that are one value each, as it says them. Their shapes are in `RESPONSES`."""

    background: bool | None = None
    instructions: str | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    parallel_tool_calls: bool | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    store: bool | None = None
    stream: bool | None = None
    temperature: int | float | None = None
    top_logprobs: int | None = None
    top_p: int | float | None = None
    truncation: str | None = None
    user: str | None = None


class Lookups(Struct, frozen=True):
    """What has to be found in the store before a request can be read."""

    previous_response_id: str | None
    conversation: str | None
    referred: tuple[str, ...]
    input: Input


def lookups(body: JsonObject) -> Lookups:
    """What `body` refers to; nothing else of it is looked at."""
    request = Reader(body)
    previous, conversation = request.string("previous_response_id"), _conversation(request)
    if previous is not None and not previous.startswith("resp"):
        raise wrong_prefix("previous_response_id", previous, "resp")
    if previous is not None and conversation is not None:
        raise RequestError(
            "Mutually exclusive parameters: Ensure you are only providing one of: 'previous_response_id' or "
            "'conversation'.",
            code="mutually_exclusive_parameters",
        )
    given = Input(request)
    return Lookups(previous, conversation, given.referred(), given)


def _conversation(request: Reader) -> str | None:
    """The id in `conversation`, which is a string or an object."""
    if request.get("conversation") is None:
        return None
    if isinstance(request.get("conversation"), str):
        holder, key = request, "conversation"
    else:
        holder, key = Reader.of(request.get("conversation"), "conversation"), "id"
    identifier = holder.required_string(key)
    if not identifier.startswith("conv"):
        raise wrong_prefix(holder.at(key), identifier, "conv")
    return identifier


def _refuse_template(request: Reader) -> None:
    if request.get("prompt") is not None:
        raise RequestError(
            "Stored prompt templates are not available here: send 'instructions' and 'input' instead of 'prompt'.",
            code="unsupported_parameter",
            param="prompt",
        )


def _refuse_moderation(request: Reader) -> None:
    if request.get("moderation") is not None:
        raise RequestError(
            "Answers are not moderated here: leave 'moderation' out.", code="unsupported_parameter", param="moderation"
        )


def _refuse_unstored(request: Reader) -> None:
    if request.boolean("background") and request.boolean("store") is False:
        raise RequestError(
            "background can only be used when `store` is true: leave 'store' out.",
            code="invalid_value",
            param="background",
        )


def _refuse_prewarming(request: Reader) -> None:
    cache = request.object("prompt_cache_options")
    if cache is not None and cache.boolean("prewarm") and request.get("generate") is not False:
        raise RequestError(
            "Prewarming does not work over HTTP: leave 'prompt_cache_options.prewarm' out, or send 'response.create' "
            "over a WebSocket.",
            code="unsupported_parameter",
            param="prompt_cache_options.prewarm",
        )


def _refuse_window(request: Reader) -> None:
    """A completion window of hours, where OpenAI has none."""
    options = request.object("background_options")
    window = options.string("completion_window") if options else None
    if window in (None, "soonest"):
        return
    if not request.boolean("background") or request.boolean("stream") or parse_tier(request):
        raise RequestError(
            f"The completion window '{window}' requires `background: true`, standard processing, and `stream: false`.",
            code="invalid_value",
            param="background_options.completion_window",
        )


# Parameters that would change the answer's meaning and cannot be served, or not beside others: in this order.
UNSERVED: Mapping[str, Callable[[Reader], None]] = {
    "prompt": _refuse_template,
    "moderation": _refuse_moderation,
    "background": _refuse_unstored,
    "background_options": _refuse_window,
    "prompt_cache_options": _refuse_prewarming,
}


def _text(request: Reader) -> tuple[JsonObject, str | None, OutputFormat | None]:
    """`text` with its defaults filled in; how long the answer is to be, and of what form."""
    text = request.object("text")
    verbosity = text.string("verbosity") if text else None
    form, demand = _format(text.object("format") if text else None)
    return {"format": form, "verbosity": verbosity or "medium"}, verbosity, demand


def _format(form: Reader | None) -> tuple[JsonObject, OutputFormat | None]:
    if form is None:
        return {"type": "text"}, None
    match kind := form.required_string("type"):
        case "text":
            return {"type": "text"}, None
        case "json_object":
            return {"type": "json_object"}, OutputFormat()
        case "json_schema":
            name = form.matching("name", TOOL_NAME, max_length=MAX_FORMAT_NAME)
            form.require("schema")
            schema = Reader.of(form.get("schema"), form.at("schema")).raw
            description, strict = form.string("description"), form.boolean("strict") is True
            echo: JsonObject = {"type": kind, "name": name, "description": description, "schema": schema}
            return {**echo, "strict": strict}, OutputFormat(orjson.dumps(schema).decode(), name, strict)
        case _:
            raise wrong_value(form.at("type"), kind, ("text", "json_object", "json_schema"))


def _reasoning(request: Reader) -> tuple[JsonObject, str | None, str | None]:
    reasoning = request.object("reasoning")
    if reasoning is None:
        return {"effort": None, "summary": None}, None, None
    effort = reasoning.string("effort")
    summary = reasoning.string("summary") or reasoning.string("generate_summary")
    given = {"context": reasoning.string("context"), "mode": reasoning.string("mode")}
    echo: JsonObject = {"effort": effort, "summary": summary}
    return echo | {key: value for key, value in given.items() if value is not None}, effort, summary


def _compaction(request: Reader) -> Compaction | None:
    """What the last item of `input` asks for, or else `context_management`."""
    thresholds: list[int] = []
    if request.get("context_management") is not None:
        for entry in request.objects("context_management"):
            entry.required_string("type")
            entry.choice("type", ("compaction",))
            thresholds.append(entry.integer("compact_threshold", minimum=1000) or DEFAULT_THRESHOLD)
    if ends_with_trigger(request.get("input")):
        return Compaction()
    return Compaction(min(thresholds)) if thresholds else None


def parse_responses_request(
    body: JsonObject, history: History = NO_HISTORY, wanted: Lookups | None = None
) -> ResponsesRequest:
    """The request in `body`, checked as a whole before any backend hears of it.

    `history` is what was found of what is `wanted`, its `lookups`. Raises `RequestError`. Unknown members are accepted:
    clients send them, OpenAI's newest among them.
    """
    request = Reader(body)
    found = wanted or lookups(body)
    model = request.matching("model", MODEL_NAME)
    check_parameters(request, RESPONSES, MOVED_FROM_CHAT)
    asked = convert(body, Parameters)
    for name in request.among(UNSERVED):
        UNSERVED[name](request)
    tools = parse_tools(request, found.input.brought(history))
    choice = parse_tool_choice(request, tools)
    conversation, warnings = found.input.read(tools, history)
    reasoning, effort, summary = _reasoning(request)
    parallel = asked.parallel_tool_calls is not False
    text, verbosity, output_format = _text(request)
    truncation = asked.truncation or "disabled"
    phased = outline_of(conversation.entries).phased
    wished = [name for name, there in (("phase", phased), ("verbosity", verbosity)) if there]
    echo: Echo = {
        "background": asked.background is True,
        "instructions": asked.instructions,
        "max_output_tokens": asked.max_output_tokens,
        "max_tool_calls": asked.max_tool_calls,
        "metadata": parse_metadata(request),
        "model": model,
        "parallel_tool_calls": parallel,
        "previous_response_id": found.previous_response_id,
        "prompt_cache_key": asked.prompt_cache_key,
        "reasoning": reasoning,
        "safety_identifier": asked.safety_identifier,
        "store": asked.store is not False,
        "temperature": 1.0 if asked.temperature is None else asked.temperature,
        "text": text,
        "tool_choice": request.get("tool_choice") or "auto",
        "tools": list(tools.echo),
        "top_logprobs": asked.top_logprobs or 0,
        "top_p": 1.0 if asked.top_p is None else asked.top_p,
        "truncation": truncation,
        "user": asked.user,
    }
    if found.conversation is not None:
        echo["conversation"] = {"id": found.conversation}
    if (cache := request.object("prompt_cache_options")) is not None:
        given = {key: value for key, value in cache.raw.items() if key in ECHOED_CACHE and value is not None}
        echo["prompt_cache_options"] = {"mode": "implicit", "ttl": "30m", **given}
    if asked.prompt_cache_retention is not None:
        echo["prompt_cache_retention"] = asked.prompt_cache_retention.replace("-", "_")
    return ResponsesRequest(
        turn=TurnRequest(
            model=model,
            transcript=Transcript(conversation.entries, asked.instructions),
            registry=tools.registry,
            choice=choice,
            parallel=parallel,
            effort=effort,
            summary=summary,
            tier=parse_tier(request),
            wishes=(*wishes(request), *wished),
            verbosity=verbosity,
            output_format=output_format,
            max_output_tokens=asked.max_output_tokens,
            sampling=Sampling(asked.temperature, asked.top_p),
            truncate=truncation == "auto",
            repairs=conversation.repairs,
            compaction=_compaction(request),
            warnings=(
                *warnings,
                *tools.warnings,
            ),
            names=frozenset(filter(None, [asked.prompt_cache_key, found.previous_response_id, found.conversation])),
            searchable=tools.searchable,
        ),
        tools=tools,
        echo=echo,
        stream=asked.stream is True,
        service_tier=asked.service_tier or "auto",
        include=frozenset(request.choices("include", INCLUDES)),
        input=request.get("input"),
    )
