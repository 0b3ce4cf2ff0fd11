"""POST /v1/responses: a request through one turn to an event stream or a JSON body."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import structlog
from aiohttp import web

from ..contracts import TurnEvent, TurnFailed
from ..errors import ApiError
from ..turn import run_turn
from ..wire.responses import ResponsesBuilder
from ..wire.responses_request import parse_responses_request
from ..wire.sse import DONE, encode
from .replies import error_reply, json_reply
from .requests import read_json_body
from .state import BACKEND, REQUEST_LOG, TURN_OPTIONS
from .stream import EventStream

fault_log: structlog.typing.FilteringBoundLogger = structlog.get_logger("tagcall.turn")


async def create_response(request: web.Request) -> web.StreamResponse:
    """Serves one Response. Errors before the first event are HTTP errors, later ones `response.failed`."""
    body = await read_json_body(request)
    parsed = parse_responses_request(body)
    log = request[REQUEST_LOG]
    log.model = parsed.turn.model
    log.stream = parsed.stream
    builder = ResponsesBuilder(parsed)
    log.response = builder.id
    turn = run_turn(parsed.turn, request.app[BACKEND], request.app[TURN_OPTIONS], log.turn)
    async with aclosing(_ended(turn)) as events:
        if parsed.stream:
            return await _streamed(request, builder, events)
        return await _collected(builder, events)


async def _ended(turn: AsyncGenerator[list[TurnEvent], None]) -> AsyncGenerator[list[TurnEvent], None]:
    """The turn's batches. A fault of ours ends them as a failed turn does: no stream is left without its end."""
    async with aclosing(turn):
        try:
            async for batch in turn:
                yield batch
        except Exception:  # noqa: BLE001  # the last line of defence: logged with its trace, answered without it
            fault_log.exception("fault in a turn")
            yield [TurnFailed(ApiError("The server had an error while processing your request."))]


def _failure(batch: list[TurnEvent]) -> ApiError | None:
    """The error of a turn that ends with this batch."""
    return batch[-1].error if isinstance(batch[-1], TurnFailed) else None


async def _collected(builder: ResponsesBuilder, events: AsyncGenerator[list[TurnEvent], None]) -> web.Response:
    builder.start()
    async for batch in events:
        if error := _failure(batch):
            return error_reply(error)
        for event in batch:
            builder.handle(event)
    return json_reply(builder.response)


async def _streamed(
    request: web.Request, builder: ResponsesBuilder, events: AsyncGenerator[list[TurnEvent], None]
) -> web.StreamResponse:
    log = request[REQUEST_LOG]
    stream = EventStream(request, encode(builder.start()))
    try:
        async with asyncio.TaskGroup() as group:
            pulse = group.create_task(stream.keep_alive(), name=f"keep alive {builder.id}")
            async for batch in events:
                log.failed = _failure(batch)
                if log.failed and stream.response is None and len(batch) == 1:
                    pulse.cancel()
                    return error_reply(log.failed)
                log.saw_first_event()
                wire = [wire for event in batch for wire in builder.handle(event)]
                await stream.write(encode(wire))
            await stream.write(DONE)
            pulse.cancel()
    except* ConnectionError:
        log.client_gone = True
    return stream.response or web.Response(status=499)
