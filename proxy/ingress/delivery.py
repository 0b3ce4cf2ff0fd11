"""One delivery: a turn run to its end, its events as an API's own, handed to a sink.

    turn --batches--> builder --events--> sink     an event stream, one JSON body,
                         |                         frames on a socket, a job in the background
                         '-- what is to be kept is kept before the last events leave

    the turn ends                  its last events
    it fails before any event,     raised: its caller refuses the request (an HTTP error, an `error` frame)
       and nothing has left
    it fails later                 its last events, which tell so
    a fault of ours                logged with its trace, told without it: raised, or as last events
    nobody wants more of it        the last events that its `Cancellation` makes
    its client leaves              `ConnectionError`: raised; whoever cancels this leaves as well

Every API that answers with a turn comes through here; what differs between them is an `Exchange`, and between the
ways that lead to clients a `Sink`.
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

# Events of a turn that are looked at in one step, in some milliseconds; hardly an answer has as many.
MADE_AT_ONCE = 512

Batches = AsyncGenerator[list[TurnEvent], None]


class Cancellation:
    """Ends a delivery from outside, between two batches only: what was built is sent."""

    def __init__(self) -> None:
        self.ending: Callable[[], list[WireEvent]] | None = None
        """What makes the last events; None as long as nobody has asked."""
        self._waiting: asyncio.Timeout | None = None

    def request(self, ending: Callable[[], list[WireEvent]]) -> None:
        """The first to ask says how it ends; a delivery that has its last events already ends with those."""
        if self.ending is None:
            self.ending = ending
            if self._waiting is not None:
                self._waiting.reschedule(asyncio.get_running_loop().time())

    async def cut(self, turn: Batches) -> Batches:
        """The batches of `turn`, to its end or to where nobody wants more of them."""
        async with aclosing(turn):
            while self.ending is None and (batch := await self._next(turn)) is not None:
                yield batch

    async def _next(self, turn: Batches) -> list[TurnEvent] | None:
        try:
            async with asyncio.timeout(None) as self._waiting:
                return await anext(turn, None)
        except (TimeoutError, asyncio.CancelledError):
            # Who stops in haste asks, and cancels the task right after: that is one wish, not two.
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
    """What a request asks of the turn, and who makes its answer."""

    turn: TurnRequest
    owner: str
    """Who asks: nothing that a turn leaves behind is for another."""
    builder: AnswerBuilder
    keep: Callable[[], Awaitable[None]] = _nothing
    """Awaited once the turn is finished, before the last events leave. Raises `ApiError` for what is to be told in
    place of its end.
    """
    mint: MintId = mint_id
    """Makes the ids of its calls."""
    map_error: Callable[[ApiError], ApiError] = _as_it_is
    """Makes of an error what its API says there, when that is not what the Responses API says."""
    cancellation: Cancellation | None = None
    """What can end it early, where something can."""


class Sink(Protocol):
    """Where one answer goes. Each method may raise `ConnectionError`: its client has gone."""

    @property
    def begun(self) -> bool:
        """Something has left, or is leaving: from now on a failure has to be told in the answer itself."""

    def open(self, builder: AnswerBuilder) -> AbstractAsyncContextManager[None]:
        """Begins the answer, and does around the turn what has to be done beside it."""

    def send(self, events: Sequence[WireEvent]) -> Awaitable[None]:
        """Events in the middle of the answer, those of one batch."""

    def finish(self, events: Sequence[WireEvent], error: ApiError | None) -> Awaitable[None]:
        """The last events. `error`: what they tell. May come when `open` is left: a fault may have ended that."""


async def deliver(app: web.Application, exchange: Exchange, sink: Sink, entry: RequestLog) -> None:
    """Hands one answer to `sink`, to its end whatever happens: nobody is left without its last event.

    Raises `ApiError` when the request is to be refused, for nothing has left, and `ConnectionError` when its client
    has gone.
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
                record.close(time.monotonic())  # telling its end may take longer
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
    """Runs the turn. Returns its last events, once it is closed, and what they tell."""
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
    """The events of the batch that ends the turn, once what is to be kept is kept, and what they tell."""
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
    """What a turn has taken, however it ended."""
    entry.used(usage)
    app[RATE_LIMITS].spend(exchange.owner, usage)
    model, key = app[MODELS].label(exchange.turn.model), app[KEYS].name_of(exchange.owner)
    app[METRICS].tokens(usage, model, key)


def _made(builder: AnswerBuilder, batch: Sequence[TurnEvent]) -> list[WireEvent]:
    """What `builder` makes of `batch`."""
    if len(batch) == 1:
        return builder.handle(batch[0])
    return [made for event in batch for made in builder.handle(event)]


async def _made_in_steps(builder: AnswerBuilder, batch: Sequence[TurnEvent]) -> list[WireEvent]:
    """The same of a long one, with steps between which others are served."""
    events: list[WireEvent] = []
    for start in range(0, len(batch), MADE_AT_ONCE):
        if start:
            await asyncio.sleep(0)
        events += _made(builder, batch[start : start + MADE_AT_ONCE])
    return events


# Over HTTP


async def answer(request: web.Request, exchange: Exchange) -> web.StreamResponse:
    """Serves one exchange as a stream, if its client reads it while it is written, or as one JSON body, as its API
    writes them. Raises `ApiError`.
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
    """The sink of an answer that leaves as one JSON body: nothing leaves before its end, and no failure is one."""

    begun = False

    def open(self, builder: AnswerBuilder) -> AbstractAsyncContextManager[None]:
        builder.start()
        return no_connection()

    async def send(self, events: Sequence[WireEvent]) -> None:
        """The builder has them."""

    async def finish(self, events: Sequence[WireEvent], error: ApiError | None) -> None:
        if error is not None:
            raise error


@asynccontextmanager
async def no_connection() -> AsyncIterator[None]:
    """For a sink that writes to no client: a connection that fails there is one of ours, and a fault."""
    try:
        yield
    except ConnectionError as error:
        raise RuntimeError("a connection failed which is no client's") from error
