"""Which dialect of the Responses API a request is answered in: OpenAI's, unless another one is asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from ..wire.reader import wrong_value
from .responses import create_response
from .state import DIALECT
from .tokligence import create_dialect_response

HEADER = "x-tagcall-dialect"

DIALECTS: Mapping[str, Callable[[web.Request], Awaitable[web.StreamResponse]]] = {
    "openai": create_response,
    "tokligence": create_dialect_response,
}


async def create_in_dialect(request: web.Request) -> web.StreamResponse:
    """POST /v1/responses."""
    dialect = request.headers.get(HEADER, request.app[DIALECT]).strip().lower()
    if dialect not in DIALECTS:
        raise wrong_value(HEADER, dialect, tuple(DIALECTS))
    return await DIALECTS[dialect](request)
