"""POST /api/chat and /api/generate: a request body to what the turn needs and what the answer depends on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import orjson
from msgspec import Struct
from msgspec.structs import replace

from parser import ToolRegistry
from prompts import ChoiceMode, Entry, Guidance, Text, ToolChoice, Transcript, UserTurn

from ...contracts import OutputFormat, Sampling, TurnRequest
from ...errors import RequestError
from ..json_body import JsonObject, JsonValue
from ..parameters import MODEL_NAME, wishes
from ..reader import Reader, wrong_type
from ..tools import MAX_TOOLS, ToolSet, collect_tools
from .messages import images_of, parse_messages

# What stands behind the name of a model that has one version only.
LATEST = ":latest"

# How much a model is to think -> what the backend is asked for.
_EFFORTS = {"low": "low", "medium": "medium", "high": "high", "max": "high"}
_NO_THOUGHT = "low"

# Options that no backend is given.
_UNHEEDED = ("top_k", "min_p", "typical_p", "repeat_penalty")

# How a host demands one tool where the API has no word for it: at the end of the last message, beside `format: "json"`.
_USE_TOOL = re.compile(r'Use the "([^"]+)" tool\.?\s*$')


class OllamaRequest(Struct, frozen=True):
    """`model` is the name that the client knows. `answers` stand in the conversation already; `chat` is false for a
    prompt alone. `loads`: nothing is asked, the model is to be ready.
    """

    turn: TurnRequest
    tools: ToolSet
    model: str
    answers: int = 0
    thoughts: bool = False
    chat: bool = True
    loads: bool = False


def model_name(request: Reader) -> str:
    """The model that is meant; `name` is the older word for it. Raises `RequestError`."""
    if request.get("model") is None and request.get("name") is not None:
        request = Reader({"model": request.get("name")})
    return request.matching("model", MODEL_NAME).removesuffix(LATEST)


def parse_chat(body: JsonObject) -> OllamaRequest:
    """Raises `RequestError`. Members that are unknown have no effect."""
    request = Reader(body)
    offered = request.objects("tools", max_length=MAX_TOOLS)
    tools = collect_tools(Reader({"type": "function", **tool.raw}, tool.path) for tool in offered)
    conversation, answers = parse_messages(request)
    turn = replace(
        _turn(request, conversation.entries),
        registry=tools.registry,
        repairs=conversation.repairs,
        warnings=tools.warnings,
    )
    if len(tools.registry) and turn.output_format == OutputFormat():
        # A host that offers a tool and wants JSON wants the call: an answer in JSON would end nowhere.
        names = _named_tool(conversation.entries, tools)
        turn = replace(turn, choice=ToolChoice(ChoiceMode.REQUIRED, names), output_format=None)
    return OllamaRequest(
        turn, tools, _name(request), answers, thoughts=_thinks(request), loads=not turn.transcript.entries
    )


def parse_generate(body: JsonObject) -> OllamaRequest:
    """Raises `RequestError`."""
    request = Reader(body)
    if request.string("suffix"):
        raise RequestError(f"{model_name(request)} does not support insert", param="suffix")
    prompt, system = request.string("prompt"), request.string("system")
    parts = (*([Text(prompt)] if prompt else []), *images_of(request))
    turn = _turn(request, (*([Guidance(system)] if system else []), UserTurn(parts)))
    if vain := [word for word in ("template", "raw", "context") if request.get(word)]:
        turn = replace(turn, warnings=(f"Without effect here: {', '.join(vain)}.",))
    return OllamaRequest(turn, ToolSet(), _name(request), thoughts=_thinks(request), chat=False, loads=not parts)


def _name(request: Reader) -> str:
    """As the client wrote it."""
    return request.string("model") or request.required_string("name")


def _turn(request: Reader, entries: tuple[Entry, ...]) -> TurnRequest:
    """What both have in common."""
    options = request.object("options") or Reader({}, "options")
    limit = options.integer("num_predict")
    return TurnRequest(
        model=model_name(request),
        transcript=Transcript(entries),
        registry=ToolRegistry(),
        choice=ToolChoice(),
        effort=_effort(request),
        summary="auto" if _thinks(request) else None,
        output_format=_output_format(request),
        max_output_tokens=limit if limit is not None and limit > 0 else None,  # -1 and -2 are no limit
        stop=tuple(_stops(options)),
        sampling=Sampling(options.number("temperature"), options.number("top_p"), options.integer("seed")),
        wishes=(
            *wishes(request),
            *wishes(options),
            *(name for name in _UNHEEDED if options.get(name) is not None),
        ),
        streamed=request.boolean("stream") is not False,
    )


def _thinks(request: Reader) -> bool:
    """Whether the model's thoughts are to be told."""
    return request.get("think") not in (None, False)


def _effort(request: Reader) -> str | None:
    match request.get("think"):
        case None | True:
            return None
        case False:
            return _NO_THOUGHT
        case str(level):
            return _EFFORTS.get(level)
        case other:
            raise wrong_type("think", "a boolean or a string", other)


def _output_format(request: Reader) -> OutputFormat | None:
    match request.get("format"):
        case None | "":
            return None
        case "json":
            return OutputFormat()
        case dict(schema):
            return OutputFormat(orjson.dumps(schema).decode(), strict=True)
        case other:
            raise wrong_type("format", "'json' or a JSON schema", other)


def _stops(options: Reader) -> Iterator[str]:
    match options.get("stop"):
        case str(stop):
            values: list[JsonValue] = [stop]
        case _:
            values = options.array("stop") or []
    for value in values:
        if not isinstance(value, str):
            raise wrong_type(options.at("stop"), "a string or an array of strings", value)
        if value:
            yield value


def _named_tool(entries: Sequence[Entry], tools: ToolSet) -> tuple[str, ...] | None:
    """The tool that the last message demands by name, None where it names none of those on offer."""
    match entries[-1] if entries else None:
        case UserTurn(parts=(*_, Text(text))) if (found := _USE_TOOL.search(text)) and found[1] in tools.registry:
            return (found[1],)
        case _:
            return None
