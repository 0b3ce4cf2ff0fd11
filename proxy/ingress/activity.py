"""Counts the requests being served, so that a stopping server knows when it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Activity:
    def __init__(self) -> None:
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def begin(self) -> None:
        self._running += 1
        self._idle.clear()

    def end(self) -> None:
        self._running -= 1
        if not self._running:
            self._idle.set()

    @contextmanager
    def working(self) -> Iterator[None]:
        self.begin()
        try:
            yield
        finally:
            self.end()

    @contextmanager
    def resting(self) -> Iterator[None]:
        """For a request that waits for its client: nobody needs to wait for it."""
        self.end()
        try:
            yield
        finally:
            self.begin()

    async def wait_idle(self, patience: float) -> bool:
        """Whether nothing was running any more within `patience` seconds."""
        try:
            async with asyncio.timeout(patience):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True
