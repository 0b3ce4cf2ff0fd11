"""Bounds of connections: how many may be open, how long one may be silent, and how long a head may take.

aiohttp has none of these bounds: a head that never ends keeps its connection for ever. So each of its connections
stands behind one of ours, which passes everything on and has a deadline.

    silent ---first byte---> head ---all of it---> body ---all of it---> request ---answered---> waiting ---> head
       | closed after           | 408 after HEAD_DEADLINE                                           | closed when
       | FIRST_BYTE_DEADLINE    |                                                                   | idle (aiohttp)
    refused ---first byte, or HEAD_DEADLINE---> 503; health checks are answered
    any of them, while more waits for its client than goes out at once ---nothing taken for UNREAD_DEADLINE---> reset

If one connection too many comes, in all or from one address, another one is closed for it: the one for whose client the
server has waited longest. Such a client has asked nothing, stalls in a body, or has a WebSocket without a turn. The new
one is refused only if all others are being served or have just come. So neither silent sockets nor one address can lock
out the others.

All clients of a trusted proxy come from its one address, so that address has no share. Its connections are counted
apart. There each forwarded address has a share, or each key if no address is forwarded.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import Enum, auto
from functools import partial
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import TypeAlias, cast

import orjson
import structlog
from aiohttp import web
from structlog.typing import FilteringBoundLogger

from ..errors import ApiError, RequestError
from .admission import owner_of
from .balancer import asks_in, second_try
from .bodies import error_reply, fault
from .deadline import Deadline

# Addresses of trusted proxies.
Network: TypeAlias = IPv4Network | IPv6Network

# Connections that are open at a time.
MAX_CONNECTIONS = 256

# Of these, those of one address: a quarter is for the others.
SHARE = 0.75

# Connections of trusted proxies that are open at a time, besides.
MAX_PROXIED = 1_024

# Connections that wait to be told that there is no room, besides.
MAX_REFUSED = 64

# Health checks are answered even then: a supervisor that gets no answer would restart the server.
HEALTH = re.compile(rb"(?:GET|HEAD) \S*/(?:healthz|health|readyz)/? HTTP/1\.")

# The end of a WebSocket for the sake of another connection: 1013, "try again later" (RFC 6455, and IANA's registry).
TRY_AGAIN_LATER = b"\x88\x02\x03\xf5"

# Seconds from a connection's begin to its first byte. There are clients that open one ahead of time.
FIRST_BYTE_DEADLINE = 10.0

# Seconds without a request after which a connection may be closed for another. Its request may be on its way before.
IDLE = 1.0

# Seconds from the first byte of a request's head to its last.
HEAD_DEADLINE = 10.0

# Seconds in which a client takes nothing of its answer. They are many, because a client that reads slowly does not show
# at once: the system takes more from us only when a part of its own buffer is free.
UNREAD_DEADLINE = 60.0

# Answers where there is no request yet, or none that could be read.
TOO_SLOW = RequestError("The head of the request took too long.", status=408)
TOO_MANY = ApiError("Too many connections are open. Try again later.", status=503, retry_after=1, elsewhere=True)
UNREADABLE = RequestError("The request could not be read: it is not HTTP by RFC 9112.")

log: FilteringBoundLogger = structlog.get_logger(__name__)


class HttpProtocol(web.RequestHandler):
    """aiohttp's protocol with another error body: aiohttp's repeats the bytes that it could not read, keys included."""

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


def _plain_answer(error: ApiError, head: bytes) -> bytes:
    """An error as the bytes of an HTTP answer, where there is no request yet that could be answered.

    `head` is what has come of its head.
    """
    body = orjson.dumps({"error": error.error_object()})
    headers = {"Content-Type": "application/json", "Content-Length": len(body), "Connection": "close"}
    told = {**error.headers(), **second_try(error.headers(), asked=asks_in(head))}
    lines = [f"{name}: {value}" for name, value in {**headers, **told}.items()]
    return "\r\n".join([f"HTTP/1.1 {error.status} Error", *lines, "", ""]).encode() + body


class Connection(asyncio.Protocol):
    """One connection. `inner` is aiohttp's protocol; it is None if there was no room for the connection."""

    def __init__(self, make: Callable[[], asyncio.Protocol], pool: Connections) -> None:
        self._make = make
        self._pool = pool
        self._inner: asyncio.Protocol | None = None
        self._transport: asyncio.Transport | None = None
        self._deadline = Deadline()
        self._unread_clock: asyncio.TimerHandle | None = None
        self._silent = True
        self._serving = False
        self._upgraded = False
        self._only_health = False
        self.address = ""
        self.proxied = False
        """Whether it is of a trusted proxy."""
        self.idle_since: float | None = None
        """Since when the server waits for its client, in the loop's time; None while it serves it."""

    @property
    def pool(self) -> Connections:
        return self._pool

    def head_was_read(self) -> None:
        """The head of a request is whole. Its body has a deadline of its own."""
        self._serving = True
        self.rests()
        self._deadline.lift()

    def works(self) -> None:
        """Its client waits for the server: a request is whole, or a turn runs on its WebSocket."""
        self.idle_since = None

    def rests(self) -> None:
        """The server waits for its client."""
        self.idle_since = asyncio.get_running_loop().time()

    def becomes_socket(self) -> None:
        """It is a WebSocket from now on, on which nothing runs yet."""
        self._upgraded = True
        self.rests()

    def was_answered(self) -> None:
        """What comes from now on is another request's."""
        self._serving = False
        self.rests()
        if self._only_health:
            self._close()

    def is_idle(self, since: float) -> bool:
        """Whether it has had no request since a moment in the loop's time."""
        return self.idle_since is not None and self.idle_since <= since

    def give_way(self) -> None:
        """Ends the connection to make room for another."""
        if self._upgraded and self._transport is not None:
            self._transport.write(TRY_AGAIN_LATER)
            self._close()
        elif self._serving or (self._deadline.is_set and not self._silent):
            self._end(TOO_MANY)
        else:
            # It has asked nothing. It would take an error for the answer to its next request.
            self._close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A stream server always gives a transport. uvloop's class does not say so.
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if isinstance(peer, tuple) and peer else ""
        self.proxied = self._pool.trusts(self.address)
        self.rests()
        match self._pool.admit(self):
            case Room.OPEN:
                self._inner = self._make()
                self._inner.connection_made(transport)
                self._deadline.set(self._pool.first_byte_deadline, self._close)
            case Room.REFUSED:
                self._deadline.set(self._pool.head_deadline, partial(self._end, TOO_MANY))
            case Room.DROPPED:
                self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._inner is None and HEALTH.match(data) and self._transport is not None:
            self._only_health = True
            self._deadline.lift()
            self._inner = self._make()
            self._inner.connection_made(self._transport)
        if self._inner is None:
            # Only now: an answer that leaves before the request has come may be lost.
            self._end(TOO_MANY, data)
            return
        # Blank lines in front of a request are no part of it (RFC 9112, section 2.2). Some clients send them.
        begins = self._serving or bool(data.strip(b"\r\n"))
        if self._serving and self.idle_since is not None:
            self.rests()  # anew: more of a body, or a frame, has come
        if self._silent and begins:
            self._silent = False
            self._deadline.lift()
        if begins and not self._serving and not self._deadline.is_set:
            self._deadline.set(self._pool.head_deadline, partial(self._end, TOO_SLOW))
            self.rests()
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return None if self._inner is None else self._inner.eof_received()

    def pause_writing(self) -> None:
        self._expect_reading()
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._stop_unread_clock()
        if self._inner is not None:
            self._inner.resume_writing()

    def _expect_reading(self) -> None:
        """Starts the clock. Nobody writes more now, so the buffer shrinks unless the client takes nothing."""
        if self._transport is not None:
            waiting, then = self._transport.get_write_buffer_size(), self._look_at_unread
            self._unread_clock = asyncio.get_running_loop().call_later(self._pool.unread_deadline, then, waiting)

    def _look_at_unread(self, before: int) -> None:
        if self._transport is not None and self._transport.get_write_buffer_size() >= before:
            self._transport.abort()
        else:
            self._expect_reading()

    def _stop_unread_clock(self) -> None:
        if self._unread_clock is not None:
            self._unread_clock.cancel()
            self._unread_clock = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.end()
        self._stop_unread_clock()
        self._pool.forget(self)
        if self._inner is not None:
            self._inner.connection_lost(exc)

    def _end(self, error: ApiError, head: bytes = b"") -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(_plain_answer(error, head))
            self._transport.close()

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()


