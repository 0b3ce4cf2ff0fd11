from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest

from proxy.backends.session_life import SessionLife
from proxy.backends.supervision import Broken, Draining, Ready, Recycling, Starting, Supervisor
from proxy.errors import BackendError
from tests.support.virtual_clock import on_a_virtual_clock


class FakeSession:
    def __init__(self) -> None:
        self.life = SessionLife()
        self.closed = asyncio.Event()


async def at_once() -> None:
    await asyncio.sleep(0)


class Starter:
    """Opens sessions; `failures` of them do not come up first. `start` is awaited by each."""

    def __init__(self, failures: int = 0, start: Callable[[], Awaitable[None]] = at_once) -> None:
        self.failures = failures
        self.tries = 0
        self.sessions: list[FakeSession] = []
        self.opened = asyncio.Event()
        self._start = start

    @asynccontextmanager
    async def open(self) -> AsyncIterator[FakeSession]:
        self.tries += 1
        await self._start()
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
    async with asyncio.TaskGroup() as group:
        task = group.create_task(supervisor.run())
        yield supervisor
        task.cancel()


@on_a_virtual_clock
async def test_who_asks_during_the_start_waits_for_it() -> None:
    starter = Starter()
    async with supervised(starter) as supervisor:
        states = [supervisor.state]
        session = await supervisor.current()
        assert session is starter.sessions[0]
        assert [*states, supervisor.state] == [Starting(), Ready(session)]
    assert session.closed.is_set()


@on_a_virtual_clock
async def test_a_start_that_takes_too_long_sends_who_waits_away() -> None:
    async with supervised(Starter(start=partial(asyncio.sleep, 100))) as supervisor:
        with pytest.raises(BackendError, match="it is still starting"):
            await supervisor.current()


@on_a_virtual_clock
async def test_a_session_that_ends_is_followed_by_another_at_once() -> None:
    starter = Starter()
    async with supervised(starter) as supervisor:
        (await supervisor.current()).life.finish()
        assert await supervisor.current() is starter.sessions[1]


@on_a_virtual_clock
async def test_the_first_failure_to_start_is_tried_again_at_once() -> None:
    starter = Starter(failures=1)
    async with supervised(starter) as supervisor:
        assert await supervisor.current() is starter.sessions[0]


@on_a_virtual_clock
async def test_what_does_not_start_is_left_alone_for_a_while_and_says_so() -> None:
    starter = Starter(failures=1000)
    async with supervised(starter) as supervisor:
        with pytest.raises(BackendError) as failed:
            await supervisor.current()
        assert isinstance(supervisor.state, Broken)
        await asyncio.sleep(15)
        assert starter.tries == 3
    error = failed.value
    assert (error.status, error.code) == (503, "backend_unavailable")
    assert error.message == (
        "it does not start: no such program. It has failed too often and is left alone for a while."
    )
    assert error.retry_after == 30


@on_a_virtual_clock
async def test_what_has_failed_twice_is_said_to_start_again_soon() -> None:
    async with supervised(Starter(failures=2)) as supervisor:
        await asyncio.sleep(0.01)
        assert isinstance(supervisor.state, Broken)
        assert supervisor.state.problem == "it does not start: no such program. It starts again soon."


@on_a_virtual_clock
async def test_it_heals_by_itself() -> None:
    starter = Starter(failures=4)
    async with supervised(starter) as supervisor:
        await starter.opened.wait()
        await asyncio.sleep(0)
        assert await supervisor.current() is starter.sessions[0]
    assert starter.tries == 5


@on_a_virtual_clock
async def test_what_ends_again_and_again_is_left_alone_too() -> None:
    starter = Starter()
    async with supervised(starter) as supervisor:
        for _ in range(5):
            (await supervisor.current()).life.finish()
        with pytest.raises(BackendError, match="it has ended"):
            await supervisor.current()


@on_a_virtual_clock
async def test_what_does_its_work_between_its_ends_is_always_started_again() -> None:
    starter = Starter()
    async with supervised(starter) as supervisor:
        for _ in range(20):
            life = (await supervisor.current()).life
            life.proven = True
            life.finish()
        assert asyncio.get_running_loop().time() == 0


@on_a_virtual_clock
async def test_a_session_that_crashes_is_followed_by_another_and_hurts_nobody() -> None:
    crashes = iter([True])

    async def crash_once() -> None:
        if next(crashes, False):
            raise ZeroDivisionError

    starter = Starter(start=crash_once)
    async with supervised(starter) as supervisor:
        assert await supervisor.current() is starter.sessions[0]


class Refused(Exception):  # noqa: N818 -- of a backend that names its failures as it likes
    pass


async def refuse() -> None:
    raise Refused("not today")


@pytest.mark.parametrize(("failures", "said"), [((Refused,), "not today"), ((), "the proxy made a mistake")])
@on_a_virtual_clock
async def test_a_backend_says_which_failures_are_no_mistake_of_ours(
    failures: tuple[type[Exception], ...], said: str
) -> None:
    supervisor = Supervisor(Starter(start=refuse).open, "it", failures=failures)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(supervisor.run())
        with pytest.raises(BackendError, match=f"it does not start: {said}"):
            await supervisor.current()
        task.cancel()


@on_a_virtual_clock
async def test_a_worn_session_finishes_its_work_beside_its_successor() -> None:
    starter = Starter()
    async with supervised(starter) as supervisor:
        old = await supervisor.current()
        with old.life.turn():
            old.life.retire()
            await asyncio.sleep(0)
            assert supervisor.state == Recycling()
            new = await supervisor.current()
            assert new is not old
            assert not old.closed.is_set()
        await old.closed.wait()
        assert await supervisor.current() is new


@on_a_virtual_clock
async def test_the_end_closes_every_session() -> None:
    starter = Starter()
    async with supervised(starter) as supervisor:
        old = await supervisor.current()
        with old.life.turn():
            old.life.retire()
            await supervisor.current()
    assert [session.closed.is_set() for session in starter.sessions] == [True, True]
    assert supervisor.state == Draining()
    with pytest.raises(BackendError, match="it is shutting down"):
        await supervisor.current()
