"""Background responses: turns that go on without their client, in this process or, when it has gone, in another.

    queued -> in_progress -> completed | incomplete | failed     the turn ended
                          -> cancelled                           its client asked for it
                          -> failed                              the server stopped
    in_progress, and no sign of its process for a while
        -> in_progress                                           another process begins it anew, where nobody was told
                                                                 anything of its output
        -> failed                                                else, or where processes know nothing of each other

A job is a run of a response and holds its lease in the store. What it writes without the lease is not taken: another
process has cancelled, deleted, given up or taken over the response meanwhile.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

import structlog
from aiohttp import web
from structlog.typing import FilteringBoundLogger

from ..contracts import ResponseStore, Run, StoredRequest, StoredResponse, TurnFailed, WireObject
from ..errors import ApiError, RequestError, StoreError
from ..ids import mint_id
from ..wire.builder import AnswerBuilder, WireEvent
from ..wire.json_body import parse_json_object
from ..wire.responses.left_output import left_output
from ..wire.responses.request import lookups
from ..wire.sse import encode_typed
from .delivery import Cancellation, Exchange, deliver, no_connection
from .event_stream import Subscription
from .history import Draft, make_draft
from .metrics import METRICS
from .request_log import RequestLog
from .state import ACTIVITY, CONVERSATION_LOCKS, STOPPING

# Responses that are being made in the background of this process at a time.
MAX_RUNNING = 16

# So many signs of life are given in the time after which a response is taken over.
SIGNS = 5

# Seconds between two signs where none is.
RENEWAL = 10.0

# So often a response is begun: one that ends its process each time must not end them all.
MAX_RUNS = 5

# The events before a turn says anything: a run that is begun anew begins with the same ones.
OPENING = 3

# Seconds between the attempts to store a result, and their number; until then it is served from here.
RETRY = 2.0
STORE_ATTEMPTS = 30

# What becomes of a response when its server stops, or has gone.
STOPPED = ApiError("The server was stopped before this response was finished.", status=503)
ABANDONED = ApiError("The server ended before this response was finished.")
TOLD = ApiError(
    "The server ended before this response was finished. Part of it had been told already, so no other server began it "
    "anew: send the request again."
)
TOO_OFTEN = ApiError(f"{MAX_RUNS} servers ended while they were at work on this response.")

# Responses that are not over.
RUNNING = frozenset({"queued", "in_progress"})

log: FilteringBoundLogger = structlog.get_logger(__name__)


class Job:
    """One background response of this process. `events` are its stream so far: a piece for each sequence number.

    `over`: nothing more comes, and its end may be told, for it is stored; not so when it is `lost`, another's or
    nobody's. `told`: another process knows that somebody hears of its output here.
    """

    def __init__(self, draft: Draft, run: Run) -> None:
        self.draft = draft
        self.run = run
        self.cancellation = Cancellation()
        self.events: list[bytes] = []
        self.over = self.lost = self.told = self.ending = False
        self._begun: StoredResponse | None = None
        self._news = asyncio.Event()

    def tell(self, pieces: Sequence[bytes], *, over: bool = False) -> None:
        """Adds events; `over`: these are the last."""
        self.events += pieces
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


@dataclass(frozen=True, slots=True)
class JobSink:
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


def last_event(response: WireObject, error: ApiError | None, number: int) -> bytes:
    """That of a response which its own process did not end, or did not tell."""
    kind = response["status"] if response["status"] in {"completed", "incomplete"} else "failed"
    event = {"type": f"response.{kind}", "sequence_number": number, "response": response}
    return encoded([event if error is None else {**event, "error": error.error_object()}])[0]


class Jobs:
    """The background responses of this process. Made by `background_jobs`.

    What no process has given a sign of for `lease` seconds is looked after here, if processes can know.
    """

    def __init__(self, store: ResponseStore, group: asyncio.TaskGroup, lease: float) -> None:
        self._store = store
        self._journal = store.journal
        self._group = group
        self._lease = lease
        self._app: web.Application | None = None
        self._running: dict[str, Job] = {}
        self._taken: set[str] = set()
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
            if self._room() < 1:
                raise RequestError(
                    f"{MAX_RUNNING} background responses are running already. Try again when one has ended.",
                    status=429,
                    type="requests",
                    code="rate_limit_exceeded",
                    retry_after=5,
                )
            job = self._enter(Job(draft, _first_run(draft.builder.id)), held)
            queued = job.begin()
            try:
                await self._journal.begin(job.run, job.events)
                request = StoredRequest(draft.owner, body, draft.claim) if self._journal.takes_over else None
                await self._store.save(job.stored(), lease=job.run, request=request)
            except StoreError:
                self._journal.end(job.run)
                raise
            self._set_to_work(job, entry, held.pop_all())
        return queued

    def _room(self) -> int:
        return MAX_RUNNING - sum(not job.over for job in self._running.values()) - len(self._taken)

    def _enter(self, job: Job, held: ExitStack) -> Job:
        self._running[job.run.response_id] = job
        held.callback(self._forget, job)
        return job

    def _set_to_work(self, job: Job, entry: RequestLog, held: ExitStack) -> None:
        """`held` is given back when the work has ended, also when it never begins."""
        app = self._served
        held.enter_context(app[ACTIVITY].working())
        name = f"background response {job.run.response_id}"
        task = self._group.create_task(self._work(app, job, entry), name=name)
        task.add_done_callback(lambda _: held.close())

    @property
    def _served(self) -> web.Application:
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
        exchange = Exchange(turn, draft.owner, draft.builder, cancellation=job.cancellation)
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
        """Stores what became of a job, then tells its subscribers. A store that fails is asked again for a while."""
        if job.lost:
            return
        job.ending = True
        events = b"".join([*job.events, *last])
        lost = True
        try:
            for _ in range(STORE_ATTEMPTS):
                try:
                    kept = await self._save_end(job, events)
                except StoreError as error:
                    log.warning("not_stored", response=job.run.response_id, error=error.message)
                    if not job.over:
                        job.tell(last, over=True)
                    if await self._stops_within(RETRY):
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
        return await self._store.save(stored, append_to=append_to, events=events, leased_by=job.run)

    def _ended(self, app: web.Application, job: Job, last: Sequence[bytes], *, kept: bool) -> None:
        if not kept:
            job.lose()
            return
        if not job.over:
            self._tell(app, job, last, last=True)
        self._journal.end(job.run)

    async def _stops_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return False
        return True

    # Of other processes

    async def keep_leases(self) -> None:
        """Says that the jobs are being worked on, until the server stops; ends those whose lease is gone.

        Looks after what others have left. After a while in which the store was away, they first have a lease's time
        to give their signs again.
        """
        steady = 0
        while not await self._stops_within(self._lease / SIGNS if self._journal.takes_over else RENEWAL):
            try:
                await self._renew()
                steady += 1
                if steady > SIGNS and self._app is not None and not self._app[STOPPING].is_set() and self._room() > 0:
                    for response_id in await self._journal.take(self._lease, self._room()):
                        self._look_after(response_id)
            except StoreError as error:
                steady = 0
                log.warning("leases_not_renewed", responses=len(self._running), error=error.message)

    async def _renew(self) -> None:
        jobs = [job for job in self._running.values() if not job.lost]
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

    def _look_after(self, response_id: str) -> None:
        if response_id in self._running:
            self._journal.leave(response_id)  # it was lost, and its end is near
        elif response_id not in self._taken:
            self._taken.add(response_id)
            task = self._group.create_task(self._take(response_id), name=f"take over {response_id}")
            task.add_done_callback(lambda _: self._taken.discard(response_id))

    async def _take(self, response_id: str) -> None:
        """Begins a response anew whose process has gone, or ends it."""
        try:
            request, run = await self._store.load_request(response_id), await self._store.lease_of(response_id)
            stored = None if request is None else await self._store.load(response_id, request.owner)
            if request is None or run is None or stored is None:
                self._journal.end(Run(response_id, ""))  # it is over, or has never been begun
            elif (error := await self._begin_anew(request, stored, run)) is not None:
                await self._fail(stored, run, error)
        except StoreError as error:
            self._journal.leave(response_id)
            log.warning("not_taken_over", response=response_id, error=error.message)
        except Exception:  # a fault of ours must not end the others
            self._journal.leave(response_id)
            log.exception("take_over_fault", response=response_id)

    async def _fail(self, stored: StoredResponse, run: Run, error: ApiError) -> None:
        if await self.end_elsewhere(stored, run, error):
            self._served[METRICS].taken_over("failed")
            log.warning("background_response_failed", response=stored.id, error=error.message)
        else:
            self._journal.leave(stored.id)

    async def _begin_anew(self, request: StoredRequest, stored: StoredResponse, run: Run) -> ApiError | None:
        """Returns why not, if it has to fail."""
        app, by = self._served, _next_run(run)
        if by is None:
            return TOO_OFTEN
        with ExitStack() as held:
            locks, claim = app[CONVERSATION_LOCKS], None
            if request.claim is not None:
                claim = replace(request.claim, token=by.token)
                if not await locks.adopt(claim, (request.claim.token, run.token)):
                    self._journal.leave(stored.id)
                    return None
                held.callback(locks.let_go, claim)
            try:
                body = parse_json_object(request.body)
                draft = await make_draft(app, request.owner, body, lookups(body), claim, begun=stored)
            except RequestError as error:
                return error
            if not await self._store.take_over(run, by):
                if await self._store.lease_of(stored.id) == run:
                    return TOLD
                self._journal.leave(stored.id)
                return None
            job = self._enter(Job(draft, by), held)
            job.begin()
            await self._journal.begin(by, job.events)
            self._journal.forget(run)
            entry = RequestLog(mint_id("req"), "POST", "/responses")
            entry.answers(draft.request.turn.model, stored.id, stream=draft.request.stream)
            self._set_to_work(job, entry, held.pop_all())
            if self._stopping.is_set():
                self._stop(job)
        app[METRICS].taken_over("begun_again")
        log.warning("background_response_begun_again", response=stored.id)
        return None

    async def end_elsewhere(self, stored: StoredResponse, run: Run | None, error: ApiError | None) -> bool:
        """Ends a response that no job of this process makes: cancelled without an error, else failed.

        False: it is not `run` any more that makes it, or it has ended.
        """
        told = None if run is None else await self._journal.events(run)
        members = {"status": "cancelled"} if error is None else {"status": "failed", "error": _response_error(error)}
        output = {} if told is None else {"output": left_output(told)}
        response = {**stored.response, **members, **output}
        last = None if told is None else last_event(response, error, len(told))
        events = None if told is None or last is None else b"".join([*told, last])
        ended = await self._store.save(replace(stored, response=response), events=events, leased_by=run)
        if ended and run is not None and told is not None and last is not None:
            self._journal.append(run, len(told), [last], last=True)
            self._journal.end(run)
        return ended

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


def _next_run(run: Run) -> Run | None:
    """That which takes over from `run`, unless there were enough."""
    count = int(run.token.partition(".")[0])
    return None if count >= MAX_RUNS else Run(run.response_id, f"{count + 1}.{secrets.token_hex(8)}")


def _response_error(error: ApiError) -> WireEvent:
    """As a Response has it."""
    return {"code": "server_error", "message": error.message}


@asynccontextmanager
async def background_jobs(store: ResponseStore, lease: float) -> AsyncIterator[Jobs]:
    """Work in the background as long as the context is open."""
    failure: Exception | None = None
    async with asyncio.TaskGroup() as writing:
        journal = writing.create_task(store.journal.run(), name="journal of background responses")
        async with asyncio.TaskGroup() as group:
            jobs = Jobs(store, group, lease)
            group.create_task(jobs.keep_leases(), name="leases of background responses")
            try:
                yield jobs
            except Exception as error:  # noqa: BLE001 -- raised below: the group would wrap it
                failure = error
            finally:
                jobs.stop()
        await store.journal.flush()
        journal.cancel()
    if failure is not None:
        raise failure


BACKGROUND_JOBS = web.AppKey("jobs", Jobs)
