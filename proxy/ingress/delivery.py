"""One delivery: runs a turn to its end, makes an API's events of it, and hands them to a sink.

    turn --batches--> builder --events--> sink     an event stream, one JSON body,
                         |                         frames on a socket, a job in the background
                         '-- the answer is stored before its last events leave

    the turn ends                  its last events
    it fails before any event,     raised: its caller refuses the request (an HTTP error, an `error` frame)
       and nothing has left
    it fails later                 its last events, which carry the error
    a fault of ours                logged with its trace; raised or sent without it, as above
    it is cancelled                the last events that its `Cancellation` makes
    its client leaves              raised: `ConnectionError`

Every API that answers with a turn passes through here. An `Exchange` holds the differences between APIs, and a `Sink`
is a way to a client.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Protocol

import structlog
from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace
from structlog.typing import FilteringBoundLogger

from ..contracts import TurnEvent, TurnFailed, TurnFinished, TurnRequest, Usage
from ..errors import ApiError
from ..ids import MintId, mint_id
from ..turn import answer_request
from ..wire.builder import AnswerBuilder, WireEvent
from .bodies import fault, json_reply
from .event_stream import EventStream, StreamSink
from .inspect import INSPECTION, TurnRecord
from .metrics import METRICS
from .models import MODELS
from .rate_limits import RATE_LIMITS
from .readiness import READINESS
from .request_log import RequestLog
from .spans import spanned
from .state import BACKEND, KEYS, REQUEST_LOG, TURN_OPTIONS

log: FilteringBoundLogger = structlog.get_logger(__name__)

# Events of a turn that are handled in one step of some milliseconds. Hardly any answer has more.
MADE_AT_ONCE = 512

Batches = AsyncGenerator[list[TurnEvent], None]


class Cancellation:
    """Ends a delivery from outside, between two batches: events that were built are still sent."""

    def __init__(self) -> None:
        self.ending: Callable[[], list[WireEvent]] | None = None
        """Makes the last events; None as long as nobody has asked for the end."""
        self._waiting: asyncio.Timeout | None = None

    def request(self, ending: Callable[[], list[WireEvent]]) -> None:
        """Asks for the end. The first one who asks decides how it ends, unless it has its last events already."""
        if self.ending is None:
            self.ending = ending
            if self._waiting is not None:
                self._waiting.reschedule(asyncio.get_running_loop().time())

    async def cut(self, turn: Batches) -> Batches:
        """The batches of `turn`, until it ends or its end is asked for."""
        async with aclosing(turn):
            while self.ending is None and (batch := await self._next(turn)) is not None:
                yield batch

    async def _next(self, turn: Batches) -> list[TurnEvent] | None:
        try:
            async with asyncio.timeout(None) as self._waiting:
                return await anext(turn, None)
        except (TimeoutError, asyncio.CancelledError):
            # A stop in haste asks for the end and cancels the task right after. These two are one wish.
            if self.ending is None:
                raise
            return None
        finally:
            self._waiting = None


async def _nothing() -> None:
    pass


def _as_it_is(error: ApiError) -> ApiError:
    return error


class Exchange(Struct, frozen=True):
    """A request: the turn that it asks for, and the builder of its answer."""

    turn: TurnRequest
    owner: str
    """The owner of the request's key. Nothing that the turn leaves behind is for another owner."""
    builder: AnswerBuilder
    keep: Callable[[], Awaitable[None]] = _nothing
    """Stores the answer. Awaited once the turn is finished, before the last events leave. If it raises `ApiError`, the
    answer ends with that error.
    """
    mint: MintId = mint_id
    """Makes the ids of its calls."""
    map_error: Callable[[ApiError], ApiError] = _as_it_is
    """Turns an error into that of its API, if it is another one than in the Responses API."""
    cancellation: Cancellation | None = None
    """With this the delivery can be ended early."""


class Sink(Protocol):
    """Where one answer goes. Each method may raise `ConnectionError`: its client has gone."""

    @property
    def begun(self) -> bool:
        """Something has left or is leaving, so the answer itself has to tell of a failure."""

    def open(self, builder: AnswerBuilder) -> AbstractAsyncContextManager[None]:
        """Begins the answer. The context lasts as long as the turn, for work beside it."""

    def send(self, events: Sequence[WireEvent]) -> Awaitable[None]:
        """Events in the middle of the answer, those of one batch."""

    def finish(self, events: Sequence[WireEvent], error: ApiError | None) -> Awaitable[None]:
        """The last events, and the `error` that they tell. A fault may have ended the context of `open` before."""


async def deliver(app: web.Application, exchange: Exchange, sink: Sink, entry: RequestLog) -> None:
    """Hands one answer to `sink`, and its last event whatever happens.

    Raises `ApiError` if nothing has left and the request is refused, and `ConnectionError` if the client has gone.
    """
    asked = exchange.turn
    wanted = replace(
        asked, model=app[MODELS].behind(asked.model), owner=exchange.owner, names=asked.names | {exchange.builder.id}
    )
    with (
        app[INSPECTION].turn(entry, wanted) as record,
        spanned(app, entry, asked, wanted.model, exchange.builder) as builder,
    ):
        await _deliver(app, replace(exchange, turn=wanted, builder=builder), sink, entry, record)


async def _deliver(app: web.Application, exchange: Exchange, sink: Sink, entry: RequestLog, record: TurnRecord) -> None:
    builder = exchange.builder
    try:
        async with sink.open(app[INSPECTION].noted(builder, record)):
            try:
                last, error = await _send_all_but_the_last(app, exchange, sink, entry, record)
            finally:
                record.close(time.monotonic())  # now, because sending the end may take longer
            await sink.finish(last, error)
    except ConnectionError:
        raise
    except ApiError as error:
        failure = error
    except Exception:
        log.exception("delivery_fault", id=entry.id, response=builder.id)
        failure = fault()
    else:
        return
    entry.failed_with(failure)
    if not sink.begun:
        record.left_none(failure)
        raise failure
    last = builder.handle(TurnFailed(failure))
    record.left(last, time.monotonic())
    await sink.finish(last, failure)


