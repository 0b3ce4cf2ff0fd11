"""The queue of a turn's events, from the reader, which never waits, to the one consumer, which may."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Self

from ..contracts import BackendEvent, ReasoningPiece, TextPiece
from ..errors import BackendError

# What may wait for the consumer when more comes: characters of text, and for each event a little more.
MAX_BACKLOG = 2 * 2**20
# Characters. Two million events of one letter take a hundred times the memory of their text.
EVENT_WEIGHT = 32

_PIECES = (TextPiece, ReasoningPiece)


class _Sleep(asyncio.Future[None]):
    """Of one task, which goes on where it is woken. That of a plain future goes on in the loop's next turn, and such a
    turn takes a sixth of the time of a delta.
    """

    _wakes: tuple[Callable[[_Sleep], object], Context | None] | None = None

    def add_done_callback(self, fn: Callable[[_Sleep], object], /, *, context: Context | None = None) -> None:
        super().add_done_callback(fn, context=context)
        self._wakes = fn, context

    def end(self) -> None:
        """To be called in no task."""
        wake, context = self._wakes or (None, None)
        if wake is None or context is None:
            self.set_result(None)
            return
        self.remove_done_callback(wake)
        self.set_result(None)
        context.run(wake, self)


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
        self._sleep: _Sleep | None = None

    @property
    def ended(self) -> bool:
        return self._ended

    @property
    def backlog(self) -> int:
        """What waits for the consumer, in the characters of `MAX_BACKLOG`."""
        return self._backlog

    def put(self, events: Sequence[BackendEvent]) -> bool:
        """False, and nothing is taken, when too much waits already. The size of what comes is no matter.

        The consumer hears of it when it is handed over: what was read together comes in one batch.
        What came in one read with what is too much has not waited: no consumer is quick enough for that.
        """
        if self._backlog > MAX_BACKLOG and not self._fresh:
            return False
        if events and not self._ended:
            self.used = True
            self._events += events
            fitted = self._backlog <= MAX_BACKLOG
            for event in events:
                self._backlog += EVENT_WEIGHT + len(event.text) if isinstance(event, _PIECES) else EVENT_WEIGHT
            if self._backlog > MAX_BACKLOG and fitted:
                self._fresh = True
                asyncio.get_running_loop().call_soon(self._grow_old)
        return True

    def hand_over(self, *, at_once: bool = False) -> None:
        """Lets the consumer have what was put. It goes on `at_once` only where no other task runs."""
        sleep = self._sleep
        if sleep is None or sleep.done() or not self._events:
            return
        if at_once:
            sleep.end()
        else:
            sleep.set_result(None)

    def _grow_old(self) -> None:
        self._fresh = False

    def end(self, error: BackendError | None = None) -> None:
        """Nothing comes any more. Only the first call counts."""
        if not self._ended:
            self._ended = True
            self._error = error
            if self._sleep is not None and not self._sleep.done():
                self._sleep.set_result(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Sequence[BackendEvent]:
        while not self._events:
            if self._error is not None:
                raise self._error
            if self._ended:
                raise StopAsyncIteration
            self._sleep = _Sleep()
            await self._sleep
        batch, self._events, self._backlog = self._events, [], 0
        return batch
