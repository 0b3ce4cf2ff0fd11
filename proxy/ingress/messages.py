"""POST /v1/messages, its count_tokens, and the model list for Anthropic's clients."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from aiohttp import web
from msgspec.structs import replace

from prompts import AssistantText, Guidance, Image, Part, PastCall, Text, ToolResult, UserTurn

from ..contracts import TurnRequest
from ..errors import RequestError
from ..tokens import CHARACTERS_PER_TOKEN, IMAGE_TOKENS
from ..wire.anthropic.anthropic_builder import MessagesBuilder, mint_call
from ..wire.anthropic.errors import anthropic_error
from ..wire.anthropic.models import anthropic_model, anthropic_models
from ..wire.anthropic.request import parse_messages_request
from ..wire.json_body import JsonObject
from ..wire.models import find_model
from .admission import owner_of
from .balancer import chain_of
from .bodies import beside_if, in_its_time, json_reply, read_json_object
from .delivery import Exchange
from .input_tokens import estimated_tokens
from .models import MODELS
from .state import JUDGES_COMMANDS, REQUEST_LOG, TURN_OPTIONS

# In which Claude Code names its session; so does its body.
SESSION_HEADER = "X-Claude-Code-Session-Id"


NO_JUDGE = (
    "Claude Code asks here whether a command is dangerous, and this server does not judge that (--auto-mode): approve "
    "its commands yourself, or start tagcall with --auto-mode serve."
)

# It would be answered from memory, and Claude Code would give its model that for what was found.
NO_SEARCH = (
    "Nothing here can search the web: the WebSearch of Claude Code is Anthropic's own. Fetch a page whose address you "
    "know, or use the search of an MCP server."
)


async def begin_message(request: web.Request, body: JsonObject, _: ExitStack) -> Exchange:
    """What `body` asks for. Raises `RequestError`."""
    parse = partial(parse_messages_request, body, session=request.headers.get(SESSION_HEADER))
    parsed = await in_its_time(request, parse, body)
    if parsed.judges_commands and not request.app[JUDGES_COMMANDS]:
        raise RequestError(NO_JUDGE, status=403, code="auto_mode_refused")
    if parsed.searches_web:
        raise RequestError(NO_SEARCH, param="tools")
    builder = MessagesBuilder(parsed, estimate=_rough(parsed.turn), request_id=request[REQUEST_LOG].id)
    mint = partial(mint_call, tag=chain_of(request.headers))
    turn = replace(parsed.turn, model=await request.app[MODELS].stand_in(parsed.turn.model))
    return Exchange(turn, owner_of(request), builder, mint=mint, map_error=anthropic_error)


def _rough(turn: TurnRequest) -> int:
    """About how many tokens the request has, at once: its stream begins before anything is counted."""
    characters = len(turn.transcript.instructions or "")
    characters += sum(len(tool.description or "") + len(tool.parameters or "") for tool in turn.registry)
    parts: list[Part] = []
    for entry in turn.transcript.entries:
        match entry:
            case Guidance(text) | AssistantText(text):
                characters += len(text)
            case PastCall():
                characters += len(entry.arguments)
            case UserTurn(said) | ToolResult(parts=said):
                parts += said
    characters += sum(len(part.text) for part in parts if isinstance(part, Text))
    return characters // CHARACTERS_PER_TOKEN + IMAGE_TOKENS * sum(isinstance(part, Image) for part in parts)


async def count_tokens(request: web.Request) -> web.StreamResponse:
    """An estimate from what the model would be shown: there is no tokenizer here."""
    body = await read_json_object(request)
    profile = request.app[TURN_OPTIONS].profile

    def counted() -> int:
        return estimated_tokens(parse_messages_request(body, counted=True).turn, profile)

    tokens = await beside_if(True, request.app, owner_of(request), counted)
    return json_reply({"input_tokens": tokens})


async def list_anthropic_models(request: web.Request) -> web.StreamResponse:
    return json_reply(anthropic_models(await request.app[MODELS].current()))


async def get_anthropic_model(request: web.Request, name: str) -> web.StreamResponse:
    return json_reply(anthropic_model(find_model(await request.app[MODELS].current(), name)))
