"""Long work beside the event loop: one piece at a time, owners in turn."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable

import pytest

from proxy.aside import BesideTheLoop
from tests.support.clock import settle
from tests.support.patience import PATIENCE


async def test_the_loop_goes_on_meanwhile_and_errors_come_back() -> None:
    aside, gate = BesideTheLoop(), threading.Event()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(aside("a", lambda: gate.wait(PATIENCE)))
        await settle()
        gate.set()
    assert task.result()
    before = sys.getswitchinterval()
    with pytest.raises(ZeroDivisionError):
        await aside("a", lambda: 1 // 0)
    assert sys.getswitchinterval() == before


async def test_owners_take_turns() -> None:
    aside, gate = BesideTheLoop(), threading.Event()
    done: list[str] = []

    def work(name: str) -> Callable[[], None]:
        return lambda: done.append(name)

    async with asyncio.TaskGroup() as group:
        group.create_task(aside("a", lambda: gate.wait(PATIENCE)))
        await settle()
        for name in ("a1", "a2", "a3", "b1", "c1", "b2"):
            group.create_task(aside(name[0], work(name)))
        await settle()
        gate.set()
    assert done == ["a1", "b1", "c1", "a2", "b2", "a3"]


async def test_who_leaves_keeps_nobody_waiting() -> None:
    aside, gate = BesideTheLoop(), threading.Event()
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        tasks = [group.create_task(aside(owner, lambda: gate.wait(PATIENCE))) for owner in "aabb"]
        await settle()
        for task in tasks[:3]:
            task.cancel()
        await settle()
        gate.set()
    assert tasks[3].result()
    assert await aside("a", lambda: "next") == "next"
