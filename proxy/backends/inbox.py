"""The way of a turn's events from the reader, who never waits, to the one consumer, who may."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Self

from ..contracts import BackendEvent, ReasoningPiece, TextPiece
from ..errors import BackendError

MAX_BACKLOG = 2 * 2**20
"""Characters of text that may wait for the consumer. A turn's whole answer is rarely a tenth of it."""


class Inbox:
    """Iterate it for batches: each is all that had arrived. An error comes after the events before it."""

    def __init__(self) -> None:
        self.used = False
        """Whether anything was ever put in: the consumer may have seen it."""
        self._events: list[BackendEvent] = []
        self._backlog = 0
        self._ended = False
        self._error: BackendError | None = None
        self._wake = asyncio.Event()

    @property
    def ended(self) -> bool:
        return self._ended

    def put(self, events: Sequence[BackendEvent]) -> bool:
        """False when more is waiting than may; the events are taken all the same."""
        if events and not self._ended:
            self.used = True
            self._events.extend(events)
            self._backlog += sum(len(event.text) for event in events if isinstance(event, TextPiece | ReasoningPiece))
            self._wake.set()
        return self._backlog <= MAX_BACKLOG

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
