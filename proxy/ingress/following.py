"""The events of a background response, wherever they are made.

    a job of this process         its own events, as they come
    a run in another process      the store's journal, as they come where processes tell each other, else at the end
    a response that is over       what was stored with it

A response may move from one of these to the next while it is followed. Sequence numbers are the same in all of them.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from aiohttp import web
from msgspec import Struct

from ..contracts import ResponseStore, Run, StoredResponse
from ..errors import ApiError, StoreError
from ..wire.sse import comment
from .background import ABANDONED, BACKGROUND_JOBS, OPENING, RUNNING, Job, end_elsewhere, failed, last_event
from .event_stream import Subscription
from .state import STORE, WARNING

# Seconds until a store that is away is asked again: a stream that has begun cannot turn into an error.
RETRY = 1.0

# What those are told who follow a response that is not there any more.
GONE = ApiError("This response was deleted, or lost by the store, before it was finished.")

LATE = "its events do not fit in the store, so the rest comes when the response is over"


async def load_current(app: web.Application, owner: str, response_id: str) -> StoredResponse | None:
    """A stored Response as it is now. One that nobody is working on any more has failed, and is stored as that.

    Raises `StoreError`.
    """
    store, jobs = app[STORE], app[BACKGROUND_JOBS]
    if (job := jobs.find(response_id, owner)) is not None:
        return job.stored()
    # In this order: who gives the lease back has stored the end before.
    run = await store.lease_of(response_id)
    stored = await store.load(response_id, owner)
    if stored is None or stored.response["status"] not in RUNNING or run is not None:
        return stored
    await end_elsewhere(store, stored, None, ABANDONED)
    return await store.load(response_id, owner)


async def follow(app: web.Application, owner: str, response_id: str, after: int) -> Subscription:
    """The events of a background response behind sequence number `after`, to its end."""
    way = _Way(owner, response_id, after)
    while not way.ended:
        job = app[BACKGROUND_JOBS].find(response_id, owner)
        part = _elsewhere(app, way) if job is None else _here(app, way, job)
        async with aclosing(part) as events:
            async for pieces in events:
                yield pieces


class _Way(Struct):
    """How far somebody has come in the events of a response."""

    owner: str
    response_id: str
    after: int
    seen: StoredResponse | None = None
    """What there was of it last."""
    told: Run | None = None
    """The run of whose output they were told something."""
    warned: bool = False
    ended: bool = False


async def _here(app: web.Application, way: _Way, job: Job) -> Subscription:
    """A job's events, to its end or until it is lost."""
    way.seen = job.stored()
    async with aclosing(job.subscribe(way.after)) as events:
        async for pieces in events:
            if not await app[BACKGROUND_JOBS].may_tell(job, way.after + len(pieces)):
                return
            way.after += len(pieces)
            yield pieces
    way.ended = not job.lost


async def _elsewhere(app: web.Application, way: _Way) -> Subscription:
    """What is stored of a response that is over, or what there is of one that another process makes."""
    store = app[STORE]
    try:
        stored = await load_current(app, way.owner, way.response_id)
        if stored is None:
            if way.seen is not None:
                yield [last_event(failed(way.seen.response, GONE), GONE, way.after + 1)]
            way.ended = True
            return
        way.seen = stored
        if stored.response["status"] in RUNNING:
            if (run := await store.lease_of(way.response_id)) is not None:
                async with aclosing(_made_elsewhere(store, run, way)) as events:
                    async for pieces in events:
                        yield pieces
            return
        if rest := _rest(stored, await store.load_events(way.response_id, way.owner), way.after):
            yield rest
        way.ended = True
    except StoreError:
        await asyncio.sleep(RETRY)


async def _made_elsewhere(store: ResponseStore, run: Run, way: _Way) -> Subscription:
    """A run's events, to its end or until nothing comes for a while: then it may not be the one any more."""
    async with store.journal.follow(run, way.after) as follower:
        while not way.ended and (pieces := list(await follower.next())):
            told = way.after + len(pieces)
            if told >= OPENING and way.told != run and not follower.ended:
                if not await store.tell(run):
                    return
                way.told = run
            way.after, way.ended = told, follower.ended
            yield pieces
        if follower.full and not way.warned:
            way.warned = True
            yield [comment(f"{WARNING}: {LATE}")]


def _rest(stored: StoredResponse, events: bytes | None, after: int) -> list[bytes]:
    """What there is of a response that is over behind `after`.

    How far its stream had come may have gone with its process: who has heard more than was kept is told the end again.
    """
    pieces = [piece + b"\n\n" for piece in (events or b"").split(b"\n\n")[:-1]]
    if pieces[after + 1 :]:
        return pieces[after + 1 :]
    if events is not None and stored.response["status"] not in {"failed", "cancelled"}:
        return []
    error = stored.response.get("error")
    return [last_event(stored.response, ApiError(error["message"]) if error else None, after + 1)]
