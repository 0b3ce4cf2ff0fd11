"""An event stream of events that are made elsewhere; who reads it may leave without ending anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from aiohttp import web

from ..wire.sse import DONE
from .event_stream import EventStream
from .state import REQUEST_LOG


async def follow(request: web.Request, batches: AsyncIterator[list[bytes]]) -> web.StreamResponse:
    """Writes `batches` of whole events as they come, to their end."""
    log = request[REQUEST_LOG]
    stream = EventStream(request, ())
    try:
        await stream.write(())  # nothing can become an HTTP error any more: the head need not wait
        async with asyncio.TaskGroup() as group:
            pulse = group.create_task(stream.keep_alive(), name=f"keep alive {log.id}")
            async for pieces in batches:
                log.saw_first_event()
                await stream.write([b"".join(pieces)])
            await stream.write([DONE])
            pulse.cancel()
    except* ConnectionError:
        log.client_gone = True
    return stream.response or web.Response(status=499)
