"""Connections that cost something without asking for anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

from proxy.contracts import BackendEvent, TextPiece
from proxy.ingress import bodies, event_stream
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.clock import Clock
from tests.support.memory_backend import MemoryBackend, Script
from tests.support.patience import PATIENCE, bound_connections

BODY = b'{"model":"m","input":"hi"}'
HEAD = b"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


@asynccontextmanager
async def serving(*answers: Script) -> AsyncIterator[tuple[str, int]]:
    async with running_server(Settings(port=0, store="memory"), MemoryBackend(list(answers))) as url:
        parts = urlsplit(url)
        assert parts.hostname
        assert parts.port
        yield parts.hostname, parts.port


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def connected(address: tuple[str, int]) -> AsyncIterator[Stream]:
    reader, writer = await asyncio.open_connection(*address)
    try:
        yield reader, writer
    finally:
        writer.close()


async def answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, Any]]:
    """Status and body of an answer after which the connection is closed."""
    async with asyncio.timeout(PATIENCE):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    return int(head.split()[1]), orjson.loads(body)


async def test_a_head_that_never_ends_is_answered_and_its_connection_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    bound_connections(monkeypatch, head_deadline=0.05)
    async with serving("Hello") as address, connected(address) as (reader, writer):
        writer.write(b"POST /v1/responses HTTP/1.1\r\nHost: loc")
        status, body = await answer(reader)
    assert status == 408
    assert body["error"]["type"] == "invalid_request_error"


async def test_a_body_that_never_ends_is_answered_and_its_connection_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODY_DEADLINE", 0.05)
    async with serving("Hello") as address, connected(address) as (reader, writer):
        writer.write(HEAD % 1_000 + b'{"model":')
        status, body = await answer(reader)
    assert status == 408
    assert "body" in body["error"]["message"]


async def test_a_slow_answer_is_not_a_slow_head(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    bound_connections(monkeypatch, head_deadline=10)
    asked, served = asyncio.Event(), asyncio.Event()

    class Slow(MemoryBackend):
        @asynccontextmanager
        async def stream(self, prompt: Any) -> AsyncIterator[AsyncIterator[list[BackendEvent]]]:
            async def batches() -> AsyncIterator[list[BackendEvent]]:
                asked.set()
                await served.wait()
                yield [TextPiece("Hello")]

            yield batches()

    async with running_server(Settings(port=0, store="memory"), Slow([])) as url:
        address = (urlsplit(url).hostname or "", urlsplit(url).port or 0)
        async with connected(address) as (reader, writer):
            writer.write(HEAD % len(BODY) + BODY)
            await asked.wait()
            await clock.put_forward(60)
            served.set()
            async with asyncio.timeout(PATIENCE):
                assert (await reader.readline()).startswith(b"HTTP/1.1 200")


async def test_a_second_request_on_a_connection_has_its_own_deadline(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    bound_connections(monkeypatch, head_deadline=10)
    async with serving("Hello") as address, connected(address) as (reader, writer):
        writer.write(HEAD % len(BODY) + BODY)
        async with asyncio.timeout(PATIENCE):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
            await reader.readexactly(int(length.split()[1]))
        writer.write(b"GET /v1/mo")
        await clock.put_forward(10)
        status, _ = await answer(reader)
    assert status == 408


async def test_connections_over_the_limit_are_told_to_come_later(monkeypatch: pytest.MonkeyPatch) -> None:
    bound_connections(monkeypatch, limit=2)
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with serving() as address, AsyncExitStack() as stack:
        for _ in range(2):
            reader, writer = await stack.enter_async_context(connected(address))
            writer.write(request)
            async with asyncio.timeout(PATIENCE):
                await reader.readuntil(b"\r\n\r\n")
        async with connected(address) as (reader, writer):
            writer.write(request)
            status, body = await answer(reader)
            assert status == 503
            assert body["error"]["type"] == "server_error"
        await stack.aclose()
        async with asyncio.timeout(PATIENCE):
            while True:  # until the server has seen them go
                async with connected(address) as (reader, writer):
                    writer.write(request)
                    if b"200" in await reader.readline():
                        break


async def test_a_connection_over_the_limit_that_asks_nothing_is_closed_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bound_connections(monkeypatch, limit=0, head_deadline=0.05)
    async with serving() as address, connected(address) as (reader, _):
        status, _ = await answer(reader)
    assert status == 503


async def test_a_client_that_stops_reading_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "WRITE_DEADLINE", 0.05)
    monkeypatch.setattr(event_stream, "HEARTBEAT", 0.05)
    monkeypatch.setattr(event_stream, "HEAD_WAIT", 0.01)
    left = asyncio.Event()

    class Endless(MemoryBackend):
        @asynccontextmanager
        async def stream(self, prompt: Any) -> AsyncIterator[AsyncIterator[list[BackendEvent]]]:
            async def batches() -> AsyncIterator[list[BackendEvent]]:
                while True:
                    yield [TextPiece("x" * 100_000)]
                    await asyncio.sleep(0)

            try:
                yield batches()
            finally:
                left.set()

    async with running_server(Settings(port=0, store="memory"), Endless([])) as url:
        address = (urlsplit(url).hostname or "", urlsplit(url).port or 0)
        async with connected(address) as (_, writer):
            body = b'{"model":"m","input":"hi","stream":true}'
            writer.write(HEAD % len(body) + body)
            async with asyncio.timeout(PATIENCE):
                await left.wait()
