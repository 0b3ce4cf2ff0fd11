"""Bodies: JSON that comes in, with the checks before it is read; JSON and errors that go out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

import orjson
from aiohttp import web

from ..errors import ApiError, RequestError
from ..wire.json_body import JsonObject, has_more, openings, parse_json_object
from ..wire.pdf import MAGIC_BASE64, holds_pdf
from ..wire.wire_format import OPENAI, WireFormat
from .admission import owner_of
from .inspect import INSPECTION
from .request_log import RequestLog
from .state import REQUEST_LOG, SHORT, TURN_OPTIONS

Parsed = TypeVar("Parsed")

# Seconds from the last byte of a request's head to the last of its body.
BODY_DEADLINE = 20.0

# Headers of browsers. The first is in every POST of a page, which cannot leave it out (Fetch, section 3.2).
OF_PAGES = ("Origin", "Sec-Fetch-Site")

# What is read where it comes, in some milliseconds: bytes of JSON, and values in it.
BYTES_AT_ONCE = 262_144
VALUES_AT_ONCE = 4_096

# What a body has that has a file to be read in it.
PDF = MAGIC_BASE64.encode()


async def read_json_body(request: web.Request, *, typed: bool = True) -> bytes:
    """The body of a JSON request.

    The content type is demanded because a page of another site can send anything but that without
    asking first; not `typed`, it is demanded of pages alone, which always say that they are one. A length over the
    limit is refused before the body arrives, and the body may not take longer than `BODY_DEADLINE`.
    """
    if request.content_type != "application/json" and (typed or any(name in request.headers for name in OF_PAGES)):
        raise RequestError("Send the request with 'Content-Type: application/json'.", status=415)
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise RequestError("Compressed request bodies are not accepted.", status=415)
    limit = request.client_max_size
    if (request.content_length or 0) > limit:
        raise RequestError(
            f"The request body is larger than {limit} bytes. The limit is set by --max-body.", status=413
        )
    body = await request.read() if request.content.is_eof() else await _rest_of_body(request)
    if request.app[INSPECTION].log.keeps_words:
        request[REQUEST_LOG].asked(body)
    return body


async def _rest_of_body(request: web.Request) -> bytes:
    try:
        async with asyncio.timeout(BODY_DEADLINE):
            return await request.read()
    except TimeoutError:
        raise RequestError("The body of the request took too long.", status=408) from None


def note_message(app: web.Application, entry: RequestLog, message: Mapping[str, object]) -> None:
    """What came as a message of a socket, for who looks on."""
    if app[INSPECTION].log.keeps_words:
        entry.asked(orjson.dumps(message))


async def read_json_object(request: web.Request, *, typed: bool = True) -> JsonObject:
    """What a JSON request asks; `typed` as above. Raises `RequestError`."""
    return await parse_in_its_time(request, await read_json_body(request, typed=typed))


async def parse_in_its_time(request: web.Request, body: bytes) -> JsonObject:
    """The JSON object in `body`, which came with `request`, at once or in its course. Raises `RequestError`."""
    few = openings(body) < VALUES_AT_ONCE
    if few and len(body) <= BYTES_AT_ONCE:
        read = parse_json_object(body)
    else:
        read = await request.app[TURN_OPTIONS].offload(owner_of(request), partial(parse_json_object, body))
    if few and PDF not in body:
        request[SHORT] = read
    return read


async def in_its_time(request: web.Request, parse: Callable[[], Parsed], body: JsonObject, *more: object) -> Parsed:
    """What `parse` makes of `body` and `more`, for who sent the `request`."""
    long = reads_long(request, body) or is_long(*more)
    return await beside_if(long, request.app, owner_of(request), parse)


def reads_long(request: web.Request, body: JsonObject) -> bool:
    """Whether it takes long to read `body`. Mostly that was known by its bytes."""
    return request.get(SHORT) is not body and is_long(body)


def is_long(*read: object) -> bool:
    """Whether it takes long to read these JSON values."""
    return any(read) and (has_more(read, VALUES_AT_ONCE) or holds_pdf(read))


async def beside_if(long: bool, app: web.Application, owner: str, work: Callable[[], Parsed]) -> Parsed:
    """What `work` returns; where it takes `long`, it is done beside the requests of others than `owner`."""
    return await app[TURN_OPTIONS].offload(owner, work) if long else work()


def fault() -> ApiError:
    """What a client is told of a fault of ours: nothing of it. The log has its trace."""
    return ApiError("The server had an error while processing your request.")


def json_reply(body: Mapping[str, object], *, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json")


def error_reply(error: ApiError, form: WireFormat = OPENAI, request_id: str = "") -> web.Response:
    """The body of `error` in the form of an API, with its status and headers."""
    reply = json_reply(form.error_body(error, request_id), status=error.status)
    reply.headers.update(error.headers())
    if error.status == 401:
        reply.headers["WWW-Authenticate"] = "Bearer"  # RFC 9110 section 15.5.2 demands one
    if error.status in {401, 403, 408, 413, 415, 421}:
        reply.force_close()  # what is left of the body is not worth reading
    return reply


def from_aiohttp(error: web.HTTPException) -> ApiError:
    """aiohttp's own errors, which would leave as plain text."""
    if error.status == 413:
        return RequestError("The request body is too large. The limit is set by --max-body.", status=413)
    if error.status < 500:
        return RequestError(error.reason, status=error.status)
    return ApiError(fault().message, status=error.status)
