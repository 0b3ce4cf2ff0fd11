"""A deadline that is set and lifted again and again, with one timer."""

from __future__ import annotations

import asyncio

from proxy.ingress.deadline import Deadline
from tests.support.virtual_clock import on_a_virtual_clock


class Missed(list[float]):
    """The moments at which it was, from the first one on."""

    def __init__(self) -> None:
        self._began = asyncio.get_running_loop().time()

    def __call__(self) -> None:
        self.append(round(asyncio.get_running_loop().time() - self._began, 3))


@on_a_virtual_clock
async def test_it_is_missed_once_when_its_time_is_over() -> None:
    deadline, missed = Deadline(), Missed()
    deadline.set(2, missed)
    assert deadline.is_set
    await asyncio.sleep(10)
    assert missed == [2]
    assert deadline.is_set


@on_a_virtual_clock
async def test_one_that_is_lifted_is_not_missed() -> None:
    deadline, missed = Deadline(), Missed()
    deadline.set(2, missed)
    await asyncio.sleep(1)
    deadline.lift()
    assert not deadline.is_set
    await asyncio.sleep(10)
    assert missed == []


@on_a_virtual_clock
async def test_the_next_one_has_its_whole_time() -> None:
    deadline, missed = Deadline(), Missed()
    for _ in range(3):
        deadline.set(2, missed)
        await asyncio.sleep(1.5)
        deadline.lift()
    deadline.set(2, missed)
    await asyncio.sleep(10)
    assert missed == [6.5]


@on_a_virtual_clock
async def test_a_shorter_one_does_not_wait_for_the_longer_one_before() -> None:
    deadline, missed = Deadline(), Missed()
    deadline.set(8, missed)
    deadline.lift()
    deadline.set(1, missed)
    await asyncio.sleep(10)
    assert missed == [1]


@on_a_virtual_clock
async def test_one_that_has_ended_is_not_missed() -> None:
    deadline, missed = Deadline(), Missed()
    deadline.set(2, missed)
    deadline.end()
    await asyncio.sleep(10)
    assert (missed, deadline.is_set) == ([], False)
