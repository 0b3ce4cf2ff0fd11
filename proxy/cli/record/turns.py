"""The turns of a request, heard where every backend's events pass."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from contextvars import ContextVar

from msgspec import Struct, field

from ...backends.wrapped import WrappedBackend
from ...contracts import BackendEvent, Prompt, TextBackend
from ...ingress.inspect import HeardTurn


class RecordedRequest(Struct):
    """One request while it is served. `turns` are in the order in which they began."""

    turns: list[HeardTurn] = field(default_factory=list)


# The request that is being served by this task and those that it starts.
_CURRENT: ContextVar[RecordedRequest | None] = ContextVar("recorded_request", default=None)


@contextmanager
def recorded_request() -> Iterator[RecordedRequest]:
    """What is served within belongs to the request that this gives."""
    request = RecordedRequest()
    token = _CURRENT.set(request)
    try:
        yield request
    finally:
        _CURRENT.reset(token)


class RecordedBackend(WrappedBackend):
    """Any `TextBackend`; what it says is noted with the request that is being served."""

    def __init__(self, backend: TextBackend) -> None:
        super().__init__(backend)
        self._stopping = False

    async def __aexit__(self, *exc: object) -> None:
        self._stopping = True
        await super().__aexit__(*exc)

    @asynccontextmanager
    async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
        turn = HeardTurn(prompt, time.monotonic())
        if (request := _CURRENT.get()) is not None:
            request.turns.append(turn)
        try:
            with turn.until_over():
                async with self._backend.stream(prompt) as batches, aclosing(_heard(batches, turn)) as heard:
                    yield heard
        finally:
            turn.stopped = self._stopping


async def _heard(
    batches: AsyncIterator[Sequence[BackendEvent]], turn: HeardTurn
) -> AsyncGenerator[Sequence[BackendEvent], None]:
    async for batch in batches:
        now = time.monotonic()
        turn.told += [(now, event) for event in batch]
        yield batch
    turn.read_to_its_end = True
