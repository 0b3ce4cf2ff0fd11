"""GET /v1/responses with Upgrade: what POST /v1/responses does, request after request on one connection.

    response.create --> its stream's queue --> one at a time --> the events of its Response, a frame each
                                                           `-> an `error` frame, when none has begun

`stream_id` names a stream; most connections have one. If a request fails, the Response that it wanted to continue is
forgotten here, because its client starts over with the whole conversation.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial

import orjson
import structlog
from aiohttp import web
from structlog.typing import FilteringBoundLogger

from ...contracts import StoredResponse, WireObject
from ...errors import ApiError, RequestError
from ...wire.builder import AnswerBuilder, WireEvent
from ...wire.json_body import JsonObject
from ...wire.reader import Reader, wrong_value
from ...wire.responses.frames import CLIENT_FRAMES, ENVELOPE, SILENT_FRAMES, error_frame, in_stream, steer_failed
from ..bodies import fault, note_message
from ..delivery import Exchange, deliver
from ..event_stream import HEAD_WAIT
from ..history import Draft, Library, keep
from ..rate_limits import RATE_LIMITS
from ..request_log import RequestLog
from ..responses import begin_draft
from ..state import STORE
from .socket import Socket, serve_socket, shutting_down

# Streams of a connection that may have work at a time.
MAX_STREAMS = 8

# Characters of a `stream_id`.
MAX_STREAM_ID = 64

# Requests that may wait on a connection; together they may weigh as much as one message.
MAX_QUEUED = 32

# Responses of one connection that can be continued there, and their bytes; the oldest goes first.
MAX_RECENT = 1_000
MAX_RECENT_BYTES = 64 << 20

log: FilteringBoundLogger = structlog.get_logger(__name__)


class FrameSink:
    """The sink of a Response whose events are frames of a stream.

    The first two wait for the third, as long as it is not late: a backend that refuses the turn at once is told by an
    `error` frame.
    """

    def __init__(self, socket: Socket, stream: str | None) -> None:
        self._socket = socket
        self._stream = stream
        self._waiting: list[WireEvent] = []
        self.begun = False

    @asynccontextmanager
    async def open(self, builder: AnswerBuilder) -> AsyncIterator[None]:
        self._waiting = builder.start()
        stop_waiting = self._socket.start(self._begin_when_late(), f"opening of {builder.id}")
        try:
            yield
        finally:
            stop_waiting()

    async def _begin_when_late(self) -> None:
        await asyncio.sleep(HEAD_WAIT)
        if not self.begun:
            await self.send([])

    def send(self, events: Sequence[WireEvent]) -> Awaitable[None]:
        self.begun = True
        if self._waiting:
            events, self._waiting = [*self._waiting, *events], []
        return self._socket.send(in_stream(event, self._stream) for event in events)

    def finish(self, events: Sequence[WireEvent], error: ApiError | None) -> Awaitable[None]:
        return self.send(events)


class Recent:
    """The Responses of one connection, in front of the store: there they can be continued though nobody keeps them.

    A `Library`. All is of one owner: a connection has one key.
    """

    def __init__(self, store: Library) -> None:
        self._store = store
        self._responses: dict[str, tuple[StoredResponse, int]] = {}
        # By the item's id, and the Response that has it: a conversation has most of its items in many.
        self._items: defaultdict[str, dict[str, WireObject]] = defaultdict(dict)
        self._bytes = 0

    def add(self, stored: StoredResponse) -> None:
        size = len(orjson.dumps([stored.input, stored.output]))
        self._responses[stored.id] = (stored, size)
        for item in _items(stored):
            self._items[str(item["id"])].setdefault(stored.id, item)
        self._bytes += size
        while len(self._responses) > MAX_RECENT or self._bytes > MAX_RECENT_BYTES:
            self.forget(next(iter(self._responses)))

    def forget(self, response_id: str) -> None:
        if response_id not in self._responses:
            return
        stored, size = self._responses.pop(response_id)
        self._bytes -= size
        for identifier in {str(item["id"]) for item in _items(stored)}:
            del self._items[identifier][response_id]
            if not self._items[identifier]:
                del self._items[identifier]

    async def load(self, response_id: str, owner: str) -> StoredResponse | None:
        if response_id in self._responses:
            return self._responses[response_id][0]
        return await self._store.load(response_id, owner)

    async def find_items(self, item_ids: Sequence[str], owner: str) -> dict[str, WireObject]:
        near = {item_id: next(iter(self._items[item_id].values())) for item_id in item_ids if item_id in self._items}
        return near | await self._store.find_items([item_id for item_id in item_ids if item_id not in near], owner)

    async def items(self, conversation_id: str, owner: str) -> tuple[WireObject, ...] | None:
        return await self._store.items(conversation_id, owner)


def _items(stored: StoredResponse) -> tuple[WireObject, ...]:
    return (*stored.input, *stored.output)


class ResponsesSession:
    def __init__(self, socket: Socket) -> None:
        self._socket = socket
        self._request = socket.request
        self._recent = Recent(self._request.app[STORE])
        self._streams: dict[str | None, deque[tuple[JsonObject, int]]] = {}

    async def open(self) -> None:
        """The client has the first word."""

    async def refuse(self, error: ApiError, message: JsonObject | None) -> None:
        stream_id = (message or {}).get("stream_id")
        stream = stream_id if isinstance(stream_id, str) and len(stream_id) <= MAX_STREAM_ID else None
        await self._socket.send([in_stream(error_frame(error), stream)])

    async def receive(self, message: JsonObject, size: int) -> None:
        match kind := Reader(message).required_string("type"):
            case "response.create":
                self._enqueue(message, size)
            case "response.steer":
                await self._socket.send([steer_failed(message)])
            case _ if kind in SILENT_FRAMES:
                pass
            case _:
                raise wrong_value("type", kind, CLIENT_FRAMES)

    def _enqueue(self, message: JsonObject, size: int) -> None:
        stream = Reader(message).string("stream_id", max_length=MAX_STREAM_ID)
        waiting = [waits for queue in self._streams.values() for _, waits in queue]
        if len(waiting) >= MAX_QUEUED or (waiting and sum(waiting) + size > self._request.client_max_size):
            raise RequestError(
                "Too many requests wait on this connection: send the next one when one is answered.",
                status=429,
                type="requests",
                code="rate_limit_exceeded",
            )
        if stream not in self._streams:
            if len(self._streams) >= MAX_STREAMS:
                raise RequestError(
                    f"{MAX_STREAMS} streams have work on this connection. Use one of them, or wait.",
                    status=429,
                    code="websocket_stream_limit_reached",
                    param="stream_id",
                )
            self._streams[stream] = deque()
            self._socket.start(self._work(stream), f"stream {stream}")
        self._streams[stream].append((message, size))

    async def _work(self, stream: str | None) -> None:
        """Answers what waits in a stream, one after the other."""
        queue = self._streams[stream]
        while queue:
            message, _ = queue.popleft()
            with self._socket.working() as entry:
                await self._answer(message, stream, entry)
        del self._streams[stream]

    async def _answer(self, message: JsonObject, stream: str | None, entry: RequestLog) -> None:
        try:
            if self._socket.stopping:
                raise shutting_down()  # noqa: TRY301 -- one place tells every error
            await self._respond(message, stream, entry)
        except ConnectionError:
            raise
        except ApiError as error:
            await self._refuse(error, message, entry)
        except Exception:  # a fault of ours: logged with its trace, told without it
            log.exception("request_fault", id=entry.id)
            await self._refuse(fault(), message, entry)
        if entry.failed is not None and isinstance(previous := message.get("previous_response_id"), str):
            self._recent.forget(previous)

    async def _refuse(self, error: ApiError, message: JsonObject, entry: RequestLog) -> None:
        entry.failed_with(error)
        await self.refuse(error, message)

    async def _respond(self, message: JsonObject, stream: str | None, entry: RequestLog) -> None:
        request = Reader(message)
        if request.boolean("background"):
            raise RequestError(
                "Background responses are not made over a WebSocket: leave 'background' out, or POST the request.",
                code="unsupported_parameter",
                param="background",
            )
        body = {name: value for name, value in message.items() if name not in ENVELOPE}
        cache = request.object("prompt_cache_options")
        if cache is not None and cache.boolean("prewarm"):
            body["generate"] = False
        warm_up = Reader(body).boolean("generate") is False
        note_message(self._request.app, entry, body)
        with ExitStack() as held:
            draft = await begin_draft(self._request, body, held, self._recent)
            entry.answers(draft.request.turn.model, draft.builder.id, stream=True)
            if warm_up:
                events = [*draft.builder.start(), *draft.builder.warm_up()]
                await self._keep(draft, entry)
                await self._socket.send(in_stream(event, stream) for event in events)
            else:
                self._request.app[RATE_LIMITS].take(draft.owner)
                keeping = partial(self._keep, draft, entry)
                exchange = Exchange(draft.request.turn, draft.owner, draft.builder, keeping, mint=draft.mint)
                await deliver(self._request.app, exchange, FrameSink(self._socket, stream), entry)

    async def _keep(self, draft: Draft, entry: RequestLog) -> None:
        await keep(self._request, draft, entry)
        self._recent.add(draft.stored())


async def connect_responses(request: web.Request) -> web.StreamResponse:
    return await serve_socket(request, ResponsesSession)
