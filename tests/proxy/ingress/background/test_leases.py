"""Who looks after the responses of a server that gives no sign any more, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextlib import ExitStack

import pytest
from aiohttp import web

from proxy.contracts import Run
from proxy.errors import StoreError
from proxy.ingress.background import Job
from proxy.ingress.background.jobs import MAX_RUNNING, Jobs
from proxy.ingress.background.leases import SIGNS, Leases
from proxy.ingress.history import Draft
from proxy.ingress.state import STOPPING
from proxy.stores import KeyedStore, MemoryKeyValue
from proxy.stores.journal import OwnJournal
from proxy.wire.responses.request import parse_responses_request
from proxy.wire.responses.responses_builder import ResponsesBuilder
from tests.support.virtual_clock import on_a_virtual_clock

LEASE = 30.0
GONE = "resp_of_a_server_that_is_gone"


class Queue(OwnJournal):
    """One that other servers share. `looked`: behind which of our signs it was asked for what they have left.

    The signs of the numbers in `away` do not reach it. It hands out what `left` has.
    """

    takes_over = True

    def __init__(self, keys: MemoryKeyValue, away: Collection[int] = ()) -> None:
        super().__init__(keys)
        self.away = away
        self.signs = 0
        self.looked: list[int] = []
        self.asked: set[tuple[float, int]] = set()
        self.left: list[str] = []
        self.ended: list[str] = []
        self.given_back: list[str] = []

    async def renew(self, runs: Sequence[Run]) -> set[Run]:
        self.signs += 1
        if self.signs in self.away:
            raise StoreError("The store is away.")
        return await super().renew(runs)

    async def take(self, silence: float, limit: int) -> list[str]:
        self.looked.append(self.signs)
        self.asked.add((silence, limit))
        left, self.left = self.left, []
        return left

    def end(self, run: Run) -> None:
        self.ended.append(run.response_id)

    def leave(self, response_id: str) -> None:
        self.given_back.append(response_id)


def job() -> Job:
    parsed = parse_responses_request({"model": "m", "input": "hi", "background": True})
    builder = ResponsesBuilder(parsed)
    return Job(Draft("me", parsed, builder, (), None), Run(builder.id, "1.token"), leased=True)


async def after_signs(
    count: int, keys: MemoryKeyValue, queue: Queue, *, serving: bool = True, own: Job | None = None
) -> None:
    """A server that works on its `own` response gives so many signs, then stops."""
    store = KeyedStore(keys, queue)
    app = web.Application()
    app[STOPPING] = asyncio.Event()
    async with store, asyncio.TaskGroup() as group:
        jobs = Jobs(store, group)
        if serving:
            jobs.work_for(app)
        if own is not None:
            await store.save(own.stored(), lease=own.run)
            jobs.enter(own, ExitStack())
        keeping = group.create_task(Leases(jobs, store, group, LEASE).keep(), name="leases")
        await asyncio.sleep((count + 0.5) * LEASE / SIGNS)
        jobs.stop()
        await keeping
    assert queue.signs == count
    assert jobs.taken == set()


@on_a_virtual_clock
async def test_a_server_that_begins_first_leaves_the_others_a_leases_time_for_their_signs() -> None:
    queue = Queue(keys := MemoryKeyValue())
    await after_signs(8, keys, queue)
    assert queue.looked == [6, 7, 8]
    assert queue.asked == {(LEASE, MAX_RUNNING)}


@on_a_virtual_clock
async def test_after_the_store_was_away_the_others_have_it_once_more() -> None:
    queue = Queue(keys := MemoryKeyValue(), away={8, 9})
    await after_signs(17, keys, queue)
    assert queue.looked == [6, 7, 15, 16, 17]


@on_a_virtual_clock
async def test_a_server_that_serves_nobody_looks_after_nothing() -> None:
    queue = Queue(keys := MemoryKeyValue())
    await after_signs(8, keys, queue, serving=False)
    assert queue.looked == []


@on_a_virtual_clock
async def test_what_is_not_in_the_store_any_more_leaves_the_queue() -> None:
    queue = Queue(keys := MemoryKeyValue())
    queue.left = [GONE]
    await after_signs(6, keys, queue)
    assert (queue.ended, queue.given_back) == ([GONE], [])


@pytest.mark.parametrize("lost", [True, False])
def test_of_its_own_responses_a_server_gives_back_those_that_it_has_lost(lost: bool) -> None:
    @on_a_virtual_clock
    async def run() -> None:
        queue, own = Queue(keys := MemoryKeyValue()), job()
        if lost:
            own.lose()
        queue.left = [own.run.response_id]
        await after_signs(6, keys, queue, own=own)
        assert (queue.ended, queue.given_back) == ([], [own.run.response_id] if lost else [])

    run()


class AwayKeyValue(MemoryKeyValue):
    async def read(self, key: str) -> bytes | None:
        raise StoreError("The store is away.")


@on_a_virtual_clock
async def test_what_cannot_be_read_is_left_for_another_time() -> None:
    queue = Queue(keys := AwayKeyValue())
    queue.left = [GONE]
    await after_signs(6, keys, queue)
    assert (queue.ended, queue.given_back) == ([], [GONE])
