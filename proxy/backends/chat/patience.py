"""How long a server that answers is waited for, with one timer for all of its answer.

A timeout around each read takes a quarter of the time of a delta.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from math import inf

import aiohttp


class Patience:
    """Wait for each `read` of `content`: the wait ends in `TimeoutError` after `seconds` of silence, and at the moment
    `over` of the loop's time, if there is one. `close` it.
    """

    def __init__(self, content: aiohttp.StreamReader, seconds: float) -> None:
        self.over = inf
        self._content = content
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._since: float | None = None
        self._timer = self._loop.call_later(seconds, self._look)

    def shorten(self, seconds: float) -> None:
        """From now on it is less."""
        if seconds != self._seconds:
            self._seconds = seconds
            self._look_at(self._loop.time() + seconds)

    async def read(self, reading: Awaitable[bytes]) -> bytes:
        self._since = now = self._loop.time()
        if self.over < inf:
            self._look_at(min(self.over, now + self._seconds))
        try:
            return await reading
        finally:
            self._since = None

    def _look_at(self, moment: float) -> None:
        self._timer.cancel()
        self._timer = self._loop.call_at(moment, self._look)

    def _look(self) -> None:
        now = self._loop.time()
        end = now + self._seconds if self._since is None else min(self.over, self._since + self._seconds)
        if end > now:
            self._look_at(end)
        else:
            self._content.set_exception(TimeoutError())

    def close(self) -> None:
        self._timer.cancel()
