"""How long a server that answers is waited for, on a clock that takes no time."""

from __future__ import annotations

import asyncio
from contextlib import closing

import aiohttp
import pytest
from aiohttp.base_protocol import BaseProtocol

from proxy.backends.chat.patience import Patience
from tests.support.virtual_clock import on_a_virtual_clock

SECONDS = 10.0
TOTAL = 100.0


def begin() -> tuple[Patience, aiohttp.StreamReader]:
    loop = asyncio.get_running_loop()
    connected = BaseProtocol(loop)
    connected.connection_made(asyncio.Transport())
    content = aiohttp.StreamReader(connected, 1 << 16, loop=loop)
    return Patience(content, SECONDS, TOTAL), content


def come(content: aiohttp.StreamReader, *moments: float) -> None:
    """A byte at each of these moments."""
    for moment in moments:
        asyncio.get_running_loop().call_at(moment, content.feed_data, b"x")


async def lost(patience: Patience, content: aiohttp.StreamReader) -> float:
    """When the server has been silent for too long for somebody who reads all the time."""
    with pytest.raises(TimeoutError):
        while True:
            await patience.read(content.readany())
    return asyncio.get_running_loop().time()


@on_a_virtual_clock
async def test_silence_is_waited_for_so_long_and_no_longer() -> None:
    patience, content = begin()
    with closing(patience):
        assert await lost(patience, content) == SECONDS


@on_a_virtual_clock
async def test_whatever_comes_begins_the_wait_anew() -> None:
    patience, content = begin()
    come(content, 9, 18)
    with closing(patience):
        assert await lost(patience, content) == 18 + SECONDS


@on_a_virtual_clock
async def test_a_server_is_not_silent_while_nobody_reads() -> None:
    patience, content = begin()
    come(content, 1, 35)
    with closing(patience):
        await patience.read(content.readany())
        await asyncio.sleep(30)
        await patience.read(content.readany())
        assert await lost(patience, content) == 35 + SECONDS


@on_a_virtual_clock
async def test_an_answer_without_an_end_has_one() -> None:
    patience, content = begin()
    come(content, *range(5, 500, 5))
    with closing(patience):
        assert await lost(patience, content) == TOTAL


@on_a_virtual_clock
async def test_the_wait_may_become_less() -> None:
    patience, content = begin()
    come(content, 4)
    with closing(patience):
        await patience.read(content.readany())
        patience.shorten(3)
        assert await lost(patience, content) == 7


@on_a_virtual_clock
async def test_the_rest_of_an_answer_may_have_an_earlier_end() -> None:
    patience, content = begin()
    come(content, 1, 2, 3, 4)
    with closing(patience):
        patience.over = 2.5
        assert await lost(patience, content) == 2.5


@on_a_virtual_clock
async def test_an_earlier_end_may_be_taken_back() -> None:
    patience, content = begin()
    come(content, 1)
    with closing(patience):
        patience.over = 2.5
        await patience.read(content.readany())
        patience.over = patience.last
        assert await lost(patience, content) == 1 + SECONDS


@on_a_virtual_clock
async def test_nothing_comes_of_it_once_it_is_closed() -> None:
    patience, content = begin()
    patience.close()
    await asyncio.sleep(TOTAL)
    assert content.exception() is None
