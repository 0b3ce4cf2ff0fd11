"""POST /v1/responses: a request through one turn to an event stream or a JSON body."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
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
from .replies import error_reply, json_reply
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
    async with aclosing(_ended(turn)) as events:
        built = _built(request, parsed, builder, events)
        async with aclosing(built):
            if parsed.stream:
                return await _streamed(request, builder, built)
            return await _collected(request, builder, built)


async def _ended(turn: AsyncGenerator[list[TurnEvent], None]) -> AsyncGenerator[list[TurnEvent], None]:
    """The turn's batches. A fault of ours ends them as a failed turn does: no stream is left without its end."""
    async with aclosing(turn):
        try:
            async for batch in turn:
                yield batch
        except Exception:  # noqa: BLE001  # the last line of defence: logged with its trace, answered without it
            fault_log.exception("fault in a turn")
            yield [TurnFailed(ApiError("The server had an error while processing your request."))]


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
    return stream.response or web.Response(status=499)
