"""Background responses: turns that go on without their client, and subscriptions to their events.

    queued -> in_progress -> completed | incomplete | failed     the turn ended
                          -> cancelled                           its client asked for it
                          -> failed                              the server stopped
    in_progress, and its lease is over: its process has gone     whoever finds it makes it failed

A job holds a lease in the store and renews it. Without one the result is not written: another process
has cancelled, deleted or given up the response meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

import structlog
from aiohttp import web
from structlog.typing import FilteringBoundLogger

from ..contracts import ResponseStore, StoredResponse, TurnFailed
from ..errors import ApiError, RequestError, StoreError
from ..wire.builder import AnswerBuilder, WireEvent
from ..wire.sse import encode_typed
from .delivery import Cancellation, Exchange, deliver, no_connection
from .event_stream import Subscription
from .history import Draft
from .metrics import METRICS
from .request_log import RequestLog
from .state import ACTIVITY, CONVERSATION_LOCKS

# Responses that are being made in the background of this process at a time.
MAX_RUNNING = 16

# Seconds that a response is taken to be worked on without another sign, and seconds between two signs.
LEASE = 30.0
RENEWAL = 10.0

# Seconds between the attempts to store a result, and their number; until then it is served from here.
RETRY = 2.0
STORE_ATTEMPTS = 30

# What becomes of a response when its server stops.
STOPPED = ApiError("The server was stopped before this response was finished.", status=503)

log: FilteringBoundLogger = structlog.get_logger(__name__)


class Job:
    """One background response of this process. `events` are its stream so far: a piece for each sequence number.

    `over`: its end may be told, for it is stored.
    """

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.cancellation = Cancellation()
        self.events: list[bytes] = []
        self.over = False
        self._begun: StoredResponse | None = None
        self._news = asyncio.Event()

    def tell(self, wire: Sequence[WireEvent], *, over: bool = False) -> None:
        """Adds events; `over`: these are the last."""
        self.events += encoded(wire)
        self.over = self.over or over
        self._news.set()
        self._news = asyncio.Event()

    def begin(self) -> None:
        """The work begins; what is seen of the response before its end is this."""
        begun = self.draft.builder.begin()
        self._begun = self.draft.stored()
        self.tell(begun)

    def cancel(self) -> None:
        """Its client, or whoever has taken its lease, wants no more of it."""
        self.cancellation.request(self.draft.builder.cancel)

    def stop(self) -> None:
        self.cancellation.request(partial(self.draft.builder.handle, TurnFailed(STOPPED)))

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


@dataclass(frozen=True, slots=True)
class JobSink:
    """The sink of a background response: it was begun when it was queued, and has no client that could leave.

    Its subscribers hear of its last events once `store` has them.
    """

    job: Job
    store: Callable[[Job, Sequence[WireEvent]], Awaitable[None]]

    @property
    def begun(self) -> bool:
        return True

    def open(self, builder: AnswerBuilder) -> AbstractAsyncContextManager[None]:
        return no_connection()

    async def send(self, events: Sequence[WireEvent]) -> None:
        self.job.tell(events)

    def finish(self, events: Sequence[WireEvent], error: ApiError | None) -> Awaitable[None]:
        return self.store(self.job, events)


def encoded(wire: Sequence[WireEvent]) -> list[bytes]:
    return [piece for event in wire for piece in encode_typed([event])]


class Jobs:
    """The background responses of this process. Made by `background_jobs`."""

    def __init__(self, store: ResponseStore, group: asyncio.TaskGroup) -> None:
        self._store = store
        self._group = group
        self._running: dict[str, Job] = {}
        self._stopping = asyncio.Event()

    def find(self, response_id: str, owner: str) -> Job | None:
        job = self._running.get(response_id)
        return job if job is not None and job.draft.owner == owner else None

    async def start(
        self, app: web.Application, draft: Draft, entry: RequestLog, locked: ExitStack
    ) -> tuple[Job, WireEvent]:
        """Begins the work on a response. Returns it as it was queued.

        Raises when it cannot be: for want of room, or because the store fails. `locked` is given back
        when the work has ended.
        """
        with ExitStack() as held:
            held.enter_context(locked)
            if sum(not job.over for job in self._running.values()) >= MAX_RUNNING:
                raise RequestError(
                    f"{MAX_RUNNING} background responses are running already. Try again when one has ended.",
                    status=429,
                    type="requests",
                    code="rate_limit_exceeded",
                    retry_after=5,
                )
            job = Job(draft)
            self._running[draft.builder.id] = job
            held.callback(self._forget, job)
            job.tell(draft.builder.start())
            queued = draft.builder.response
            job.begin()
            await self._store.save(job.stored(), lease=LEASE)
            held.enter_context(app[ACTIVITY].working())
            name = f"background response {draft.builder.id}"
            task = self._group.create_task(self._work(app, job, entry), name=name)
            # Also when the task is ended before it has begun.
            closing = held.pop_all()
            task.add_done_callback(lambda _: closing.close())
        return job, queued

    def _forget(self, job: Job) -> None:
        del self._running[job.draft.builder.id]
        if not job.over:
            job.tell([], over=True)

    async def cancel(self, job: Job) -> StoredResponse:
        """Ends the work on a response, if it has not ended yet. Returns the response then."""
        job.cancel()
        await job.wait_over()
        return job.stored()

    async def _work(self, app: web.Application, job: Job, entry: RequestLog) -> None:
        began = time.monotonic()
        draft = job.draft
        turn = replace(draft.request.turn, streamed=draft.request.stream)
        exchange = Exchange(turn, draft.owner, draft.builder, cancellation=job.cancellation)
        await deliver(app, exchange, JobSink(job, partial(self._store_end, app)), entry)
        seconds = round(time.monotonic() - began, 1)
        status = draft.builder.response["status"]
        log.info("background_response", response=draft.builder.id, status=status, seconds=seconds)

    async def _store_end(self, app: web.Application, job: Job, last: Sequence[WireEvent]) -> None:
        """Stores what became of a job, then tells its subscribers. A store that fails is asked again for a while."""
        stored = job.draft.stored()
        joins = stored.response["status"] in {"completed", "incomplete"}
        events = b"".join([*job.events, *encoded(last)])
        lost = True
        try:
            for _ in range(STORE_ATTEMPTS):
                try:
                    append_to = job.draft.conversation if joins else None
                    await self._store.save(stored, append_to=append_to, events=events, if_leased=True)
                except StoreError as error:
                    log.warning("not_stored", response=stored.id, error=error.message)
                    if not job.over:
                        job.tell(last, over=True)
                    if await self._stops_within(RETRY):
                        break
                else:
                    lost = False
                    if job.draft.claim is not None:
                        await app[CONVERSATION_LOCKS].release(job.draft.claim)
                    break
        except Exception:  # a fault of ours: its subscribers are told what there is
            log.exception("storing_fault", response=stored.id)
        finally:
            if lost:
                app[METRICS].not_stored("background")
            if not job.over:
                job.tell(last, over=True)

    async def _stops_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return False
        return True

    async def renew_leases(self) -> None:
        """Says that the jobs are being worked on, until the server stops; ends those whose lease is gone."""
        while not await self._stops_within(RENEWAL):
            for response_id, job in list(self._running.items()):
                try:
                    if not await self._store.renew(response_id, LEASE):
                        job.cancel()
                except StoreError as error:
                    log.warning("lease_not_renewed", response=response_id, error=error.message)

    def stop(self) -> None:
        """Ends all that is running; what runs is stored as failed."""
        self._stopping.set()
        for job in self._running.values():
            job.stop()


@asynccontextmanager
async def background_jobs(store: ResponseStore) -> AsyncIterator[Jobs]:
    """Work in the background as long as the context is open."""
    failure: Exception | None = None
    async with asyncio.TaskGroup() as group:
        jobs = Jobs(store, group)
        group.create_task(jobs.renew_leases(), name="leases of background responses")
        try:
            yield jobs
        except Exception as error:  # noqa: BLE001 -- raised below: the group would wrap it
            failure = error
        finally:
            jobs.stop()
    if failure is not None:
        raise failure


BACKGROUND_JOBS = web.AppKey("jobs", Jobs)
