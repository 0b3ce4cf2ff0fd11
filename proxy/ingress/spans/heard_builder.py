"""A builder that reports its turn to a span."""

from __future__ import annotations

import time

from ...contracts import TurnEvent, TurnFailed, TurnFinished
from ...wire.builder import AnswerBuilder, WireEvent, WrappedBuilder


class HeardBuilder(WrappedBuilder):
    """Any `AnswerBuilder`. `events` are those of the turn, where they are kept; `first` and `end` are None as long as
    there is none. `first` is on the monotonic clock.
    """

    def __init__(self, builder: AnswerBuilder, *, keeps: bool) -> None:
        super().__init__(builder)
        self.events: list[TurnEvent] = []
        self.first: float | None = None
        self.end: TurnFinished | TurnFailed | None = None
        self._keeps = keeps

    def handle(self, event: TurnEvent) -> list[WireEvent]:
        if isinstance(event, TurnFinished | TurnFailed):
            self.end = event
        elif self.first is None:
            self.first = time.monotonic()
        if self._keeps:
            self.events.append(event)
        return super().handle(event)
