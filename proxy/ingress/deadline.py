"""A deadline that is set and lifted with each request, without a new timer each time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Deadline:
    """At most one at a time. Its timer goes on when it is lifted: the next one is nearly always later, and then the
    timer looks again at that.
    """

    def __init__(self) -> None:
        self._at = 0.0
        self._missed: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_set(self) -> bool:
        """Whether it was set and not lifted. It may have been missed."""
        return self._missed is not None

    def set(self, seconds: float, missed: Callable[[], None]) -> None:
        """Calls `missed` in so many seconds, unless it is lifted before."""
        loop = asyncio.get_running_loop()
        at = loop.time() + seconds
        if self._timer is not None and self._timer.when() > at:
            self.end()
        self._at, self._missed = at, missed
        if self._timer is None:
            self._timer = loop.call_at(self._at, self._look)

    def lift(self) -> None:
        self._missed = None

    def end(self) -> None:
        """Lifts it, and takes its timer away."""
        self.lift()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        loop, self._timer = asyncio.get_running_loop(), None
        if self._missed is None:
            return
        if loop.time() < self._at:
            self._timer = loop.call_at(self._at, self._look)
        else:
            self._missed()
