"""POST /v1/chat/completions: a request body to what the turn needs and what the answer depends on.

docs/reference/chat-parameters.md says for each parameter whether it is honoured, ignored or refused.
"""

from __future__ import annotations

from collections.abc import Iterator

import orjson
from msgspec import Struct

from prompts import Transcript

from ...contracts import OutputFormat, Sampling, TurnRequest
from ...errors import RequestError
from ..json_body import JsonObject
from ..parameters import CHAT, MODEL_NAME, MOVED_FROM_RESPONSES, check_parameters, parse_tier, wishes
from ..reader import Reader, wrong_type, wrong_value
from ..tools import MAX_FORMAT_NAME, TOOL_NAME, ToolSet
from .messages import Messages, parse_messages
from .tools import parse_chat_tools

# Strings in `stop`.
MAX_STOPS = 4

# Types of `response_format`.
FORMATS = ("text", "json_object", "json_schema")


class ChatRequest(Struct, frozen=True):
    """`model` is the name the client knows. `legacy`: calls are answered as `function_call`, without their id.

    `function_id` is the one that such a call will have when it comes back.
    """

    turn: TurnRequest
    tools: ToolSet
    model: str
    stream: bool
    include_usage: bool = False
    legacy: bool = False
    function_id: str = ""


def parse_chat_request(body: JsonObject, *, summary: str | None = None, strict_history: bool = False) -> ChatRequest:
    """The request in `body`, checked as a whole before any backend hears of it.

    `summary` is what to ask of the model's reasoning; the API has no parameter for it. `strict_history` refuses results
    that do not pair with their calls. Raises `RequestError`. Unknown members are accepted: clients send them, OpenAI's
    newest among them.
    """
    request = Reader(body)
    model = request.matching("model", MODEL_NAME)
    check_parameters(request, CHAT, MOVED_FROM_RESPONSES)
    _refuse_unserved(request)
    chat = parse_chat_tools(request)
    conversation, messages = parse_messages(request, strict=strict_history)
    stream = request.boolean("stream") is True
    options = request.object("stream_options")
    if options is not None and not stream:
        raise RequestError(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.", param="stream_options"
        )
    if request.get("top_logprobs") is not None and not request.boolean("logprobs"):
        raise RequestError(
            "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.", param="top_logprobs"
        )
    return ChatRequest(
        turn=TurnRequest(
            model=model,
            transcript=Transcript(conversation.entries),
            registry=chat.tools.registry,
            choice=chat.choice,
            # The older form has room for one call.
            parallel=not chat.legacy and request.boolean("parallel_tool_calls") is not False,
            effort=request.string("reasoning_effort"),
            summary=summary,
            tier=parse_tier(request),
            wishes=(*wishes(request), *_vain(request, messages)),
            warnings=(*messages.warnings, *chat.tools.warnings),
            verbosity=request.string("verbosity"),
            output_format=_output_format(request),
            max_output_tokens=_max_tokens(request),
            stop=_stop(request),
            repairs=conversation.repairs,
            sampling=_sampling(request),
            names=frozenset(filter(None, [request.string("prompt_cache_key")])),
        ),
        tools=chat.tools,
        model=model,
        stream=stream,
        include_usage=options is not None and options.boolean("include_usage") is True,
        legacy=chat.legacy,
        function_id=messages.function_id,
    )


def _refuse_unserved(request: Reader) -> None:
    """What would change the answer's meaning and cannot be served."""
    if request.integer("n") not in {None, 1}:
        raise RequestError(
            "Only one choice is made here: leave 'n' out, and ask again for another answer.",
            code="unsupported_value",
            param="n",
        )
    if request.get("moderation") is not None:
        raise RequestError(
            "Answers are not moderated here: leave 'moderation' out.", code="unsupported_parameter", param="moderation"
        )
    modalities = request.array("modalities") or []
    if request.object("audio") is not None or "audio" in modalities:
        raise RequestError(
            "Audio is not available here: leave 'audio' and the modality 'audio' out.",
            code="unsupported_value",
            param="modalities" if "audio" in modalities else "audio",
        )


def _vain(request: Reader, messages: Messages) -> Iterator[str]:
    """What only this API can ask for and no backend heeds."""
    if messages.tells_participants_apart():
        yield "name"
    if request.boolean("store"):
        yield "store"


def _sampling(request: Reader) -> Sampling:
    return Sampling(request.number("temperature"), request.number("top_p"), request.integer("seed"))


def _max_tokens(request: Reader) -> int | None:
    """The smaller of the two names' values: some clients send both."""
    limits = [request.integer(name) for name in ("max_completion_tokens", "max_tokens")]
    return min((limit for limit in limits if limit is not None), default=None)


def _stop(request: Reader) -> tuple[str, ...]:
    """`""` and `[]` are none: real clients send them for an empty field of their settings."""
    match request.get("stop"):
        case None:
            return ()
        case str(stop):
            stops = [stop]
        case list(values):
            stops = []
            for index, value in enumerate(request.array("stop", max_length=MAX_STOPS) or values):
                if not isinstance(value, str):
                    raise wrong_type(f"stop[{index}]", "a string", value)
                stops.append(value)
        case other:
            raise wrong_type("stop", "a string or an array of strings", other)
    return tuple(stop for stop in stops if stop)


def _output_format(request: Reader) -> OutputFormat | None:
    form = request.object("response_format")
    kind = form.required_string("type") if form is not None else "text"
    match kind:
        case "text":
            return None
        case "json_object":
            return OutputFormat()
        case "json_schema" if form is not None:
            form.require("json_schema")
            nested = Reader.of(form.get("json_schema"), form.at("json_schema"))
            name = nested.matching("name", TOOL_NAME, max_length=MAX_FORMAT_NAME)
            strict = nested.boolean("strict") is True
            schema = nested.object("schema")
            return OutputFormat(orjson.dumps(schema.raw).decode() if schema is not None else None, name, strict)
        case _:
            raise wrong_value("response_format.type", kind, FORMATS)
