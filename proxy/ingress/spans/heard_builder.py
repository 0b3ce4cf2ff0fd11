"""A builder that is listened to, for the span of its turn."""

from __future__ import annotations

import time
from collections.abc import Mapping

from ...contracts import TurnEvent, TurnFailed, TurnFinished
from ...wire.builder import AnswerBuilder, WireEvent


class HeardBuilder:
    """Any `AnswerBuilder`. `events` are those of the turn, where they are kept; `first` and `end` are None as long as
    there is none. `first` is on the monotonic clock.
    """

    def __init__(self, builder: AnswerBuilder, *, keeps: bool) -> None:
        self.id = builder.id
        self.events: list[TurnEvent] = []
        self.first: float | None = None
        self.end: TurnFinished | TurnFailed | None = None
        self._builder = builder
        self._keeps = keeps

    @property
    def body(self) -> Mapping[str, object]:
        return self._builder.body

    def start(self) -> list[WireEvent]:
        return self._builder.start()

    def handle(self, event: TurnEvent) -> list[WireEvent]:
        if isinstance(event, TurnFinished | TurnFailed):
            self.end = event
        elif self.first is None:
            self.first = time.monotonic()
        if self._keeps:
            self.events.append(event)
        return self._builder.handle(event)

    def pulse(self) -> list[WireEvent]:
        return self._builder.pulse()
