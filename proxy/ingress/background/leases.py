"""Heartbeats for this process's jobs, and what becomes of jobs whose process gives none any more."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import ExitStack

import structlog
from msgspec.structs import replace
from structlog.typing import FilteringBoundLogger

from ...contracts import ResponseStore, Run, StoredRequest, StoredResponse
from ...errors import ApiError, RequestError, StoreError
from ...ids import mint_id
from ...wire.json_body import parse_json_object
from ...wire.responses.request import lookups
from ..history import make_draft
from ..metrics import METRICS
from ..request_log import RequestLog
from ..state import CONVERSATION_LOCKS, KEYS
from .elsewhere import end_elsewhere
from .job import Job
from .jobs import Jobs

# So many signs of life are given in the time after which a response is taken over.
SIGNS = 5

# Seconds between two signs where none is.
RENEWAL = 10.0

# So often a response is begun: one that ends its process each time must not end them all.
MAX_RUNS = 5

# What becomes of a response whose server has gone, and that is not begun anew.
TOLD = ApiError(
    "The server ended before this response was finished. A part of it had been sent already, so no other server began "
    "again: send the request again."
)
TOO_OFTEN = ApiError(f"{MAX_RUNS} servers ended while they were at work on this response.")

log: FilteringBoundLogger = structlog.get_logger(__name__)


class Leases:
    """Those of `jobs`, and of what other processes have left.

    What no process has given a sign of for `lease` seconds is looked after here, if processes can know.
    """

    def __init__(self, jobs: Jobs, store: ResponseStore, group: asyncio.TaskGroup, lease: float) -> None:
        self._jobs = jobs
        self._store = store
        self._journal = store.journal
        self._group = group
        self._lease = lease

    async def keep(self) -> None:
        """Says that the jobs are being worked on, until the server stops; ends those whose lease is gone.

        Looks after what others have left. After a while in which the store was away, they first have a lease's time
        to give their signs again.
        """
        steady = 0
        while not await self._jobs.stops_within(self._lease / SIGNS if self._journal.takes_over else RENEWAL):
            try:
                await self._jobs.renew()
                steady += 1
                if steady > SIGNS and self._jobs.may_begin and (room := self._jobs.room()) > 0:
                    for response_id in await self._journal.take(self._lease, room):
                        self._look_after(response_id)
            except StoreError as error:
                steady = 0
                log.warning("leases_not_renewed", responses=self._jobs.count, error=error.message)

    def _look_after(self, response_id: str) -> None:
        if (job := self._jobs.of(response_id)) is not None:
            if job.lost:  # its end is near; the others were only held up
                self._journal.leave(response_id)
        elif response_id not in self._jobs.taken:
            self._jobs.taken.add(response_id)
            task = self._group.create_task(self._take(response_id), name=f"take over {response_id}")
            task.add_done_callback(lambda _: self._jobs.taken.discard(response_id))

    async def _take(self, response_id: str) -> None:
        """Begins a response anew whose process has gone, or ends it."""
        try:
            request, run = await self._store.load_request(response_id), await self._store.lease_of(response_id)
            stored = None if request is None else await self._store.load(response_id, request.owner)
            if request is None or run is None or stored is None:
                self._journal.end(Run(response_id, ""))  # it is over, or has never been begun
            elif (error := await self._begin_anew(request, stored, run)) is not None:
                await self._fail(request, stored, run, error)
        except StoreError as error:
            self._journal.leave(response_id)
            log.warning("not_taken_over", response=response_id, error=error.message)
        except Exception:  # a fault of ours must not end the others
            self._journal.leave(response_id)
            log.exception("take_over_fault", response=response_id)

    async def _fail(self, request: StoredRequest, stored: StoredResponse, run: Run, error: ApiError) -> None:
        if await end_elsewhere(self._store, stored, run, error):
            if (claim := request.claim) is not None:
                for token in (claim.token, run.token):
                    await self._store.release(replace(claim, token=token))
            self._jobs.served[METRICS].taken_over("failed")
            log.warning("background_response_failed", response=stored.id, error=error.message)
        else:
            self._journal.leave(stored.id)

    async def _begin_anew(self, request: StoredRequest, stored: StoredResponse, run: Run) -> ApiError | None:
        """Returns why not, if it has to fail."""
        app, by = self._jobs.served, _next_run(run)
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
                draft = await make_draft(app, request.owner, body, lookups(body), claim, long=True, begun=stored)
            except RequestError as error:
                return error
            if not await self._store.take_over(run, by):
                if await self._store.lease_of(stored.id) == run:
                    return TOLD
                self._journal.leave(stored.id)
                return None
            job = self._jobs.enter(Job(draft, by, leased=True), held)
            job.begin()
            await self._journal.begin(by, job.events)
            self._journal.forget(run)
            entry = RequestLog(mint_id("req"), "POST", "/responses")
            entry.came_from(app[KEYS].name_of(request.owner))
            entry.answers(draft.request.turn.model, stored.id, stream=draft.request.stream)
            self._jobs.take_up(job, entry, held.pop_all())
        app[METRICS].taken_over("begun_again")
        log.warning("background_response_begun_again", response=stored.id)
        return None


def _next_run(run: Run) -> Run | None:
    """That which takes over from `run`, unless there were enough."""
    count = int(run.token.partition(".")[0])
    return None if count >= MAX_RUNS else Run(run.response_id, f"{count + 1}.{secrets.token_hex(8)}")
