"""One background response of this process, and the sink that its turn is delivered to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial

from msgspec import Struct

from ...contracts import Run, StoredResponse, TurnFailed, TurnFinished, Usage
from ...errors import ApiError
from ...wire.builder import AnswerBuilder, WireEvent
from ...wire.sse import encode_typed
from ..delivery import Cancellation, no_connection
from ..event_stream import Subscription
from ..history import Draft

# The events before a turn says anything: a run that is begun anew begins with the same ones.
OPENING = 3

# Bytes of the events that are kept of one while it is made: many times those of its text, which comes in small pieces.
MAX_EVENT_BYTES = 64 << 20

# What becomes of a response when its server stops.
STOPPED = ApiError("The server was stopped before this response was finished.", status=503)


class Job:
    """One background response of this process. `events` are its stream so far: a piece for each sequence number.

    `over`: nothing more comes, and its end may be told, for it is stored; not so when it is `lost`, another's or
    nobody's. `leased`: its lease is in the store. `told`: another process knows that somebody hears of its output here.
    """

    def __init__(self, draft: Draft, run: Run, *, leased: bool = False) -> None:
        self.draft = draft
        self.run = run
        self.cancellation = Cancellation()
        self.events: list[bytes] = []
        self._bytes = 0
        self.leased = leased
        self.over = self.lost = self.told = self.ending = False
        self._begun: StoredResponse | None = None
        self._news = asyncio.Event()

    def tell(self, pieces: Sequence[bytes], *, over: bool = False) -> None:
        """Adds events; `over`: these are the last."""
        self.events += pieces
        self._bytes += sum(map(len, pieces))
        if self._bytes > MAX_EVENT_BYTES:
            self._cut()
        self.over = self.over or over
        self._news.set()
        self._news = asyncio.Event()

    def begin(self) -> WireEvent:
        """The work begins; what is seen of the response before its end is this. Returns it as it was queued."""
        builder = self.draft.builder
        opening = builder.start()
        queued = builder.response
        self.tell(encoded([*opening, *builder.begin()]))
        self._begun = self.draft.stored()
        return queued

    def cancel(self) -> None:
        """Its client wants no more of it."""
        self.cancellation.request(self.draft.builder.cancel)

    def _cut(self) -> None:
        """It has become too long, however little of it came at a time."""
        end = TurnFinished(Usage(), "max_output_tokens")
        self.cancellation.request(partial(self.draft.builder.handle, end))

    def stop(self) -> None:
        self.cancellation.request(partial(self.draft.builder.handle, TurnFailed(STOPPED)))

    def lose(self) -> None:
        """It is this process's no more."""
        self.lost = True
        self.cancel()
        self.tell((), over=True)

    def stored(self) -> StoredResponse:
        """The response as it may be seen now."""
        return self.draft.stored() if self.over or self._begun is None else self._begun

    async def subscribe(self, after: int) -> Subscription:
        """The events behind sequence number `after`, those that are there and those to come, to the end."""
        told = after + 1
        while True:
            if pieces := self.events[told:]:
                told += len(pieces)
                yield pieces
            elif self.over:
                return
            else:
                await self._news.wait()

    async def wait_over(self) -> None:
        while not self.over:
            await self._news.wait()


class JobSink(Struct, frozen=True):
    """The sink of a background response: it was begun when it was queued, and has no client that could leave.

    Its subscribers hear of its last events once `store` has them.
    """

    job: Job
    tell: Callable[[Job, Sequence[bytes]], None]
    store: Callable[[Job, Sequence[bytes]], Awaitable[None]]

    @property
    def begun(self) -> bool:
        return True

    def open(self, builder: AnswerBuilder) -> AbstractAsyncContextManager[None]:
        return no_connection()

    async def send(self, events: Sequence[WireEvent]) -> None:
        self.tell(self.job, encoded(events))

    def finish(self, events: Sequence[WireEvent], error: ApiError | None) -> Awaitable[None]:
        return self.store(self.job, encoded(events))


def encoded(wire: Sequence[WireEvent]) -> list[bytes]:
    return [piece for event in wire for piece in encode_typed([event])]
