"""POST /v1/responses: a request through one turn to an event stream or a JSON body."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass

import structlog
from aiohttp import web

from ..contracts import TurnEvent, TurnFailed, TurnFinished
from ..errors import ApiError
from ..turn import run_turn
from ..wire.json_body import parse_json_object
from ..wire.responses import ResponsesBuilder, WireEvent
from ..wire.responses_request import ResponsesRequest, parse_responses_request
from ..wire.sse import DONE, encode
from .history import find_history, keep
from .replies import FAULT, error_reply, json_reply
from .requests import read_json_body
from .state import BACKEND, REQUEST_LOG, TURN_OPTIONS
from .stream import EventStream

fault_log: structlog.typing.FilteringBoundLogger = structlog.get_logger("tagcall.turn")


@dataclass(frozen=True, slots=True)
class Built:
    """Wire events that leave together. `alone`: the `error` is all there is of the turn's answer in them."""

    wire: Sequence[WireEvent]
    error: ApiError | None = None
    alone: bool = False


async def create_response(request: web.Request) -> web.StreamResponse:
    """Serves one Response. Errors before the first event are HTTP errors, later ones `response.failed`."""
    body = parse_json_object(await read_json_body(request))
    parsed = parse_responses_request(body, await find_history(request, body))
    log = request[REQUEST_LOG]
    log.model = parsed.turn.model
    log.stream = parsed.stream
    builder = ResponsesBuilder(parsed)
    log.response = builder.id
    turn = run_turn(parsed.turn, request.app[BACKEND], request.app[TURN_OPTIONS], log.turn)
    async with aclosing(turn), aclosing(_built(request, parsed, builder, turn)) as batches:
        if parsed.stream:
            return await _streamed(request, builder, batches)
        return await _collected(request, builder, batches)


async def _built(
    request: web.Request,
    parsed: ResponsesRequest,
    builder: ResponsesBuilder,
    events: AsyncGenerator[list[TurnEvent], None],
) -> AsyncGenerator[Built, None]:
    """Each batch as the wire events that leave for it. What is to be kept is kept before its last event leaves."""
    async for batch in events:
        wire = [wire for event in batch for wire in builder.handle(event)]
        match batch[-1]:
            case TurnFinished():
                await keep(request, parsed, builder)
                yield Built(wire)
            case TurnFailed(error):
                yield Built(wire, error, alone=len(batch) == 1)
            case _:
                yield Built(wire)


async def _collected(
    request: web.Request, builder: ResponsesBuilder, batches: AsyncGenerator[Built, None]
) -> web.Response:
    builder.start()
    async for batch in batches:
        if batch.error:
            request[REQUEST_LOG].failed = batch.error
            return error_reply(batch.error)
        request[REQUEST_LOG].saw_first_event()
    return json_reply(builder.response)


async def _streamed(
    request: web.Request, builder: ResponsesBuilder, batches: AsyncGenerator[Built, None]
) -> web.StreamResponse:
    """Writes the stream to its end, whatever happens: no client is left without a terminal event."""
    log = request[REQUEST_LOG]
    stream = EventStream(request, encode(builder.start()))
    try:
        async with asyncio.TaskGroup() as group:
            pulse = group.create_task(stream.keep_alive(), name=f"keep alive {builder.id}")
            async for batch in batches:
                log.failed = batch.error
                if batch.error and batch.alone and stream.response is None:
                    pulse.cancel()
                    return error_reply(batch.error)
                log.saw_first_event()
                await stream.write(encode(batch.wire))
            await stream.write(DONE)
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
            await stream.write(encode(builder.handle(TurnFailed(FAULT))) + DONE)
    return stream.response
