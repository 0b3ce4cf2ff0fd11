"""POST /v1/chat/completions."""

from __future__ import annotations

from functools import partial

from aiohttp import web

from ..ids import mint_id
from ..wire.chat.builder import ChatBuilder, chat_error
from ..wire.chat.request import parse_chat_request
from ..wire.json_body import JsonObject
from ..wire.sse import encode_chunks
from .admission import owner_of
from .bodies import in_its_time, read_json_object
from .delivery import Exchange, answer
from .state import REASONING_CONTENT, STRICT_HISTORY


async def create_completion(request: web.Request) -> web.StreamResponse:
    exchange, stream = await begin_completion(request, await read_json_object(request))
    return await answer(request, exchange, encode_chunks, stream=stream)


async def begin_completion(request: web.Request, body: JsonObject) -> tuple[Exchange, bool]:
    """What `body` asks for, and whether as a stream. Raises `RequestError`."""
    reasoning = request.app[REASONING_CONTENT]
    strict = request.app[STRICT_HISTORY]
    parse = partial(parse_chat_request, body, summary="auto" if reasoning else None, strict_history=strict)
    parsed = await in_its_time(request.app, owner_of(request), parse, body)
    builder = ChatBuilder(parsed, reasoning=reasoning)
    mint = (lambda _: parsed.function_id) if parsed.legacy else mint_id
    return Exchange(parsed.turn, owner_of(request), builder, mint=mint, map_error=chat_error), parsed.stream
