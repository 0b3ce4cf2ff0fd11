"""How long to wait for a server that is answering, with one timer for its whole answer.

A timeout around each read takes a quarter of the time of a delta.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import aiohttp


class Patience:
    """Wait for each `read` of `content`. It raises `TimeoutError` after `seconds` of silence, and when `total` seconds
    are over, at `last` in the loop's time. Set `over` to a moment before that, and it is waited no longer than until
    then. `close` it.
    """

    def __init__(self, content: aiohttp.StreamReader, seconds: float, total: float) -> None:
        self._content = content
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self.last = self.over = self._loop.time() + total
        self._since: float | None = None
        self._timer = self._loop.call_later(seconds, self._look)

    def shorten(self, seconds: float) -> None:
        """From now on it is less."""
        if seconds != self._seconds:
            self._seconds = seconds
            self._look_at(self._loop.time() + seconds)

    async def read(self, reading: Awaitable[bytes]) -> bytes:
        self._since = now = self._loop.time()
        if self.over < self.last:
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
        if self._since is None:
            end = min(self.last, now + self._seconds)
        else:
            end = min(self.over, self._since + self._seconds)
        if end > now:
            self._look_at(end)
        else:
            self._content.set_exception(TimeoutError())

    def close(self) -> None:
        self._timer.cancel()
