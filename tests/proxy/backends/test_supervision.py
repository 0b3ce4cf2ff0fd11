from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from proxy.backends import supervision
from proxy.backends.supervision import Down, Supervisor
from proxy.errors import BackendError


class FakeSession:
    def __init__(self) -> None:
        self.worn = False
        self.closed = asyncio.Event()
        self._unusable = asyncio.Event()
        self._finished = asyncio.Event()

    @property
    def usable(self) -> bool:
        return not self._unusable.is_set()

    async def unusable(self) -> None:
        await self._unusable.wait()

    async def finished(self) -> None:
        await self._finished.wait()

    def wear_out(self) -> None:
        self.worn = True
        self._unusable.set()

    def finish(self) -> None:
        self._unusable.set()
        self._finished.set()


class Starter:
    """Opens sessions; `failures` of them do not come up first."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.tries = 0
        self.sessions: list[FakeSession] = []
        self.opened = asyncio.Event()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[FakeSession]:
        self.tries += 1
        await asyncio.sleep(0)
        if self.tries <= self.failures:
            raise OSError("no such program")
        session = FakeSession()
        self.sessions.append(session)
        self.opened.set()
        try:
            yield session
        finally:
            session.closed.set()


@asynccontextmanager
async def supervised(starter: Starter) -> AsyncIterator[Supervisor[FakeSession]]:
    supervisor = Supervisor(starter.open, "it")
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        task = group.create_task(supervisor.run())
        yield supervisor
        task.cancel()


async def test_who_asks_during_the_start_waits_for_it() -> None:
    starter = Starter()
    async with supervised(starter) as supervisor:
        assert await supervisor.current() is starter.sessions[0]
    assert starter.sessions[0].closed.is_set()


async def test_a_session_that_ends_is_followed_by_another_at_once() -> None:
    starter = Starter()
    async with supervised(starter) as supervisor:
        (await supervisor.current()).finish()
        assert await supervisor.current() is starter.sessions[1]


async def test_the_first_failure_to_start_is_tried_again_at_once() -> None:
    starter = Starter(failures=1)
    async with supervised(starter) as supervisor:
        assert await supervisor.current() is starter.sessions[0]


async def test_while_it_is_down_requests_fail_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "BACKOFF", (0.0, 30.0))
    starter = Starter(failures=1000)
    async with supervised(starter) as supervisor:
        with pytest.raises(BackendError) as failed:
            await supervisor.current()
        assert isinstance(supervisor.state, Down)
    error = failed.value
    assert (error.status, error.code, error.message) == (
        503,
        "backend_unavailable",
        "it does not start: no such program",
    )
    assert error.retry_after is not None
    assert 20 < error.retry_after < 40
    assert starter.tries == 2


async def test_it_heals_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "BACKOFF", (0.0, 0.001))
    starter = Starter(failures=4)
    async with supervised(starter) as supervisor:
        await starter.opened.wait()
        await asyncio.sleep(0)
        assert await supervisor.current() is starter.sessions[0]
    assert starter.tries == 5


async def test_a_worn_session_finishes_its_work_beside_its_successor() -> None:
    starter = Starter()
    async with supervised(starter) as supervisor:
        old = await supervisor.current()
        old.wear_out()
        new = await supervisor.current()
        assert new is not old
        assert not old.closed.is_set()
        old.finish()
        await old.closed.wait()
        assert await supervisor.current() is new


async def test_the_end_closes_every_session() -> None:
    starter = Starter()
    async with supervised(starter) as supervisor:
        (await supervisor.current()).wear_out()
        await supervisor.current()
    assert [session.closed.is_set() for session in starter.sessions] == [True, True]
    with pytest.raises(BackendError, match="shut down"):
        await supervisor.current()
