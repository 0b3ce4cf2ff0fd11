"""How late the event loop is. Whatever delays it delays every client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

import structlog
from aiohttp import web
from structlog.typing import FilteringBoundLogger

# Seconds between two looks.
INTERVAL = 0.1
# Seconds of lag that somebody should hear of, and after such a word the least to the next one.
TOO_LATE = 0.25
SILENCE = 10.0

log: FilteringBoundLogger = structlog.get_logger(__name__)


class Histogram(Protocol):
    def observe(self, amount: float, /) -> None: ...


class LoopLag:
    """Looks at the loop's clock as long as the application runs, and tells `histogram` in seconds."""

    def __init__(self, histogram: Histogram) -> None:
        self._histogram = histogram
        self._warned = -SILENCE

    async def run(self, _: web.Application) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(self._watch(), name="loop lag")
            yield
            watch.cancel()

    async def _watch(self) -> None:
        now = asyncio.get_running_loop().time
        while True:
            due = now() + INTERVAL
            await asyncio.sleep(INTERVAL)
            self.late(max(0.0, now() - due), now())

    def late(self, seconds: float, now: float) -> None:
        """The loop came so much too late to something, at `now` in its time."""
        self._histogram.observe(seconds)
        if seconds > TOO_LATE and now - self._warned >= SILENCE:
            self._warned = now
            log.warning("loop_was_held_up", seconds=round(seconds, 2))
