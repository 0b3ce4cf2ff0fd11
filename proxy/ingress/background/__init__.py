"""Background responses: turns that go on without their client, in this process or, when it has gone, in another.

    queued -> in_progress -> completed | incomplete | failed     the turn ended
                          -> cancelled                           its client asked for it
                          -> failed                              the server stopped
    in_progress, and no sign of its process for a while
        -> in_progress                                           another process begins it anew, if nobody was sent
                                                                 any of its output
        -> failed                                                else, or if processes know nothing of each other

A job is one run of a response, and holds its lease in the store. The store refuses what a job writes without the lease:
meanwhile another process has cancelled, deleted, given up or taken over the response.

job       one response of this process, and the sink of its turn
jobs      all of them: begun, made, cancelled, stored, stopped
leases    their heartbeats; a job that another process left is begun anew, or ended
elsewhere the end of a response that no job of this process makes
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from ...contracts import ResponseStore
from .elsewhere import ABANDONED, RUNNING, end_elsewhere, failed, last_event
from .job import OPENING, Job
from .jobs import Jobs
from .leases import Leases

__all__ = [
    "ABANDONED", "BACKGROUND_JOBS", "OPENING", "RUNNING", "Job", "background_jobs", "end_elsewhere", "failed",
    "last_event",
]  # fmt: skip

BACKGROUND_JOBS = web.AppKey("jobs", Jobs)


@asynccontextmanager
async def background_jobs(store: ResponseStore, lease: float) -> AsyncIterator[Jobs]:
    """Work in the background as long as the context is open."""
    failure: Exception | None = None
    async with asyncio.TaskGroup() as writing:
        journal = writing.create_task(store.journal.run(), name="journal of background responses")
        async with asyncio.TaskGroup() as group:
            jobs = Jobs(store, group)
            group.create_task(Leases(jobs, store, group, lease).keep(), name="leases of background responses")
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
