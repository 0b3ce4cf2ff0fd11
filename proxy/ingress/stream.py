"""One event stream to a client: opened late, kept alive, each piece in one write.

The head waits for the first batch, so that a backend that refuses the turn becomes an HTTP error; it
does not wait longer than `HEAD_WAIT`, because clients give up on servers that stay silent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aiohttp import web

from ..wire.sse import KEEP_ALIVE

# Seconds until the head leaves without a first batch (clients expect a sign within about 2).
HEAD_WAIT = 2.0

# Seconds of silence after which a comment line is sent; clients and proxies in between cut at 30 and more.
HEARTBEAT = 12.0

HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
}


class EventStream:
    """`write` pieces of whole events; run `keep_alive` beside it."""

    def __init__(self, request: web.Request, opening: Sequence[bytes]) -> None:
        self._request = request
        self._opening = opening
        self._lock = asyncio.Lock()
        self._written_at = 0.0
        self.response: web.StreamResponse | None = None

    async def _open(self) -> web.StreamResponse:
        """The prepared response, its head and opening events sent."""
        async with self._lock:
            if self.response is None:
                response = web.StreamResponse(headers=HEADERS)
                await response.prepare(self._request)
                self.response = response
                for piece in self._opening:
                    await response.write(piece)
        return self.response

    async def write(self, pieces: Sequence[bytes]) -> None:
        response = self.response or await self._open()
        self._written_at = asyncio.get_running_loop().time()
        for piece in pieces:
            await response.write(piece)

    async def keep_alive(self) -> None:
        """Opens the stream when it is time, then breaks each silence. Runs until it is cancelled."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(HEAD_WAIT)
        await self._open()
        while True:
            quiet = loop.time() - self._written_at
            if quiet >= HEARTBEAT:
                await self.write([KEEP_ALIVE])
                quiet = 0.0
            await asyncio.sleep(HEARTBEAT - quiet)
