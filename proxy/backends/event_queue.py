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
        self._fresh = False  # the consumer had no chance yet to take what is too much
        self._ended = False
        self._error: BackendError | None = None
        # The consumer that sleeps. An `asyncio.Event` takes three times as long, and this is waited for once a delta.
        self._sleeper: asyncio.Future[None] | None = None

    @property
    def ended(self) -> bool:
        return self._ended

    @property
    def backlog(self) -> int:
        """What waits for the consumer, in the characters of `MAX_BACKLOG`."""
        return self._backlog

    def put(self, events: Sequence[BackendEvent]) -> bool:
        """False, and nothing is taken, when too much waits already. The size of what comes is no matter.

        What came in one read with what is too much has not waited: no consumer is quick enough for that.
        """
        if self._backlog > MAX_BACKLOG and not self._fresh:
            return False
        if events and not self._ended:
            self.used = True
            self._events.extend(events)
            fitted = self._backlog <= MAX_BACKLOG
            for event in events:
                self._backlog += EVENT_WEIGHT
                if isinstance(event, TextPiece | ReasoningPiece):
                    self._backlog += len(event.text)
            if fitted and self._backlog > MAX_BACKLOG:
                self._fresh = True
                asyncio.get_running_loop().call_soon(self._grow_old)
            self._wake()
        return True

    def _grow_old(self) -> None:
        self._fresh = False

    def end(self, error: BackendError | None = None) -> None:
        """Nothing comes any more. Only the first call counts."""
        if not self._ended:
            self._ended = True
            self._error = error
            self._wake()

    def _wake(self) -> None:
        if self._sleeper is not None and not self._sleeper.done():
            self._sleeper.set_result(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Sequence[BackendEvent]:
        while not self._events:
            if self._error is not None:
                raise self._error
            if self._ended:
                raise StopAsyncIteration
            self._sleeper = asyncio.get_running_loop().create_future()
            await self._sleeper
        batch, self._events, self._backlog = self._events, [], 0
        return batch
