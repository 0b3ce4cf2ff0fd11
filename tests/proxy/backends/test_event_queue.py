from __future__ import annotations

import asyncio

import pytest

from proxy.backends.event_queue import MAX_BACKLOG, Inbox
from proxy.contracts import BackendEvent, MessageEnded, TextPiece
from proxy.errors import BackendError


async def read(inbox: Inbox) -> list[list[BackendEvent]]:
    return [list(batch) async for batch in inbox]


async def test_a_batch_is_all_that_had_arrived() -> None:
    inbox = Inbox()
    inbox.put([TextPiece("a")])
    inbox.put([TextPiece("b"), MessageEnded()])
    assert await anext(inbox) == [TextPiece("a"), TextPiece("b"), MessageEnded()]
    inbox.put([TextPiece("c")])
    inbox.end()
    assert await read(inbox) == [[TextPiece("c")]]


async def test_the_consumer_sleeps_until_something_comes() -> None:
    inbox = Inbox()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        reading = group.create_task(read(inbox))
        await asyncio.sleep(0)
        inbox.put([TextPiece("a")])
        await asyncio.sleep(0)
        inbox.put([])
        inbox.end()
    assert reading.result() == [[TextPiece("a")]]


async def test_an_error_comes_after_what_was_before_it() -> None:
    inbox = Inbox()
    inbox.put([TextPiece("a")])
    inbox.end(BackendError("first"))
    inbox.end(BackendError("second"))
    inbox.put([TextPiece("late")])
    assert await anext(inbox) == [TextPiece("a")]
    for _ in range(2):
        with pytest.raises(BackendError, match="first"):
            await anext(inbox)


async def test_what_waits_is_bounded_and_what_comes_is_not() -> None:
    inbox = Inbox()
    assert inbox.put([TextPiece("x" * 5 * MAX_BACKLOG)])
    await asyncio.sleep(0)
    assert not inbox.put([TextPiece("y")])
    assert await anext(inbox) == [TextPiece("x" * 5 * MAX_BACKLOG)]
    assert inbox.put([TextPiece("z")])


async def test_what_comes_at_once_has_not_waited() -> None:
    inbox = Inbox()
    assert inbox.put([TextPiece("x" * 2 * MAX_BACKLOG)])
    assert inbox.put([MessageEnded()])
    await asyncio.sleep(0)
    assert not inbox.put([MessageEnded()])


async def test_a_flood_of_small_events_is_bounded_too() -> None:
    inbox = Inbox()
    taken = 0
    while inbox.put([TextPiece("x")]):
        taken += 1
        await asyncio.sleep(0)
    assert taken < 100_000


async def test_an_inbox_is_used_once_something_was_in_it() -> None:
    inbox = Inbox()
    inbox.put([])
    assert not inbox.used
    inbox.put([MessageEnded()])
    assert inbox.used
