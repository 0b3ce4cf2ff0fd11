"""Reading a request's body, with the checks that come before it is read."""

from __future__ import annotations

import asyncio

from aiohttp import web

from ..errors import RequestError

# Seconds from the last byte of a request's head to the last of its body.
BODY_DEADLINE = 20.0


async def read_json_body(request: web.Request) -> bytes:
    """The body of a JSON request.

    The content type is demanded because a page of another site can send anything but that without
    asking first; a length over the limit is refused before the body arrives, and the body may not
    take longer than `BODY_DEADLINE`.
    """
    if request.content_type != "application/json":
        raise RequestError("Send the request with 'Content-Type: application/json'.", status=415)
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise RequestError("Compressed request bodies are not accepted.", status=415)
    limit = request.client_max_size
    if (request.content_length or 0) > limit:
        raise RequestError(
            f"The request body is larger than {limit} bytes. The limit is set by --max-body.", status=413
        )
    try:
        async with asyncio.timeout(BODY_DEADLINE):
            return await request.read()
    except TimeoutError:
        raise RequestError("The body of the request took too long.", status=408) from None
