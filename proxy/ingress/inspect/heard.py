"""A backend and a builder that report one turn to a listener."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Self

from msgspec.structs import replace

from ...backends.wrapped import WrappedBackend
from ...contracts import BackendEvent, Prompt, TextBackend
from ...wire.builder import AnswerBuilder, WireEvent, WrappedBuilder
from .record import TurnRecord
from .turn_transcript import HeardTurn


class OverheardBackend(WrappedBackend):
    """Any `TextBackend` that is running; what it is shown and says is noted in a record."""

    def __init__(self, backend: TextBackend, record: TurnRecord) -> None:
        super().__init__(backend)
        self._record = record

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        pass

    @asynccontextmanager
    async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
        turn = self._record.asked(prompt, time.monotonic())
        if turn is None:  # its words have been dropped
            async with self._backend.stream(prompt) as batches:
                yield batches
            return
        prompt = replace(prompt, listener=partial(self._record.heard_line, turn))
        with turn.until_over():
            async with self._backend.stream(prompt) as batches, aclosing(self._heard(batches, turn)) as heard:
                yield heard

    async def _heard(
        self, batches: AsyncIterator[Sequence[BackendEvent]], turn: HeardTurn
    ) -> AsyncGenerator[Sequence[BackendEvent], None]:
        async for batch in batches:
            self._record.heard(turn, batch, time.monotonic())
            yield batch
        turn.read_to_its_end = True


class OverheardBuilder(WrappedBuilder):
    """Any `AnswerBuilder`; how the answer opens is noted in a record. What follows is noted as it leaves."""

    def __init__(self, builder: AnswerBuilder, record: TurnRecord) -> None:
        super().__init__(builder)
        self._record = record

    def start(self) -> list[WireEvent]:
        events = super().start()
        self._record.left(events, time.monotonic())
        return events
