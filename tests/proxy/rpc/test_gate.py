from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from proxy.rpc import Gate, RpcBusyError
from tests.support.virtual_clock import on_a_virtual_clock


async def pass_through(gate: Gate, note: Callable[[], None], until: asyncio.Event) -> None:
    async with gate.entered():
        note()
        await until.wait()


@on_a_virtual_clock
async def test_who_came_first_goes_first() -> None:
    gate, order, until = Gate(places=2), list[int](), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for n in range(6):
            group.create_task(pass_through(gate, lambda n=n: order.append(n), until))  # type: ignore[misc]
        await asyncio.sleep(1)
        assert order == [0, 1]
        until.set()
    assert order == list(range(6))


@on_a_virtual_clock
async def test_who_finds_the_queue_full_is_sent_away_at_once() -> None:
    gate, until = Gate(places=1, queue=2), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(pass_through(gate, lambda: None, until))
        await asyncio.sleep(0)
        with pytest.raises(RpcBusyError, match="2 requests wait"):
            async with gate.entered():
                pass
        until.set()
    assert asyncio.get_running_loop().time() == 0
    async with gate.entered():
        pass


@on_a_virtual_clock
async def test_who_waits_too_long_is_sent_away() -> None:
    gate, until = Gate(places=1, patience=10), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(pass_through(gate, lambda: None, until))
        await asyncio.sleep(0)
        with pytest.raises(RpcBusyError, match="within 10 s"):
            async with gate.entered():
                pass
        until.set()
    async with gate.entered():
        pass


@on_a_virtual_clock
async def test_who_gives_up_waiting_takes_no_place_along() -> None:
    gate, until = Gate(places=1), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(pass_through(gate, lambda: None, until))
        waiting = group.create_task(pass_through(gate, lambda: None, until))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        until.set()
    async with asyncio.timeout(1), gate.entered():
        pass
