"""Bodies and errors as HTTP answers."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
from aiohttp import web

from ..errors import ApiError, RequestError

# What a client is told of a fault of ours: nothing of it. The log has its trace.
FAULT = ApiError("The server had an error while processing your request.")


def json_reply(body: Mapping[str, object], *, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json")


def error_reply(error: ApiError) -> web.Response:
    """The OpenAI error body of `error`, with its status and headers."""
    reply = json_reply({"error": error.error_object()}, status=error.status)
    reply.headers.update(error.headers())
    if error.status in {401, 403, 408, 413, 415, 421}:
        reply.force_close()  # what is left of the body is not worth reading
    return reply


def from_aiohttp(error: web.HTTPException) -> ApiError:
    """aiohttp's own errors, which would leave as plain text."""
    if error.status == 413:
        return RequestError("The request body is too large. The limit is set by --max-body.", status=413)
    if error.status < 500:
        return RequestError(error.reason, status=error.status)
    return ApiError(FAULT.message, status=error.status)
