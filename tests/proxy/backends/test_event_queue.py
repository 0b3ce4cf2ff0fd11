from __future__ import annotations

import asyncio

import pytest

from proxy.backends.event_queue import MAX_BACKLOG, EventQueue
from proxy.contracts import BackendEvent, MessageEnded, TextPiece
from proxy.errors import BackendError
from tests.support.patience import PATIENCE


async def read(queue: EventQueue) -> list[list[BackendEvent]]:
    return [list(batch) async for batch in queue]


async def test_a_batch_is_all_that_had_arrived() -> None:
    queue = EventQueue()
    queue.put([TextPiece("a")])
    queue.put([TextPiece("b"), MessageEnded()])
    assert await anext(queue) == [TextPiece("a"), TextPiece("b"), MessageEnded()]
    queue.put([TextPiece("c")])
    queue.end()
    assert await read(queue) == [[TextPiece("c")]]


async def test_the_consumer_sleeps_until_something_comes() -> None:
    queue = EventQueue()
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        reading = group.create_task(read(queue))
        await asyncio.sleep(0)
        queue.put([TextPiece("a")])
        queue.hand_over()
        await asyncio.sleep(0)
        queue.put([])
        queue.hand_over()
        queue.end()
    assert reading.result() == [[TextPiece("a")]]


async def test_outside_of_tasks_the_consumer_goes_on_as_soon_as_it_is_handed_what_came() -> None:
    queue = EventQueue()
    heard: list[list[BackendEvent]] = []
    seen: list[int] = []

    async def note() -> None:
        async for batch in queue:
            heard.append(list(batch))  # noqa: PERF401 -- one by one

    def reader() -> None:
        queue.put([TextPiece("a")])
        queue.put([TextPiece("b")])
        seen.append(len(heard))
        queue.hand_over(at_once=True)
        seen.append(len(heard))
        queue.hand_over(at_once=True)
        queue.end()

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        group.create_task(note())
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(reader)
    assert seen == [0, 1]
    assert heard == [[TextPiece("a"), TextPiece("b")]]


async def test_a_consumer_that_was_cancelled_is_not_woken() -> None:
    queue = EventQueue()
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        reading = group.create_task(read(queue))
        await asyncio.sleep(0)
        reading.cancel()
        queue.put([TextPiece("a")])
        queue.hand_over()
        asyncio.get_running_loop().call_soon(queue.hand_over)
    assert reading.cancelled()
    assert await anext(queue) == [TextPiece("a")]


async def test_an_error_comes_after_what_was_before_it() -> None:
    queue = EventQueue()
    queue.put([TextPiece("a")])
    queue.end(BackendError("first"))
    queue.end(BackendError("second"))
    queue.put([TextPiece("late")])
    assert await anext(queue) == [TextPiece("a")]
    for _ in range(2):
        with pytest.raises(BackendError, match="first"):
            await anext(queue)


async def test_what_waits_is_bounded_and_what_comes_is_not() -> None:
    queue = EventQueue()
    assert queue.put([TextPiece("x" * 5 * MAX_BACKLOG)])
    await asyncio.sleep(0)
    assert not queue.put([TextPiece("y")])
    assert await anext(queue) == [TextPiece("x" * 5 * MAX_BACKLOG)]
    assert queue.put([TextPiece("z")])


async def test_what_comes_at_once_has_not_waited() -> None:
    queue = EventQueue()
    assert queue.put([TextPiece("x" * 2 * MAX_BACKLOG)])
    assert queue.put([MessageEnded()])
    await asyncio.sleep(0)
    assert not queue.put([MessageEnded()])


async def test_a_flood_of_small_events_is_bounded_too() -> None:
    queue = EventQueue()
    taken = 0
    while queue.put([TextPiece("x")]):
        taken += 1
        await asyncio.sleep(0)
    assert taken < 100_000


async def test_a_queue_is_used_once_something_was_in_it() -> None:
    queue = EventQueue()
    queue.put([])
    assert not queue.used
    queue.put([MessageEnded()])
    assert queue.used
