"""Reading a request's body, with the checks that come before it is read."""

from __future__ import annotations

from aiohttp import web

from ..errors import RequestError


async def read_json_body(request: web.Request) -> bytes:
    """The body of a JSON request.

    The content type is demanded because a page of another site can send anything but that without
    asking first; a length over the limit is refused before the body arrives.
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
    return await request.read()
