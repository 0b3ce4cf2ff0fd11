"""A backend that is listened to, for one turn."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Self

from ...backends.wrapped import WrappedBackend
from ...contracts import BackendEvent, Prompt, TextBackend
from ...errors import BackendError
from .record import HeardTurn, TurnRecord


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
        try:
            async with self._backend.stream(prompt) as batches, aclosing(self._heard(batches, turn)) as heard:
                yield heard
        except BackendError as error:
            turn.error = error
            raise
        finally:
            turn.over = time.monotonic()

    async def _heard(
        self, batches: AsyncIterator[Sequence[BackendEvent]], turn: HeardTurn
    ) -> AsyncGenerator[Sequence[BackendEvent], None]:
        async for batch in batches:
            if self._record.words is not None:
                self._record.heard(turn, batch, time.monotonic())
            yield batch
        turn.read_to_its_end = True
