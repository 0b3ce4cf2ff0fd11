"""What turns the events of a turn into an API's own: one builder for the stream and for the plain answer."""

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
