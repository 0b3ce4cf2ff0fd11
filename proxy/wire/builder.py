"""Builders turn the events of a turn into an API's own: one builder for the stream and for the plain answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ..contracts import TurnEvent

# A JSON object that leaves as one event.
WireEvent = dict[str, object]


class AnswerBuilder(Protocol):
    """Builds one answer. Send `start()` first and then what `handle` makes of each turn event."""

    id: str

    @property
    def body(self) -> Mapping[str, object]:
        """The answer as one JSON body; final after `TurnFinished` or `TurnFailed`."""

    def start(self) -> list[WireEvent]: ...

    def handle(self, event: TurnEvent) -> list[WireEvent]: ...

    def pulse(self) -> list[WireEvent]:
        """What shows in a long silence that the answer is still being made; nothing where a comment line will do."""


class WrappedBuilder:
    """Any `AnswerBuilder`, in front of which somebody listens: all that is left alone is passed on."""

    def __init__(self, builder: AnswerBuilder) -> None:
        self.id = builder.id
        self._builder = builder

    @property
    def body(self) -> Mapping[str, object]:
        return self._builder.body

    def start(self) -> list[WireEvent]:
        return self._builder.start()

    def handle(self, event: TurnEvent) -> list[WireEvent]:
        return self._builder.handle(event)

    def pulse(self) -> list[WireEvent]:
        return self._builder.pulse()
