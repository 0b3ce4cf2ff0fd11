"""The way of a turn's events from the reader, who never waits, to the one consumer, who may."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Self

from ..contracts import BackendEvent, ReasoningPiece, TextPiece
from ..errors import BackendError

# What may wait for the consumer when more comes: characters of text, and for each event a little more.
MAX_BACKLOG = 2 * 2**20
# Characters. Two million events of one letter take a hundred times the memory of their text.
EVENT_WEIGHT = 32


class EventQueue:
    """Iterate it for batches: each is all that had arrived. An error comes after the events before it."""

    def __init__(self) -> None:
        self.used = False
        """Whether anything was ever put in: the consumer may have seen it."""
        self._events: list[BackendEvent] = []
        self._backlog = 0
        self._fresh = False  # the consumer had no chance yet to take what is here
        self._ended = False
        self._error: BackendError | None = None
        self._wake = asyncio.Event()

    @property
    def ended(self) -> bool:
        return self._ended

    @property
    def backlog(self) -> int:
        """What waits for the consumer, in the characters of `MAX_BACKLOG`."""
        return self._backlog

    def put(self, events: Sequence[BackendEvent]) -> bool:
        """False, and nothing is taken, when too much waits already. The size of what comes is no matter.

        What came in one read with what comes has not waited: no consumer is quick enough for that.
        """
        if self._backlog > MAX_BACKLOG and not self._fresh:
            return False
        if events and not self._ended:
            if not self._events:
                self._fresh = True
                asyncio.get_running_loop().call_soon(self._grow_old)
            self.used = True
            self._events.extend(events)
            self._backlog += sum(map(_weight, events))
            self._wake.set()
        return True

    def _grow_old(self) -> None:
        self._fresh = False

    def end(self, error: BackendError | None = None) -> None:
        """Nothing comes any more. Only the first call counts."""
        if not self._ended:
            self._ended = True
            self._error = error
            self._wake.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Sequence[BackendEvent]:
        while not self._events:
            if self._error is not None:
                raise self._error
            if self._ended:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()
        batch, self._events, self._backlog = self._events, [], 0
        return batch


def _weight(event: BackendEvent) -> int:
    return EVENT_WEIGHT + (len(event.text) if isinstance(event, TextPiece | ReasoningPiece) else 0)
