"""POST /v1/responses."""

from __future__ import annotations

from functools import partial

from aiohttp import web

from ..wire.json_body import parse_json_object
from ..wire.responses import ResponsesBuilder
from ..wire.responses_request import parse_responses_request
from ..wire.sse import encode_typed
from .exchange import Exchange, answer
from .history import find_history, keep
from .requests import read_json_body


async def create_response(request: web.Request) -> web.StreamResponse:
    body = parse_json_object(await read_json_body(request))
    parsed = parse_responses_request(body, await find_history(request, body))
    builder = ResponsesBuilder(parsed)
    kept = partial(keep, request, parsed, builder)
    return await answer(request, Exchange(parsed.turn, parsed.stream, builder, encode_typed, kept))