class Room(Enum):
    OPEN = auto()
    REFUSED = auto()
    DROPPED = auto()


class Connections:
    """The protocol factory of a server: `make` is aiohttp's own."""

    def __init__(
        self,
        make: Callable[[], asyncio.Protocol],
        *,
        limit: int = MAX_CONNECTIONS,
        share: float = SHARE,
        idle: float = IDLE,
        proxies: Iterable[Network] = (),
        most_proxied: int = MAX_PROXIED,
        head_deadline: float = HEAD_DEADLINE,
        first_byte_deadline: float = FIRST_BYTE_DEADLINE,
        unread_deadline: float = UNREAD_DEADLINE,
    ) -> None:
        self._make = make
        self._limit = limit
        self._of_one_address = max(1, int(limit * share))
        self._proxies = tuple(proxies)
        self._most_proxied = most_proxied
        self._of_one_client = max(1, int(most_proxied * share))
        self._idle = idle
        self.head_deadline = head_deadline
        self.first_byte_deadline = first_byte_deadline
        self.unread_deadline = unread_deadline
        self._open: set[Connection] = set()
        self._proxied: set[Connection] = set()
        self._asking: Counter[str] = Counter()
        self._refused: set[Connection] = set()

    def __call__(self) -> Connection:
        return Connection(self._make, self)

    def admit(self, connection: Connection) -> Room:
        """Finds room for one more connection, and may end another for it."""
        among, limit = (self._proxied, self._most_proxied) if connection.proxied else (self._open, self._limit)
        neighbours = {one for one in among if one.address == connection.address}
        over_share = not connection.proxied and len(neighbours) >= self._of_one_address
        if over_share or len(among) >= limit:
            crowded = neighbours if over_share else among
            since = asyncio.get_running_loop().time() - self._idle
            idle = [(one.idle_since, id(one), one) for one in crowded if one.is_idle(since)]
            if not idle:
                if len(self._refused) >= MAX_REFUSED:
                    return Room.DROPPED
                self._refused.add(connection)
                return Room.REFUSED
            *_, longest = min(idle)
            among.discard(longest)
            longest.give_way()
        among.add(connection)
        return Room.OPEN

    def trusts(self, address: str) -> bool:
        """Whether `address` is that of a trusted proxy."""
        if not self._proxies or not address:
            return False
        peer = ip_address(address.partition("%")[0])
        peer = getattr(peer, "ipv4_mapped", None) or peer
        return any(peer in network for network in self._proxies)

    @contextmanager
    def asks(self, client: str) -> Iterator[ApiError | None]:
        """Counts a request of this client of a proxy while it lasts. Yields an error if the client has too many."""
        self._asking[client] += 1
        try:
            yield TOO_MANY if self._asking[client] > self._of_one_client else None
        finally:
            self._asking[client] -= 1
            if not self._asking[client]:
                del self._asking[client]

    def forget(self, connection: Connection) -> None:
        self._open.discard(connection)
        self._proxied.discard(connection)
        self._refused.discard(connection)


def connection_of(request: web.Request) -> Connection | None:
    """The connection that brought `request`, None when it has gone."""
    protocol = None if request.transport is None else request.transport.get_protocol()
    return protocol if isinstance(protocol, Connection) else None


def asks_through(request: web.Request, connection: Connection | None) -> AbstractContextManager[ApiError | None]:
    """Counts `request` while it lasts, if a trusted proxy brought it. Yields an error if its client has too many."""
    if connection is None or not connection.proxied:
        return nullcontext()
    forwarded = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
    return connection.pool.asks(forwarded or owner_of(request))
