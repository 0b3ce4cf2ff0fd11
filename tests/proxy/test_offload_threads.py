"""Long work beside the event loop: one piece of each owner at a time, and owners in turn."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from functools import partial

import pytest

from proxy.offload_threads import OffloadThreads
from tests.support.clock import settle
from tests.support.patience import PATIENCE


async def test_the_loop_goes_on_meanwhile_and_errors_come_back() -> None:
    offload, gate = OffloadThreads(), threading.Event()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(offload("a", lambda: gate.wait(PATIENCE)))
        await settle()
        gate.set()
    assert task.result()
    with pytest.raises(ZeroDivisionError):
        await offload("a", lambda: 1 // 0)


async def test_threads_are_switched_often_as_long_as_one_of_them_works() -> None:
    offload, usual = OffloadThreads(), sys.getswitchinterval()
    first, second = threading.Event(), threading.Event()

    def work(gate: threading.Event) -> float:
        assert gate.wait(PATIENCE)
        return sys.getswitchinterval()

    async with asyncio.TaskGroup() as group:
        one = group.create_task(offload("a", partial(work, first)))
        other = group.create_task(offload("b", partial(work, second)))
        await settle()
        first.set()
        assert await one < usual
        second.set()
        assert await other < usual
    assert sys.getswitchinterval() == usual


async def test_owners_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.offload_threads.AT_A_TIME", 1)
    offload, gate = OffloadThreads(), threading.Event()
    done: list[str] = []

    def work(name: str) -> Callable[[], None]:
        return lambda: done.append(name)

    async with asyncio.TaskGroup() as group:
        group.create_task(offload("a", lambda: gate.wait(PATIENCE)))
        await settle()
        for name in ("a1", "a2", "a3", "b1", "c1", "b2"):
            group.create_task(offload(name[0], work(name)))
        await settle()
        gate.set()
    assert done == ["a1", "b1", "c1", "a2", "b2", "a3"]


async def test_a_long_piece_of_one_owner_holds_up_no_other() -> None:
    offload, gate = OffloadThreads(), threading.Event()
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        long = [group.create_task(offload("a", lambda: gate.wait(PATIENCE))) for _ in range(5)]
        await settle()
        for number in range(3):
            assert await offload("b", lambda: "done") == "done", number
        assert not any(task.done() for task in long)
        gate.set()


async def test_who_leaves_has_no_other_piece_until_the_one_behind_is_done() -> None:
    offload, gate, begun = OffloadThreads(), threading.Event(), threading.Semaphore(0)

    def work() -> bool:
        begun.release()
        return gate.wait(PATIENCE)

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        left = [group.create_task(offload("a", work)) for _ in range(5)]
        assert await asyncio.to_thread(begun.acquire, timeout=PATIENCE)
        for task in left:
            task.cancel()
        await settle()
        assert await offload("b", lambda: "done") == "done"
        assert not begun.acquire(blocking=False)
        gate.set()
        assert await offload("a", lambda: "next") == "next"


async def test_who_leaves_keeps_nobody_waiting() -> None:
    offload, gate = OffloadThreads(), threading.Event()
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        tasks = [group.create_task(offload(owner, lambda: gate.wait(PATIENCE))) for owner in "aabb"]
        await settle()
        for task in tasks[:3]:
            task.cancel()
        await settle()
        gate.set()
    assert tasks[3].result()
    assert await offload("a", lambda: "next") == "next"