async def _send_all_but_the_last(
    app: web.Application, exchange: Exchange, sink: Sink, entry: RequestLog, record: TurnRecord
) -> tuple[list[WireEvent], ApiError | None]:
    """Runs the turn and closes it. Returns its last events, and the error that they tell."""
    builder, cancellation = exchange.builder, exchange.cancellation
    app[MODELS].look()
    with app[METRICS].turn(entry.turn) as clock:
        backend = app[INSPECTION].overheard(app[BACKEND], record)
        turn = answer_request(exchange.turn, backend, app[TURN_OPTIONS], entry.turn, mint=exchange.mint)
        batches = turn if cancellation is None else cancellation.cut(turn)
        async with aclosing(batches):
            async for batch in batches:
                now = time.monotonic()
                record.saw(batch, now)
                if isinstance(batch[-1], (TurnFinished, TurnFailed)):
                    clock.saw(batch)
                    return await _last(app, exchange, sink, entry, batch=batch, record=record)
                if clock.first is None:
                    clock.saw(batch)
                    entry.saw_first_event()
                events = _made(builder, batch) if len(batch) <= MADE_AT_ONCE else await _made_in_steps(builder, batch)
                record.left(events, now)
                await sink.send(events)
    if cancellation is None or cancellation.ending is None:
        raise RuntimeError("the turn has no end")
    return cancellation.ending(), None


async def _last(
    app: web.Application,
    exchange: Exchange,
    sink: Sink,
    entry: RequestLog,
    *,
    batch: list[TurnEvent],
    record: TurnRecord,
) -> tuple[list[WireEvent], ApiError | None]:
    """Stores the answer. Returns the events of the batch that ends the turn, and the error that they tell."""
    builder, end, error = exchange.builder, batch[-1], None
    if isinstance(end, (TurnFinished, TurnFailed)) and end.usage:
        _count(app, exchange, entry, end.usage)
    if isinstance(end, TurnFailed):
        app[READINESS].saw(end.error)
        error = exchange.map_error(end.error)
        if len(batch) == 1 and not sink.begun:
            raise error
        batch[-1] = replace(end, error=error)
        entry.failed_with(error)
    events = _made(builder, batch) if len(batch) <= MADE_AT_ONCE else await _made_in_steps(builder, batch)
    if isinstance(end, TurnFinished):
        app[READINESS].saw(None)
        try:
            await exchange.keep()
        except ApiError as refusal:
            if not sink.begun:
                raise
            error = refusal
            entry.failed_with(error)
            events[-1:] = builder.handle(TurnFailed(error))
    entry.saw_first_event()
    record.left(events, time.monotonic())
    if not exchange.turn.streamed:
        record.left_whole(builder.body)
    return events, error


def _count(app: web.Application, exchange: Exchange, entry: RequestLog, usage: Usage) -> None:
    """Counts the tokens of a turn, however it ended."""
    entry.used(usage)
    app[RATE_LIMITS].spend(exchange.owner, usage)
    model, key = app[MODELS].label(exchange.turn.model), app[KEYS].name_of(exchange.owner)
    app[METRICS].tokens(usage, model, key)


def _made(builder: AnswerBuilder, batch: Sequence[TurnEvent]) -> list[WireEvent]:
    """The events that `builder` makes of `batch`."""
    if len(batch) == 1:
        return builder.handle(batch[0])
    return [made for event in batch for made in builder.handle(event)]


async def _made_in_steps(builder: AnswerBuilder, batch: Sequence[TurnEvent]) -> list[WireEvent]:
    """The same for a long batch, in steps between which others are served."""
    events: list[WireEvent] = []
    for start in range(0, len(batch), MADE_AT_ONCE):
        if start:
            await asyncio.sleep(0)
        events += _made(builder, batch[start : start + MADE_AT_ONCE])
    return events


# Over HTTP


async def answer(request: web.Request, exchange: Exchange) -> web.StreamResponse:
    """Serves one exchange in the form of its API: as a stream if the client wants one, else as one JSON body. Raises
    `ApiError`.
    """
    entry, stream = request[REQUEST_LOG], exchange.turn.streamed
    entry.answers(exchange.turn.model, exchange.builder.id, stream=stream)
    request.app[RATE_LIMITS].take(exchange.owner)
    if not stream:
        await deliver(request.app, exchange, BodySink(), entry)
        return json_reply(exchange.builder.body)
    events = EventStream(request)
    try:
        await deliver(request.app, exchange, StreamSink(events, entry.turn.warnings), entry)
    except ConnectionError:
        entry.client_left()
    return events.reply


class BodySink:
    """The sink of an answer that leaves as one JSON body at its end. A failure is raised instead."""

    begun = False

    def open(self, builder: AnswerBuilder) -> AbstractAsyncContextManager[None]:
        builder.start()
        return no_connection()

    async def send(self, events: Sequence[WireEvent]) -> None:
        """Nothing leaves yet: the builder keeps the events."""

    async def finish(self, events: Sequence[WireEvent], error: ApiError | None) -> None:
        if error is not None:
            raise error


@asynccontextmanager
async def no_connection() -> AsyncIterator[None]:
    """For a sink that writes to no client: if a connection fails there, it is one of ours, and a fault."""
    try:
        yield
    except ConnectionError as error:
        raise RuntimeError("a connection failed which is no client's") from error
