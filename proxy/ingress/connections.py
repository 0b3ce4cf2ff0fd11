"""Connections: how many there may be, and how long the head of a request may take.

aiohttp limits neither: a head that never ends keeps its connection for ever. So each of its connections stands behind
one of ours, which passes everything on and holds a clock.

    waiting ---first byte---> head ---all of it---> request ---answered---> waiting
       | closed when idle       | 408 after HEAD_DEADLINE
       | (aiohttp)
    refused ---first byte, or HEAD_DEADLINE---> 503
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import orjson
import structlog
from aiohttp import web
from structlog.typing import FilteringBoundLogger

from ..errors import ApiError, RequestError
from .bodies import error_reply, fault

# Connections that are open at a time.
MAX_CONNECTIONS = 256

# Seconds from the first byte of a request's head to its last.
HEAD_DEADLINE = 10.0

# What is answered where there is no request yet, or none that could be read.
TOO_SLOW = RequestError("The head of the request took too long.", status=408)
TOO_MANY = ApiError("Too many connections are open. Try again later.", status=503, retry_after=1)
UNREADABLE = RequestError("The request could not be read: it is not HTTP as RFC 9112 has it.")

log: FilteringBoundLogger = structlog.get_logger(__name__)


class HttpProtocol(web.RequestHandler):
    """aiohttp's protocol but for its last word: that repeats the bytes which could not be read, keys included."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if status < 500:
            log.debug("unreadable_request", status=status, why=type(exc).__name__)
        else:
            log.error("connection_fault", exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has begun and cannot become another one")
        reply = error_reply(UNREADABLE if status < 500 else fault())
        reply.headers["Server"] = "tagcall"
        reply.force_close()
        return reply


def _plain_answer(error: ApiError) -> bytes:
    """An error as the bytes of an HTTP answer, where there is no request yet that could be answered."""
    body = orjson.dumps({"error": error.error_object()})
    headers = {"Content-Type": "application/json", "Content-Length": len(body), "Connection": "close"}
    lines = [f"{name}: {value}" for name, value in {**headers, **error.headers()}.items()]
    return "\r\n".join([f"HTTP/1.1 {error.status} Error", *lines, "", ""]).encode() + body


class Connection(asyncio.Protocol):
    """One connection. `inner` is aiohttp's protocol; without one there is no room for it."""

    def __init__(
        self, inner: asyncio.Protocol | None, gone: Callable[[Connection], None], head_deadline: float
    ) -> None:
        self._inner = inner
        self._gone = gone
        self._head_deadline = head_deadline
        self._transport: asyncio.Transport | None = None
        self._clock: asyncio.TimerHandle | None = None
        self._serving = False

    def head_was_read(self) -> None:
        """A request is whole but for its body, which has a deadline of its own."""
        self._serving = True
        self._stop_clock()

    def was_answered(self) -> None:
        self._serving = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 -- of a stream server
        self._transport = transport
        if self._inner is not None:
            self._inner.connection_made(transport)
        else:
            self._start_clock(TOO_MANY)

    def data_received(self, data: bytes) -> None:
        if self._inner is None:
            # Not before: an answer that comes before its request may be lost with it.
            self._end(TOO_MANY)
            return
        if not self._serving and self._clock is None:
            self._start_clock(TOO_SLOW)
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return None if self._inner is None else self._inner.eof_received()

    def pause_writing(self) -> None:
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._inner is not None:
            self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        self._gone(self)
        if self._inner is not None:
            self._inner.connection_lost(exc)

    def _start_clock(self, error: ApiError) -> None:
        self._clock = asyncio.get_running_loop().call_later(self._head_deadline, self._end, error)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _end(self, error: ApiError) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(_plain_answer(error))
            self._transport.close()


class Connections:
    """The protocol factory of a server: `make` is aiohttp's own."""

    def __init__(
        self,
        make: Callable[[], asyncio.Protocol],
        *,
        limit: int = MAX_CONNECTIONS,
        head_deadline: float = HEAD_DEADLINE,
    ) -> None:
        self._make = make
        self._limit = limit
        self._head_deadline = head_deadline
        self._open: set[Connection] = set()

    def __call__(self) -> Connection:
        has_room = len(self._open) < self._limit
        connection = Connection(self._make() if has_room else None, self._open.discard, self._head_deadline)
        if has_room:
            self._open.add(connection)
        return connection


def connection_of(request: web.Request) -> Connection | None:
    """The connection that brought `request`, None when it has gone."""
    protocol = None if request.transport is None else request.transport.get_protocol()
    return protocol if isinstance(protocol, Connection) else None
