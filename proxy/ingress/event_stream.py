"""One event stream to a client: opened late, kept alive, each piece in one write.

The head waits for the first batch, so that a backend that refuses the turn becomes an HTTP error; it
does not wait longer than `HEAD_WAIT`, because clients give up on servers that stay silent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import NoReturn

from aiohttp import web

from ..wire.sse import DONE, KEEP_ALIVE
from .state import REQUEST_LOG, WRITTEN

# Seconds until the head leaves without a first batch (clients expect a sign within about 2).
HEAD_WAIT = 2.0

# Seconds of silence after which a comment line is sent; clients and proxies in between cut at 30 and more.
HEARTBEAT = 10.0

# Seconds that a write may wait for its client to read.
WRITE_DEADLINE = 15.0

STREAM_HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
}

# Events that are made elsewhere: pieces of whole events that came together, as they come.
Subscription = AsyncIterator[list[bytes]]


class EventStream:
    """`write` pieces of whole events; run `keep_alive` beside it. `begun`: a head is leaving or has left.

    `pulse` makes what breaks a silence, which lasts `pause` seconds at most.
    """

    def __init__(
        self,
        request: web.Request,
        opening: Sequence[bytes],
        pulse: Callable[[], Sequence[bytes]] = lambda: [KEEP_ALIVE],
        pause: float | None = None,
    ) -> None:
        self._request = request
        self._opening = opening
        self._pulse = pulse
        self._pause = HEARTBEAT if pause is None else pause
        self._written = request.get(WRITTEN)
        self._lock = asyncio.Lock()
        self._written_at = 0.0
        self._writing = False
        self.begun = False
        self.response: web.StreamResponse | None = None

    async def _open(self) -> web.StreamResponse:
        """The prepared response, its head and opening events sent."""
        self.begun = True
        async with self._lock:
            if self.response is None:
                response = web.StreamResponse(headers=STREAM_HEADERS)
                await response.prepare(self._request)
                self.response = response
                self._written_at = asyncio.get_running_loop().time()
                await self._send(response, self._opening)
        return self.response

    async def write(self, pieces: Sequence[bytes]) -> None:
        response = self.response or await self._open()
        self._written_at = asyncio.get_running_loop().time()
        self._writing = True
        await self._send(response, pieces)
        self._writing = False

    async def _send(self, response: web.StreamResponse, pieces: Sequence[bytes]) -> None:
        for piece in pieces:
            await response.write(piece)
            if self._written is not None:
                self._written.append(piece)

    async def keep_alive(self) -> None:
        """Opens the stream when it is time, breaks each silence, and cuts off a client that has stopped reading.

        Runs until it is cancelled.
        """
        loop = asyncio.get_running_loop()
        await asyncio.sleep(HEAD_WAIT)
        await self._open()
        while True:
            quiet = loop.time() - self._written_at
            if not self._writing and quiet >= self._pause:
                try:
                    async with asyncio.timeout(WRITE_DEADLINE):
                        await self.write(self._pulse())
                except TimeoutError:
                    self._cut_off()
                quiet = 0.0
            if self._writing and quiet >= WRITE_DEADLINE:
                self._cut_off()
            await asyncio.sleep((WRITE_DEADLINE if self._writing else self._pause) - quiet)

    def _cut_off(self) -> NoReturn:
        if self._request.transport is not None:
            self._request.transport.abort()
        raise ConnectionResetError("the client does not read")


async def stream_subscription(request: web.Request, subscription: Subscription) -> web.StreamResponse:
    """An event stream of what a subscription brings, to its end. Who reads it may leave without ending anything."""
    log = request[REQUEST_LOG]
    stream = EventStream(request, ())
    try:
        await stream.write(())  # nothing can become an HTTP error any more: the head need not wait
        async with asyncio.TaskGroup() as group:
            pulse = group.create_task(stream.keep_alive(), name=f"keep alive {log.id}")
            async for pieces in subscription:
                log.saw_first_event()
                await stream.write([b"".join(pieces)])
            await stream.write([DONE])
            pulse.cancel()
    except* ConnectionError:
        log.client_gone = True
    return stream.response or web.Response(status=499)
