"""The background responses of one server: how many, who hears of them, and what becomes of them in the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager

import pytest

from proxy.contracts import Run
from proxy.errors import RequestError, StoreError
from proxy.ingress import create_app
from proxy.ingress.background import OPENING, Job
from proxy.ingress.background.jobs import Jobs
from proxy.ingress.history import Draft
from proxy.ingress.key_ring import KeyRing
from proxy.ingress.request_log import RequestLog
from proxy.server import turn_options
from proxy.settings import Settings
from proxy.stores import KeyedStore, MemoryKeyValue
from proxy.stores.journal import OwnJournal
from proxy.stores.key_value import NOTHING, Change
from proxy.wire.responses.request import parse_responses_request
from proxy.wire.responses.responses_builder import ResponsesBuilder
from tests.support.patience import PATIENCE
from tests.support.talking import GatedBackend, SilentBackend

BODY = b'{"model": "m", "input": "hi", "background": true}'
MINE = "mine"


class SharedJournal(OwnJournal):
    """That of servers which go on with one another's work."""

    takes_over = True


class TroubledKeyValue(MemoryKeyValue):
    """`away`: nothing can be written."""

    away = False

    async def commit(
        self, changes: Sequence[Change], *, require: Sequence[str] = (), expect: Mapping[str, bytes | None] = NOTHING
    ) -> bool:
        if self.away:
            raise StoreError("The store is away.")
        return await super().commit(changes, require=require, expect=expect)


def draft() -> Draft:
    parsed = parse_responses_request({"model": "m", "input": "hi", "background": True})
    return Draft(MINE, parsed, ResponsesBuilder(parsed), (), None)


class Server:
    def __init__(self, jobs: Jobs, store: KeyedStore) -> None:
        self.jobs = jobs
        self.store = store

    async def start(self) -> Job:
        made = draft()
        await self.jobs.start(made, BODY, RequestLog("req_1", "POST", "/responses"), ExitStack())
        job = self.jobs.of(made.builder.id)
        assert job is not None
        return job

    async def status(self, job: Job) -> str:
        stored = await self.store.load(job.run.response_id, MINE)
        assert stored is not None
        return str(stored.response["status"])

    async def idle(self) -> None:
        while self.jobs.count:  # noqa: ASYNC110 -- work that ends gives no sign
            await asyncio.sleep(0)

    async def loses(self, job: Job) -> None:
        """Another server has taken over."""
        assert await self.store.take_over(job.run, Run(job.run.response_id, "2.another"))


@asynccontextmanager
async def server(
    backend: GatedBackend | SilentBackend, keys: MemoryKeyValue | None = None, *, shared: bool = True
) -> AsyncIterator[Server]:
    keys = keys or MemoryKeyValue()
    store = KeyedStore(keys, SharedJournal(keys) if shared else None)
    settings = Settings()
    async with asyncio.timeout(PATIENCE), store, asyncio.TaskGroup() as group:
        work = Jobs(store, group)
        work.work_for(create_app(settings, backend, store, turn_options(settings), KeyRing()))
        yield Server(work, store)
        work.stop()


async def test_a_response_is_found_by_its_owner_alone_until_it_is_over() -> None:
    backend = GatedBackend(["Hello"])
    async with server(backend) as here:
        job = await here.start()
        assert here.jobs.find(job.run.response_id, MINE) is job
        assert here.jobs.find(job.run.response_id, "another's") is None
        backend.gate.set()
        await job.wait_over()
        assert await here.status(job) == "completed"
    assert here.jobs.count == 0


async def test_a_response_too_many_is_refused_and_takes_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.ingress.background.jobs.MAX_RUNNING", 1)
    async with server(SilentBackend()) as here:
        await here.start()
        for _ in range(2):
            with pytest.raises(RequestError, match="1 background responses are running already") as refused:
                await here.start()
            assert (refused.value.status, refused.value.retry_after, refused.value.elsewhere) == (429, 5, True)
        assert (here.jobs.count, here.jobs.room()) == (1, 0)


async def test_what_is_about_to_be_taken_over_takes_room_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.ingress.background.jobs.MAX_RUNNING", 3)
    async with server(SilentBackend()) as here:
        await here.start()
        here.jobs.taken.add("resp_of_another")
        assert here.jobs.room() == 1


async def test_a_response_that_cannot_be_kept_is_not_begun() -> None:
    keys, backend = TroubledKeyValue(), SilentBackend()
    async with server(backend, keys) as here:
        keys.away = True
        with pytest.raises(StoreError):
            await here.start()
        keys.away = False
        assert here.jobs.count == 0
    assert not backend.asked.is_set()


async def test_a_response_that_another_server_has_ends_here_at_the_next_sign() -> None:
    backend = SilentBackend()
    async with server(backend) as here:
        lost, kept = await here.start(), await here.start()
        await here.loses(lost)
        await here.jobs.renew()
        assert (lost.lost, lost.over, kept.lost, kept.over) == (True, True, False, False)
        assert here.jobs.find(lost.run.response_id, MINE) is None
        assert await here.jobs.cancel(lost) is None
        assert await here.status(lost) == "in_progress", "as the other one's"


async def test_nobody_is_told_the_words_of_a_response_that_is_lost() -> None:
    backend = GatedBackend(["Hello"])
    async with server(backend) as here:
        job = await here.start()
        await backend.asked.wait()
        await here.loses(job)
        assert await here.jobs.may_tell(job, OPENING - 1), "every run begins with these events"
        assert not job.lost
        assert not await here.jobs.may_tell(job, OPENING)
        assert job.lost


async def test_an_answer_does_not_wait_for_a_store_that_is_away_and_is_checked_once_it_is_back() -> None:
    keys, backend = TroubledKeyValue(), GatedBackend(["Hello"])
    async with server(backend, keys) as here:
        job = await here.start()
        await backend.asked.wait()
        keys.away = True
        assert await here.jobs.may_tell(job, OPENING)
        keys.away = False
        await here.loses(job)
        job.leased = False  # no sign of it is due
        await here.jobs.renew()
        assert job.lost


@pytest.mark.parametrize(
    ("shared", "told", "status"), [(False, False, "failed"), (True, True, "failed"), (True, False, "in_progress")]
)
async def test_a_server_that_stops_fails_what_no_other_one_may_begin_anew(
    shared: bool, told: bool, status: str
) -> None:
    backend = GatedBackend(["Hello"])
    async with server(backend, shared=shared) as here:
        job = await here.start()
        await backend.asked.wait()
        if told:
            assert await here.jobs.may_tell(job, OPENING)
        here.jobs.stop()
        await job.wait_over()
        await here.idle()
        assert await here.status(job) == status
        assert job.lost is (status == "in_progress")
