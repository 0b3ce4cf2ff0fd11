"""The background responses of this process: begun, made, cancelled, stored, stopped."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

import structlog
from aiohttp import web
from msgspec.structs import replace
from structlog.typing import FilteringBoundLogger

from ...contracts import ResponseStore, Run, StoredRequest, StoredResponse
from ...errors import RequestError, StoreError
from ...wire.builder import WireEvent
from ..delivery import Exchange, deliver
from ..history import Draft
from ..metrics import METRICS
from ..request_log import RequestLog
from ..state import ACTIVITY, CONVERSATION_LOCKS, STOPPING
from .job import OPENING, Job, JobSink

# Responses that are being made in the background of this process at a time.
MAX_RUNNING = 16

# Seconds between the attempts to store a result, which is served from here until then, for as long as the process runs:
# nobody else can know that it has ended, and would make it again.
RETRY = 2.0

log: FilteringBoundLogger = structlog.get_logger(__name__)


class Jobs:
    """The background responses of this process."""

    def __init__(self, store: ResponseStore, group: asyncio.TaskGroup) -> None:
        self._store = store
        self._journal = store.journal
        self._group = group
        self._app: web.Application | None = None
        self._running: dict[str, Job] = {}
        self.taken: set[str] = set()  # what `Leases` is about to take over
        self._untold: set[Job] = set()
        self._stopping = asyncio.Event()

    def work_for(self, app: web.Application) -> None:
        """From now on its backend takes turns."""
        self._app = app

    def find(self, response_id: str, owner: str) -> Job | None:
        job = self._running.get(response_id)
        return job if job is not None and job.draft.owner == owner and not job.lost else None

    async def start(self, draft: Draft, body: bytes, entry: RequestLog, locked: ExitStack) -> WireEvent:
        """Begins the work on a response, which is made from `body`. Returns it as it was queued.

        Raises when it cannot be: for want of room, or because the store fails. `locked` is given back
        when the work has ended.
        """
        with ExitStack() as held:
            held.enter_context(locked)
            if self.room() < 1:
                raise RequestError(
                    f"{MAX_RUNNING} background responses are running already. Try again when one has ended.",
                    status=429,
                    type="requests",
                    code="rate_limit_exceeded",
                    retry_after=5,
                    elsewhere=True,
                )
            job = self.enter(Job(draft, _first_run(draft.builder.id)), held)
            queued = job.begin()
            try:
                await self._journal.begin(job.run, job.events)
                request = StoredRequest(draft.owner, body, draft.claim) if self._journal.takes_over else None
                await self._store.save(job.stored(), lease=job.run, request=request)
            except StoreError:
                self._journal.end(job.run)
                raise
            job.leased = True
            self._set_to_work(job, entry, held.pop_all())
        return queued

    def of(self, response_id: str) -> Job | None:
        return self._running.get(response_id)

    @property
    def count(self) -> int:
        return len(self._running)

    @property
    def may_begin(self) -> bool:
        """Whether there is a server to work for, which goes on."""
        return self._app is not None and not self._app[STOPPING].is_set()

    def room(self) -> int:
        """How many more may be made here at a time."""
        return MAX_RUNNING - len(self._running) - len(self.taken)

    def enter(self, job: Job, held: ExitStack) -> Job:
        """It is known here as long as `held` is."""
        self._running[job.run.response_id] = job
        held.callback(self._forget, job)
        return job

    def _set_to_work(self, job: Job, entry: RequestLog, held: ExitStack) -> None:
        """`held` is given back when the work has ended, also when it never begins."""
        app = self.served
        held.enter_context(app[ACTIVITY].working())
        name = f"background response {job.run.response_id}"
        task = self._group.create_task(self._work(app, job, entry), name=name)
        task.add_done_callback(lambda _: held.close())

    def take_up(self, job: Job, entry: RequestLog, held: ExitStack) -> None:
        """The work on what another process left, which is stopped if the others have been meanwhile."""
        self._set_to_work(job, entry, held)
        if self._stopping.is_set():
            self._stop(job)

    @property
    def served(self) -> web.Application:
        if self._app is None:
            raise RuntimeError("there is nobody to work for")
        return self._app

    def _forget(self, job: Job) -> None:
        if self._running.get(job.run.response_id) is job:
            del self._running[job.run.response_id]
            self._journal.leave(job.run.response_id)
        self._untold.discard(job)
        if not job.over:
            job.tell((), over=True)

    async def cancel(self, job: Job) -> StoredResponse | None:
        """Ends the work on a response, if it has not ended yet. Returns the response then; None: it was lost."""
        job.cancel()
        await job.wait_over()
        return None if job.lost else job.stored()

    async def may_tell(self, job: Job, number: int) -> bool:
        """Whether somebody may be told the events of a job up to this number. False: the job is lost."""
        if number < OPENING or job.told or job.over or not self._journal.takes_over:
            return not job.lost
        try:
            kept = await self._store.tell(job.run)
        except StoreError:
            self._untold.add(job)  # an answer does not wait for the store, and as long as it is away nobody takes over
            kept = True
        if not kept:
            self._lose(job)
            await job.wait_over()
        job.told = True
        return not job.lost

    async def _work(self, app: web.Application, job: Job, entry: RequestLog) -> None:
        began = time.monotonic()
        draft = job.draft
        turn = replace(draft.request.turn, streamed=draft.request.stream)
        exchange = Exchange(turn, draft.owner, draft.builder, mint=draft.mint, cancellation=job.cancellation)
        sink = JobSink(job, partial(self._tell, app), partial(self._store_end, app))
        await deliver(app, exchange, sink, entry)
        seconds = round(time.monotonic() - began, 1)
        status = "lost" if job.lost else draft.builder.response["status"]
        log.info("background_response", response=draft.builder.id, status=status, seconds=seconds)

    def _tell(self, app: web.Application, job: Job, pieces: Sequence[bytes], *, last: bool = False) -> None:
        if not self._journal.append(job.run, len(job.events), pieces, last=last):
            log.warning("events_do_not_fit", response=job.run.response_id)
            app[METRICS].not_stored("events")
        job.tell(pieces, over=last)

    async def _store_end(self, app: web.Application, job: Job, last: Sequence[bytes]) -> None:
        """Stores what became of a job, then tells its subscribers. A store that fails is asked again, to the end."""
        if job.lost:
            return
        job.ending = True
        events = b"".join([*job.events, *last])
        lost = True
        try:
            while True:
                try:
                    kept = await self._save_end(job, events)
                except StoreError as error:
                    log.warning("not_stored", response=job.run.response_id, error=error.message)
                    if not job.over:
                        job.tell(last, over=True)
                    if await self.stops_within(RETRY):
                        break
                else:
                    lost = False
                    if job.draft.claim is not None:
                        await app[CONVERSATION_LOCKS].release(job.draft.claim)
                    self._ended(app, job, last, kept=kept)
                    break
        except Exception:  # a fault of ours: its subscribers are told what there is
            log.exception("storing_fault", response=job.run.response_id)
        finally:
            if lost:
                app[METRICS].not_stored("background")
            if not job.over:
                job.tell(last, over=True)

    async def _save_end(self, job: Job, events: bytes) -> bool:
        stored = job.draft.stored()
        append_to = job.draft.conversation if stored.response["status"] in {"completed", "incomplete"} else None
        claim = job.draft.claim
        return await self._store.save(stored, append_to=append_to, events=events, leased_by=job.run, claim=claim)

    def _ended(self, app: web.Application, job: Job, last: Sequence[bytes], *, kept: bool) -> None:
        if not kept:
            job.lose()
            return
        if not job.over:
            self._tell(app, job, last, last=True)
        self._journal.end(job.run)

    async def stops_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return False
        return True

    async def renew(self) -> None:
        """Says that they are being worked on; ends those whose lease is gone. Raises `StoreError`."""
        jobs = [job for job in self._running.values() if job.leased and not job.lost]
        lost = await self._journal.renew([job.run for job in jobs])
        for job in jobs:
            if job.run in lost:
                self._lose(job)
        for job in list(self._untold):
            if not await self._store.tell(job.run):
                self._lose(job)
            self._untold.discard(job)

    def _lose(self, job: Job) -> None:
        """Not so when its own end has given back the lease."""
        if not job.ending:
            job.lose()
            self._journal.forget(job.run)

    def stop(self) -> None:
        """Ends all that is running. It is stored as failed, or another process begins it anew."""
        self._stopping.set()
        for job in list(self._running.values()):
            self._stop(job)

    def _stop(self, job: Job) -> None:
        if self._journal.takes_over and not job.told:
            self._lose(job)
        else:
            job.stop()


def _first_run(response_id: str) -> Run:
    return Run(response_id, f"1.{secrets.token_hex(8)}")
