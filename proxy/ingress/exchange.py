"""One exchange: a request that was read, through one turn, to an event stream or a JSON body.

Every API that answers with a turn comes through here; what differs between them is an `Exchange`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace

import structlog
from aiohttp import web

from ..contracts import TurnFailed, TurnFinished, TurnRequest
from ..errors import ApiError
from ..ids import MintId, mint_id
from ..turn import TurnReport, run_turn
from ..wire.builder import AnswerBuilder, WireEvent
from ..wire.sse import DONE, KEEP_ALIVE, Encode
from .bodies import error_reply, fault, json_reply
from .event_stream import EventStream
from .metrics import METRICS
from .state import BACKEND, MODELS, REQUEST_LOG, TURN_OPTIONS

FAULT = fault()

fault_log: structlog.typing.FilteringBoundLogger = structlog.get_logger("tagcall.turn")


async def _nothing() -> None:
    pass


def _as_it_is(error: ApiError) -> ApiError:
    return error


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a request asks of the turn, and who makes its answer.

    `keep` is awaited once the turn is finished, before the last event leaves. `mint` makes the ids of its calls.
    `pause` is how many seconds its stream may be silent, when its client wants another limit than ours. `told` makes
    of an error what its API says there, when that is not what the Responses API says.
    """

    turn: TurnRequest
    stream: bool
    builder: AnswerBuilder
    encode: Encode
    keep: Callable[[], Awaitable[None]] = _nothing
    mint: MintId = mint_id
    pause: float | None = None
    told: Callable[[ApiError], ApiError] = _as_it_is


@dataclass(frozen=True, slots=True)
class Built:
    """Wire events that belong together. `alone`: the `error` is all there is of the turn's answer in them."""

    wire: Sequence[WireEvent]
    error: ApiError | None = None
    alone: bool = False


async def answer(request: web.Request, exchange: Exchange) -> web.StreamResponse:
    """Serves one exchange. Errors before the first event are HTTP errors, later ones the builder's last event."""
    log = request[REQUEST_LOG]
    log.model = exchange.turn.model
    log.stream = exchange.stream
    log.response = exchange.builder.id
    async with aclosing(built(request.app, exchange, log.turn)) as batches:
        if exchange.stream:
            return await _streamed(request, exchange, batches)
        return await _collected(request, exchange, batches)


async def built(app: web.Application, exchange: Exchange, report: TurnReport) -> AsyncGenerator[Built, None]:
    """The turn's batches as the wire events that leave for them. What is to be kept is kept before the last leaves."""
    wanted = replace(exchange.turn, model=app[MODELS].behind(exchange.turn.model))
    turn = run_turn(wanted, app[BACKEND], app[TURN_OPTIONS], report, mint=exchange.mint)
    with app[METRICS].turn(report) as clock:
        async with aclosing(turn):
            async for batch in turn:
                clock.saw(batch)
                if isinstance(end := batch[-1], TurnFailed):
                    batch[-1] = TurnFailed(exchange.told(end.error))
                wire = [wire for event in batch for wire in exchange.builder.handle(event)]
                match batch[-1]:
                    case TurnFinished():
                        await exchange.keep()
                        yield Built(wire)
                    case TurnFailed(error):
                        yield Built(wire, error, alone=len(batch) == 1)
                    case _:
                        yield Built(wire)


async def _collected(request: web.Request, exchange: Exchange, batches: AsyncGenerator[Built, None]) -> web.Response:
    exchange.builder.start()
    async for batch in batches:
        if batch.error:
            request[REQUEST_LOG].failed = batch.error
            return error_reply(batch.error)
        request[REQUEST_LOG].saw_first_event()
    return json_reply(exchange.builder.body)


async def _streamed(
    request: web.Request, exchange: Exchange, batches: AsyncGenerator[Built, None]
) -> web.StreamResponse:
    """Writes the stream to its end, whatever happens: no client is left without a terminal event."""
    log, builder, encode = request[REQUEST_LOG], exchange.builder, exchange.encode
    stream = EventStream(
        request, encode(builder.start()), lambda: encode(builder.pulse()) or [KEEP_ALIVE], exchange.pause
    )
    try:
        async with asyncio.TaskGroup() as group:
            pulse = group.create_task(stream.keep_alive(), name=f"keep alive {builder.id}")
            async for batch in batches:
                log.failed = batch.error
                if batch.error and batch.alone and not stream.begun:
                    pulse.cancel()
                    return error_reply(batch.error)
                log.saw_first_event()
                await stream.write(encode(batch.wire))
            log.whole = True  # there are clients that hang up at `[DONE]`
            await stream.write([DONE])
            pulse.cancel()
    except* ConnectionError:
        log.client_gone = True
    except* Exception:  # noqa: BLE001  # a fault of ours: logged with its trace, told without it
        fault_log.exception("fault in a stream", id=log.id)
        log.failed = FAULT
    if stream.response is None:
        return web.Response(status=499) if log.client_gone else error_reply(FAULT)
    if log.failed is FAULT:
        with suppress(ConnectionError):
            await stream.write([*encode(builder.handle(TurnFailed(FAULT))), DONE])
    return stream.response
