"""POST /v1/chat/completions."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from aiohttp import web
from msgspec.structs import replace

from ..ids import mint_id
from ..wire.chat.chat_builder import ChatBuilder, chat_error
from ..wire.chat.request import parse_chat_request
from ..wire.json_body import JsonObject
from .admission import owner_of
from .balancer import chain_of
from .bodies import in_its_time
from .delivery import Exchange
from .state import REASONING_CONTENT, STRICT_HISTORY


async def begin_completion(request: web.Request, body: JsonObject, _: ExitStack) -> Exchange:
    """What `body` asks for. Raises `RequestError`."""
    reasoning = request.app[REASONING_CONTENT]
    strict = request.app[STRICT_HISTORY]
    parse = partial(parse_chat_request, body, summary="auto" if reasoning else None, strict_history=strict)
    parsed = await in_its_time(request, parse, body)
    builder = ChatBuilder(parsed, reasoning=reasoning)
    mint = (lambda _: parsed.function_id) if parsed.legacy else partial(mint_id, tag=chain_of(request.headers))
    turn = replace(parsed.turn, streamed=parsed.stream)
    return Exchange(turn, owner_of(request), builder, mint=mint, map_error=chat_error)
