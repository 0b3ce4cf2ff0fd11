"""GET /v1/responses with Upgrade: what POST /v1/responses does, request after request on one connection.

    response.create --> its lane's queue --> one at a time --> the events of its Response, a frame each
                                                           `-> an `error` frame, when none has begun

A lane is what `stream_id` names, most connections have one. A Response that a failed request wanted to
continue is forgotten here: its client starts over with the whole conversation.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import ExitStack, aclosing
from functools import partial

import structlog
from aiohttp import web

from ...contracts import TurnFailed
from ...errors import ApiError, RequestError
from ...wire.builder import WireEvent
from ...wire.json_body import JsonObject
from ...wire.reader import Reader, wrong_value
from ...wire.responses.frames import CLIENT_FRAMES, ENVELOPE, SILENT_FRAMES, error_frame, in_lane, steer_failed
from ...wire.sse import encode_typed
from ..drafts import Draft
from ..event_stream import HEAD_WAIT
from ..exchange import Exchange, built
from ..history import keep
from ..replies import FAULT
from ..request_log import RequestLog
from ..responses import begin_draft
from ..state import STORE
from .recent import Recent
from .socket import STOPPED, Socket, serve

# Lanes of a connection that may have work at a time.
MAX_LANES = 8

# Characters of a `stream_id`.
MAX_LANE_NAME = 64

# Requests that may wait on a connection; together they may weigh as much as one message.
MAX_WAITING = 32

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("tagcall.socket")


class Opening:
    """The first events of a Response. They wait for the third, as long as it is not late: a backend that refuses the
    turn at once is told by an `error` frame.
    """

    def __init__(self, socket: Socket, events: list[WireEvent]) -> None:
        self._socket = socket
        self._events = events
        self.sent = False

    def take(self) -> list[WireEvent]:
        events, self._events, self.sent = self._events, [], True
        return events

    async def send_when_late(self) -> None:
        await asyncio.sleep(HEAD_WAIT)
        if not self.sent:
            await self._socket.send(self.take())


class ResponsesSession:
    def __init__(self, socket: Socket) -> None:
        self._socket = socket
        self._request = socket.request
        self._recent = Recent(self._request.app[STORE])
        self._lanes: dict[str | None, deque[tuple[JsonObject, int]]] = {}

    async def open(self) -> None:
        """The client has the first word."""

    async def refuse(self, error: ApiError, message: JsonObject | None) -> None:
        stream_id = (message or {}).get("stream_id")
        lane = stream_id if isinstance(stream_id, str) and len(stream_id) <= MAX_LANE_NAME else None
        await self._socket.send([in_lane(error_frame(error), lane)])

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
        lane = Reader(message).string("stream_id", max_length=MAX_LANE_NAME)
        waiting = [waits for queue in self._lanes.values() for _, waits in queue]
        if len(waiting) >= MAX_WAITING or (waiting and sum(waiting) + size > self._request.client_max_size):
            raise RequestError(
                "Too many requests wait on this connection: send the next one when one is answered.",
                status=429,
                type="requests",
                code="rate_limit_exceeded",
            )
        if lane not in self._lanes:
            if len(self._lanes) >= MAX_LANES:
                raise RequestError(
                    f"{MAX_LANES} streams have work on this connection. Use one of them, or wait.",
                    status=429,
                    code="websocket_stream_limit_reached",
                    param="stream_id",
                )
            self._lanes[lane] = deque()
            self._socket.start(self._work(lane), f"lane {lane}")
        self._lanes[lane].append((message, size))

    async def _work(self, lane: str | None) -> None:
        """Answers what waits in a lane, one after the other."""
        queue = self._lanes[lane]
        while queue:
            message, _ = queue.popleft()
            with self._socket.working() as entry:
                await self._answer(message, lane, entry)
        del self._lanes[lane]

    async def _answer(self, message: JsonObject, lane: str | None, entry: RequestLog) -> None:
        try:
            if self._socket.stopping:
                raise STOPPED  # noqa: TRY301  # one place tells every error
            await self._respond(message, lane, entry)
        except ConnectionError:
            raise
        except ApiError as error:
            entry.failed = error
            await self.refuse(error, message)
        except Exception:  # a fault of ours: logged with its trace, told without it
            log.exception("fault in a request", id=entry.id)
            entry.failed = FAULT
            await self.refuse(FAULT, message)
        if entry.failed is not None and isinstance(previous := message.get("previous_response_id"), str):
            self._recent.forget(previous)

    async def _respond(self, message: JsonObject, lane: str | None, entry: RequestLog) -> None:
        request = Reader(message)
        if request.boolean("background"):
            raise RequestError(
                "Background responses are not made over a WebSocket: leave 'background' out, or POST the request.",
                code="unsupported_parameter",
                param="background",
            )
        warm_up = request.boolean("generate") is False
        body = {name: value for name, value in message.items() if name not in ENVELOPE}
        with ExitStack() as claimed:
            draft = await begin_draft(self._request, body, claimed, self._recent)
            entry.model, entry.response = draft.request.turn.model, draft.builder.id
            if warm_up:
                events = [*draft.builder.start(), *draft.builder.warm_up()]
                await self._keep(draft)
                await self._socket.send(in_lane(event, lane) for event in events)
            else:
                await self._stream(draft, lane, entry)

    async def _keep(self, draft: Draft) -> None:
        await keep(self._request, draft)
        self._recent.add(draft.stored())

    async def _stream(self, draft: Draft, lane: str | None, entry: RequestLog) -> None:
        """Sends a Response to its end, whatever happens: no client is left without a terminal event."""
        builder = draft.builder
        exchange = Exchange(draft.request.turn, True, builder, encode_typed, partial(self._keep, draft))
        opening = Opening(self._socket, [in_lane(event, lane) for event in builder.start()])
        stop_waiting = self._socket.start(opening.send_when_late(), f"opening of {builder.id}")
        try:
            async with aclosing(built(self._request.app, exchange, entry.turn)) as batches:
                async for batch in batches:
                    if batch.error and batch.alone and not opening.sent:
                        raise batch.error  # noqa: TRY301  # told where every error is
                    entry.failed = batch.error
                    entry.saw_first_event()
                    await self._socket.send([*opening.take(), *(in_lane(event, lane) for event in batch.wire)])
        except ConnectionError:
            raise
        except Exception:
            if not opening.sent:
                raise
            log.exception("fault in a stream", id=entry.id)
            entry.failed = FAULT
            await self._socket.send(in_lane(event, lane) for event in builder.handle(TurnFailed(FAULT)))
        finally:
            stop_waiting()


async def connect_responses(request: web.Request) -> web.StreamResponse:
    return await serve(request, ResponsesSession)
