"""A door for a few at a time, with a short queue before it: first come, first served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from .errors import RpcBusyError

MAX_IN_FLIGHT = 32
"""Requests. A real app-server refuses the thousandth and goes silent under more."""
MAX_WAITING = 256
"""Requests that wait for one of those places; one takes a few milliseconds."""
MAX_WAIT = 10.0
"""Seconds that a request waits for its place."""


class Gate:
    def __init__(self, places: int = MAX_IN_FLIGHT, queue: int = MAX_WAITING, patience: float = MAX_WAIT) -> None:
        self._places = asyncio.Semaphore(places)
        self._queue = queue
        self._patience = patience
        self._waiting = 0

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        """Holds a place. Raises `RpcBusyError` when the queue is full or does not move."""
        if self._waiting >= self._queue:
            raise RpcBusyError(f"{self._waiting} requests wait already")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._patience):
                await self._places.acquire()
        except TimeoutError:
            raise RpcBusyError(f"no place became free within {self._patience:g} s") from None
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._places.release()
