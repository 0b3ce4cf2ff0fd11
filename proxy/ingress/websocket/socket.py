"""One WebSocket, from the upgrade of a request that was let in to its close.

    GET with Upgrade --> messages --> closed      by the client: what runs for it ends
                                      1001        the server stops, and nothing runs on it any more
                                      1009        a message over --max-body
                                      cut off     its client has stopped reading, or answers no ping

A message is one JSON object. A fault in one is reported, and the next is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import orjson
import structlog
from aiohttp import WSCloseCode, WSMsgType, web
from structlog.typing import FilteringBoundLogger

from ...errors import ApiError, RequestError
from ...ids import mint_id
from ...wire.builder import WireEvent
from ...wire.json_body import JsonObject
from ..admission import KEY_PROTOCOL
from ..bodies import error_reply, fault, parse_in_its_time
from ..connections import connection_of
from ..event_stream import WRITE_DEADLINE
from ..metrics import METRICS
from ..request_log import RequestLog
from ..state import ACTIVITY, REQUEST_LOG, STOPPING

# Seconds of silence after which the client is pinged; who has not answered after half as many has gone.
PING_INTERVAL = 20.0

# Seconds that the other side may take to say goodbye.
CLOSING = 1.0

log: FilteringBoundLogger = structlog.get_logger(__name__)


def shutting_down() -> ApiError:
    return ApiError("The server is shutting down.", status=503, code="server_shutting_down", retry_after=2)


class Socket:
    """What a session writes to, and where its work runs: work that is left when the client goes is ended."""

    def __init__(self, request: web.Request, response: web.WebSocketResponse, group: asyncio.TaskGroup) -> None:
        self.request = request
        self._response = response
        self._group = group
        self._tasks: set[asyncio.Task[None]] = set()
        self._writing = asyncio.Lock()
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._connection = connection_of(request)
        if self._connection is not None:
            self._connection.becomes_socket()

    @property
    def idle(self) -> bool:
        """Whether no turn runs on it."""
        return not self._running

    @property
    def stopping(self) -> bool:
        return self.request.app[STOPPING].is_set()

    def start(self, work: Coroutine[object, object, None], name: str) -> Callable[[], object]:
        """Runs `work` until it is over or the client has gone. Returns what ends it earlier."""
        task = self._group.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task.cancel

    async def send(self, events: Iterable[WireEvent]) -> None:
        """Each event as a frame, in order. Raises `ConnectionError` when the client is not there to read them."""
        async with self._writing:
            try:
                async with asyncio.timeout(WRITE_DEADLINE):
                    for event in events:
                        await self._response.send_frame(orjson.dumps(event), WSMsgType.TEXT)
            except TimeoutError:
                if self.request.transport is not None:
                    self.request.transport.abort()
                raise ConnectionResetError("the client does not read") from None

    @contextmanager
    def working(self) -> Iterator[RequestLog]:
        """A turn: a stopping server waits for it, and its line is written when it is over."""
        upgrade = self.request[REQUEST_LOG]
        entry = RequestLog(
            mint_id("req"), "WS", upgrade.path, upgrade.origin, upgrade.client, upgrade.route, stream=True,
            asker=upgrade.asker, trace=upgrade.trace,
        )  # fmt: skip
        self._running += 1
        self._idle.clear()
        if self._connection is not None:
            self._connection.works()
        status: int | None = None
        try:
            with self.request.app[ACTIVITY].working():
                yield entry
                status = 200 if entry.failed is None else entry.failed.status
        finally:
            entry.write(status)
            self.request.app[METRICS].request(entry, status)
            self._running -= 1
            if not self._running:
                self._idle.set()
                if self._connection is not None:
                    self._connection.rests()

    async def close_when_stopped(self) -> None:
        await self.request.app[STOPPING].wait()
        await self._idle.wait()
        await self._response.close(code=WSCloseCode.GOING_AWAY, message=b"The server is shutting down.")

    def leave(self) -> None:
        for task in self._tasks:
            task.cancel()


class SocketSession(Protocol):
    """What is spoken on a socket. `receive` raises `ApiError` for what `refuse` is to tell."""

    async def open(self) -> None: ...

    async def receive(self, message: JsonObject, size: int) -> None: ...

    async def refuse(self, error: ApiError, message: JsonObject | None) -> None:
        """`message` None: it could not be read at all."""


async def serve_socket(
    request: web.Request, begin: Callable[[Socket], SocketSession], *, protocols: Sequence[str] = ()
) -> web.StreamResponse:
    """Makes a WebSocket of `request` and talks on it to its end."""
    if request.method != "GET" or request.headers.get("Upgrade", "").lower() != "websocket":  # RFC 6455 section 4.2.1
        return _wants_upgrade(request)
    if request.app[STOPPING].is_set():
        raise shutting_down()
    response = web.WebSocketResponse(
        timeout=CLOSING,
        heartbeat=PING_INTERVAL,
        protocols=_protocols_of(request, protocols),
        compress=False,
        max_msg_size=request.client_max_size,
    )
    await response.prepare(request)
    try:
        with request.app[ACTIVITY].resting():
            async with asyncio.TaskGroup() as group:
                socket = Socket(request, response, group)
                socket.start(socket.close_when_stopped(), f"end of socket {request[REQUEST_LOG].id}")
                session = begin(socket)
                try:
                    await session.open()
                    await _listen(response, socket, session)
                except asyncio.CancelledError:
                    # Some clients, codex for one, hang up without a goodbye: between two turns they miss nothing.
                    if socket.idle:
                        request[REQUEST_LOG].left_whole()
                    raise
                # It was closed in good order, and its transport is being closed: that may end this request first.
                request[REQUEST_LOG].left_whole()
                socket.leave()
    except* ConnectionError:
        request[REQUEST_LOG].client_left()
    except* Exception:
        log.exception("socket_fault", id=request[REQUEST_LOG].id)
    return response


def _protocols_of(request: web.Request, spoken: Sequence[str]) -> Sequence[str]:
    """Those to answer with. A browser closes a socket that takes none of what it offered, be it the key alone; and
    aiohttp would log what was offered, with the key.
    """
    offered = [each.strip() for each in request.headers.get("Sec-WebSocket-Protocol", "").split(",")]
    return [each for each in spoken if each in offered] or [each for each in offered if KEY_PROTOCOL.fullmatch(each)]


def _wants_upgrade(request: web.Request) -> web.Response:
    error = RequestError(
        f"GET {request.path[:200]} is a WebSocket: send 'Upgrade: websocket'.", status=426, code="upgrade_required"
    )
    request[REQUEST_LOG].failed_with(error)
    reply = error_reply(error)
    reply.headers["Upgrade"] = "websocket"
    return reply


async def _listen(response: web.WebSocketResponse, socket: Socket, session: SocketSession) -> None:
    """Hands messages to `session` as long as there are any."""
    async for frame in response:
        match frame.type:
            case WSMsgType.TEXT:
                await _hand_over(frame.data, socket.request, session)
            case WSMsgType.BINARY:
                await session.refuse(RequestError("Send text frames: each is one JSON object."), None)
            case _:
                return


async def _hand_over(text: str, request: web.Request, session: SocketSession) -> None:
    message: JsonObject | None = None
    try:
        message = await parse_in_its_time(request, text.encode())
        await session.receive(message, len(text))
    except ApiError as error:
        await session.refuse(error, message)
    except ConnectionError:
        raise
    except Exception:
        log.exception("message_fault")
        await session.refuse(fault(), message)
