"""Background responses: turns that go on without their client, and the event streams that follow them.

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
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager

import structlog
from aiohttp import web

from ..contracts import ResponseStore, StoredResponse, TurnFailed
from ..errors import ApiError, RequestError, StoreError
from ..wire.builder import WireEvent
from ..wire.sse import encode_typed
from .activity import Activity
from .bodies import fault
from .event_stream import Subscription
from .exchange import Built
from .history import Draft

MAX_RUNNING = 16

# Seconds that a response is taken to be worked on without another sign, and seconds between two signs.
LEASE = 30.0
RENEWAL = 10.0

# Seconds between the attempts to store a result, and their number; until then it is served from here.
RETRY = 2.0
STORE_ATTEMPTS = 30

STOPPED = ApiError("The server was stopped before this response was finished.", status=503)

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("tagcall.background")


class Job:
    """One background response of this process. `events` are its stream so far: a piece for each sequence number.

    `over`: its end may be told, for it is stored.
    """

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self._begun: StoredResponse | None = None
        self.events: list[bytes] = []
        self.over = False
        self.unwanted = False
        self.task: asyncio.Task[None] | None = None
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

    async def end(self) -> None:
        while not self.over:
            await self._news.wait()


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
        self, draft: Draft, batches: AsyncGenerator[Built, None], activity: Activity, locked: ExitStack
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
            activity.begin()
            held.callback(activity.end)
            name = f"background response {draft.builder.id}"
            job.task = self._group.create_task(self._work(job, batches), name=name)
            # Also when the task is ended before it has begun.
            closing = held.pop_all()
            job.task.add_done_callback(lambda _: closing.close())
        return job, queued

    def _forget(self, job: Job) -> None:
        del self._running[job.draft.builder.id]
        if not job.over:
            job.tell([], over=True)

    async def cancel(self, job: Job) -> StoredResponse:
        """Ends the work on a response, if it has not ended yet. Returns the response then."""
        self._interrupt(job)
        await job.end()
        return job.stored()

    def _interrupt(self, job: Job) -> None:
        if not job.draft.builder.over and not job.unwanted and job.task is not None:
            job.unwanted = True
            job.task.cancel()

    async def _work(self, job: Job, batches: AsyncGenerator[Built, None]) -> None:
        began = time.monotonic()
        builder = job.draft.builder
        try:
            last = await _read(job, batches)
        except asyncio.CancelledError:
            last = builder.cancel() if job.unwanted else builder.handle(TurnFailed(STOPPED))
        except Exception:  # logged with its trace, told without it; the other jobs go on
            log.exception("fault", response=builder.id)
            last = builder.handle(TurnFailed(fault()))
        await self._finish(job, last)
        seconds = round(time.monotonic() - began, 1)
        log.info("background_response", response=builder.id, status=builder.response["status"], seconds=seconds)

    async def _finish(self, job: Job, last: Sequence[WireEvent]) -> None:
        """Stores what became of a job, then tells its followers. A store that fails is asked again for a while."""
        stored = job.draft.stored()
        joins = stored.response["status"] in {"completed", "incomplete"}
        events = b"".join([*job.events, *encoded(last)])
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
                    break
        except Exception:  # as above; its followers are told what there is
            log.exception("fault", response=stored.id)
        finally:
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
                        self._interrupt(job)
                except StoreError as error:
                    log.warning("lease_not_renewed", response=response_id, error=error.message)

    def stop(self) -> None:
        """Ends all that is running; what runs is stored as failed."""
        self._stopping.set()
        for job in self._running.values():
            if job.task is not None and not job.draft.builder.over and not job.unwanted:
                job.task.cancel()


async def _read(job: Job, batches: AsyncGenerator[Built, None]) -> Sequence[WireEvent]:
    """Tells a turn's events as they come, but for the last ones: these have to be stored before."""
    async with aclosing(batches):
        async for batch in batches:
            if job.draft.builder.over:
                return batch.wire
            job.tell(batch.wire)
    raise RuntimeError("the turn has no end")


@asynccontextmanager
async def background_jobs(store: ResponseStore) -> AsyncIterator[Jobs]:
    """Work in the background as long as the context is open."""
    failure: Exception | None = None
    async with asyncio.TaskGroup() as group:
        jobs = Jobs(store, group)
        group.create_task(jobs.renew_leases(), name="leases of background responses")
        try:
            yield jobs
        except Exception as error:  # noqa: BLE001  # raised below: the group would wrap it
            failure = error
        finally:
            jobs.stop()
    if failure is not None:
        raise failure


JOBS = web.AppKey("jobs", Jobs)
