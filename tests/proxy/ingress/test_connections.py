"""Connections that cost something without asking for anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson
import pytest
from aiohttp import WSMsgType

from proxy.contracts import BackendEvent, TextPiece
from proxy.ingress import event_stream
from proxy.ingress.connections import MAX_REFUSED, Connection, Connections
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.clock import Clock
from tests.support.memory_backend import MemoryBackend, Script
from tests.support.patience import PATIENCE, SHIPPED, bound_connections
from tests.support.sockets import talk
from tests.support.talking import GatedBackend

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


@pytest.mark.usefixtures("no_lingering")
async def test_a_body_that_never_ends_is_answered_and_its_connection_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.ingress.bodies.BODY_DEADLINE", 0.05)
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
        await answered((reader, writer), HEAD % len(BODY) + BODY)
        writer.write(b"GET /v1/mo")
        await clock.put_forward(10)
        status, _ = await answer(reader)
    assert status == 408


@pytest.mark.parametrize(
    ("early", "late"),
    [
        (b"POST /v1/nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n", b"too late\n"),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\r\n"),
    ],
    ids=["what is left of a body that nobody read", "a blank line"],
)
async def test_what_follows_an_answered_request_is_no_slow_head(
    early: bytes, late: bytes, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    bound_connections(monkeypatch, head_deadline=10)
    async with serving() as address, connected(address) as stream:
        assert await answered(stream, early)
        stream[1].write(late)
        # One that comes behind it has been read as well.
        async with connected(address) as other:
            assert await healthy(other)
        await clock.put_forward(60)
        assert await healthy(stream)


async def test_blank_lines_are_not_the_first_byte_of_a_request(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    bound_connections(monkeypatch, first_byte_deadline=10, head_deadline=10)
    async with serving() as address, connected(address) as stream:
        stream[1].write(b"\r\n")
        async with connected(address) as other:
            assert await healthy(other)
        await clock.put_forward(10)
        assert await closed(stream) == b""


HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
LIST = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def answered(stream: Stream, request: bytes) -> bytes:
    """The head of its answer."""
    reader, writer = stream
    writer.write(request)
    async with asyncio.timeout(PATIENCE):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
        await reader.readexactly(int(length.split()[1]))
    return head


async def healthy(stream: Stream) -> bool:
    """Whether a request is answered."""
    return (await answered(stream, HEALTH)).startswith(b"HTTP/1.1 200")


async def closed(stream: Stream) -> bytes:
    """What comes before the connection is closed."""
    async with asyncio.timeout(PATIENCE):
        return await stream[0].read()


async def test_silent_connections_lock_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    bound_connections(monkeypatch, limit=4, idle=0)
    async with serving() as address, AsyncExitStack() as stack:
        silent = [await stack.enter_async_context(connected(address)) for _ in range(4)]
        for oldest in silent:
            assert await healthy(await stack.enter_async_context(connected(address)))
            # The one that has been silent for longest gave way, without a word.
            assert await closed(oldest) == b""


async def test_one_that_came_just_now_gives_way_to_nobody(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """Of many that come at once each is answered, if only that there is no room for it."""
    bound_connections(monkeypatch, limit=1, share=1.0, idle=20)
    async with serving() as address, connected(address) as early:
        async with connected(address) as (reader, writer):
            writer.write(LIST)
            assert (await answer(reader))[0] == 503
        assert await healthy(early)
        await clock.put_forward(20)
        async with connected(address) as late:
            assert await healthy(late)
            assert await closed(early) == b""


async def test_the_connection_that_was_idle_for_longest_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    bound_connections(monkeypatch, limit=2, idle=0)
    async with serving() as address, connected(address) as first, connected(address) as second:
        assert await healthy(second)
        assert await healthy(first)
        async with connected(address) as third:
            assert await healthy(third)
            assert await closed(second) == b""
            assert await healthy(first)


async def test_a_connection_without_a_first_byte_is_closed(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    bound_connections(monkeypatch, first_byte_deadline=10)
    async with serving() as address, connected(address) as silent, connected(address) as talks:
        assert await healthy(talks)
        await clock.put_forward(10)
        assert await closed(silent) == b""
        assert await healthy(talks)


async def test_connections_over_the_limit_are_told_to_come_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where all are being served: none of them is ended for the sake of another."""
    bound_connections(monkeypatch, limit=2)
    backend = GatedBackend(["one", "two"])
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(running_server(Settings(port=0, store="memory"), backend))
        address = (urlsplit(url).hostname or "", urlsplit(url).port or 0)
        asking = [await stack.enter_async_context(connected(address)) for _ in range(2)]
        for _, writer in asking:
            backend.asked.clear()
            writer.write(HEAD % len(BODY) + BODY)
            async with asyncio.timeout(PATIENCE):
                await backend.asked.wait()
        async with connected(address) as (reader, writer):
            writer.write(LIST)
            status, body = await answer(reader)
            assert status == 503
            assert body["error"]["type"] == "server_error"
        async with connected(address) as (reader, writer):
            writer.write(LIST.replace(b"\r\n\r\n", b"\r\nX-Tagcall-Elsewhere: @elsewhere\r\n\r\n"))
            async with asyncio.timeout(PATIENCE):
                refused = await reader.read()
            assert b"x-tagcall-elsewhere: yes\r\nX-Accel-Redirect: @elsewhere\r\n" in refused
        backend.gate.set()
        for reader, _ in asking:
            async with asyncio.timeout(PATIENCE):
                assert (await reader.readline()).startswith(b"HTTP/1.1 200")


class Wire(asyncio.Transport):
    """A transport in memory, from `address`; `unread` bytes wait for its client."""

    unread = 0

    def __init__(self, address: str) -> None:
        super().__init__({"peername": (address, 1)})
        self.written = b""
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return self.unread


Plugged = tuple[Connection, Wire]


def plug_in(pool: Connections, address: str = "10.0.0.1", *, asks: bool = False) -> Plugged:
    """One more connection; `asks`: with a request that is being served."""
    connection, wire = pool(), Wire(address)
    connection.connection_made(wire)
    if asks:
        connection.data_received(b"GET")
        connection.head_was_read()
        connection.works()
    return connection, wire


async def test_half_a_head_gives_way_with_an_answer() -> None:
    pool = Connections(asyncio.Protocol, limit=1, share=1.0, idle=0)
    slow, wire = plug_in(pool)
    slow.data_received(b"GET /healthz")
    _, other = plug_in(pool)
    assert wire.closed
    assert wire.written.startswith(b"HTTP/1.1 503")
    assert not other.closed


async def test_one_address_has_its_share_and_no_more() -> None:
    pool = Connections(asyncio.Protocol, limit=4, share=0.75, idle=0)
    greedy = [plug_in(pool, asks=True) for _ in range(3)]
    _, refused = plug_in(pool, asks=True)
    assert refused.written.startswith(b"HTTP/1.1 503")
    _, modest = plug_in(pool, "10.0.0.2", asks=True)
    assert (modest.written, modest.closed) == (b"", False)
    greedy[1][0].was_answered()
    _, again = plug_in(pool, asks=True)
    assert (again.written, again.closed) == (b"", False)
    assert [wire.closed for _, wire in greedy] == [False, True, False]


async def test_bodies_that_stall_lock_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    bound_connections(monkeypatch, limit=3, idle=0)
    async with serving("Hello") as address, AsyncExitStack() as stack:
        stalled = [await stack.enter_async_context(connected(address)) for _ in range(3)]
        for _, writer in stalled:
            writer.write(HEAD % 1_000 + b'{"model":')
            # It is served before another one comes: its head has been read.
            await writer.drain()
        assert await healthy(await stack.enter_async_context(connected(address)))
        assert (await answer(stalled[0][0]))[0] == 503


async def test_a_body_that_goes_on_is_no_stalled_one(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    bound_connections(monkeypatch, limit=1, share=1.0, idle=1)
    async with serving("Hello") as address, connected(address) as asking:
        writer = asking[1]
        writer.write(HEAD % len(BODY) + BODY[:5])
        for place in range(5, 10):
            await clock.put_forward(0.5)
            writer.write(BODY[place : place + 1])
            async with connected(address) as (reader, other):
                other.write(LIST)
                assert (await answer(reader))[0] == 503
        writer.write(BODY[10:])
        async with asyncio.timeout(PATIENCE):
            assert (await asking[0].readline()).startswith(b"HTTP/1.1 200")


async def test_sockets_without_a_turn_lock_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    bound_connections(monkeypatch, limit=2, idle=0)
    backend = GatedBackend(["one"])
    async with (
        running_server(Settings(port=0, store="memory"), backend) as url,
        talk(url, "/responses") as busy,
        talk(url, "/responses") as idle,
    ):
        await busy.say("response.create", model="m", input="hi")
        async with asyncio.timeout(PATIENCE):
            await backend.asked.wait()
        address = (urlsplit(url).hostname or "", urlsplit(url).port or 0)
        async with connected(address) as late:
            assert await healthy(late)
        async with asyncio.timeout(PATIENCE):
            closing = await idle.socket.receive()
        assert (closing.type, closing.data) == (WSMsgType.CLOSE, 1013)
        backend.gate.set()
        while (await busy.hear())["type"] != "response.completed":
            pass


async def test_who_asks_how_the_server_is_is_told_where_all_are_being_served() -> None:
    answered_by: list[bytes] = []

    class Inner(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            answered_by.append(data)

    pool = Connections(Inner, limit=1, share=1.0)
    plug_in(pool, asks=True)
    for line in (b"GET /healthz HTTP/1.1", b"HEAD /v1/readyz/ HTTP/1.1", b"GET /base/health HTTP/1.1"):
        watchman, wire = plug_in(pool)
        watchman.data_received(line + b"\r\n")
        assert answered_by.pop() == line + b"\r\n"
        watchman.head_was_read()
        watchman.was_answered()
        assert (wire.closed, wire.written) == (True, b"")
    for line in (b"GET /v1/models HTTP/1.1", b"POST /healthz HTTP/1.1", b"GET /healthz?x HTTP/1.1"):
        other, wire = plug_in(pool)
        other.data_received(line + b"\r\n")
        assert wire.written.startswith(b"HTTP/1.1 503")


async def test_hundreds_that_stall_at_one_address_leave_it_room() -> None:
    pool = Connections(asyncio.Protocol, idle=0)
    for _ in range(300):
        plug_in(pool, asks=True)[0].rests()
    for _ in range(1_000):
        plug_in(pool, asks=True)[0].becomes_socket()
    _, late = plug_in(pool)
    assert (late.written, late.closed) == (b"", False)


PROXY = [ip_network("10.0.0.1")]


async def test_a_trusted_proxy_has_no_share_and_room_of_its_own() -> None:
    pool = Connections(asyncio.Protocol, limit=4, share=0.5, proxies=PROXY, most_proxied=300)
    passed_on = [plug_in(pool, asks=True)[1] for _ in range(300)]
    assert not any(wire.written or wire.closed for wire in passed_on)
    assert plug_in(pool)[1].closed is False
    _, direct = plug_in(pool, "10.0.0.2", asks=True)
    assert (direct.written, direct.closed) == (b"", False)
    assert pool.trusts("::ffff:10.0.0.1")
    assert not any(map(pool.trusts, ["10.0.0.2", ""]))


async def test_through_a_trusted_proxy_each_forwarded_address_has_a_share(monkeypatch: pytest.MonkeyPatch) -> None:
    bound_connections(monkeypatch, most_proxied=2, share=0.5)
    backend = GatedBackend(["one", "two"])
    settings = Settings(port=0, store="memory", trusted_proxy=("127.0.0.0/8",))
    async with (
        running_server(settings, backend) as url,
        aiohttp.ClientSession() as session,
        asyncio.TaskGroup() as group,
    ):

        async def ask(client: str, path: str = "/v1/responses") -> int:
            headers = {"X-Forwarded-For": f"1.1.1.1, {client}", "Content-Type": "application/json"}
            method = "POST" if path.endswith("responses") else "GET"
            data = BODY if method == "POST" else None
            async with session.request(method, url.removesuffix("/v1") + path, data=data, headers=headers) as response:
                await response.read()
                return response.status

        first = group.create_task(ask("10.0.0.7"))
        async with asyncio.timeout(PATIENCE):
            await backend.asked.wait()
        assert await ask("10.0.0.7", "/v1/models") == 503
        assert await ask("10.0.0.7", "/healthz") == 200
        assert await ask("10.0.0.8", "/v1/models") == 200
        backend.gate.set()
        assert await first == 200
        assert await ask("10.0.0.7") == 200


async def test_only_so_many_wait_to_be_refused() -> None:
    pool = Connections(asyncio.Protocol, limit=1, share=1.0, idle=0)
    plug_in(pool, asks=True)
    waiting = [plug_in(pool) for _ in range(MAX_REFUSED)]
    _, dropped = plug_in(pool)
    assert (dropped.closed, dropped.written) == (True, b"")
    connection, wire = waiting[0]
    connection.data_received(b"GET")
    assert wire.written.startswith(b"HTTP/1.1 503")
    connection.connection_lost(None)
    assert not plug_in(pool)[1].closed


async def test_a_connection_over_the_limit_that_asks_nothing_is_closed_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bound_connections(monkeypatch, limit=0, head_deadline=0.05)
    async with serving() as address, connected(address) as (reader, _):
        status, _ = await answer(reader)
    assert status == 503


async def test_an_answer_that_nobody_reads_is_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    bound_connections(monkeypatch, unread_deadline=60)
    async with serving("word " * 2_000_000) as address, connected(address) as (reader, writer):
        writer.write(HEAD % len(BODY) + BODY)
        async with asyncio.timeout(PATIENCE):
            await reader.readuntil(b"\r\n\r\n")
        await clock.put_forward(60)
        async with asyncio.timeout(PATIENCE):
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await reader.readexactly(10_000_000)


async def test_a_client_that_reads_slowly_gets_all_of_it(clock: Clock) -> None:
    reading, wire = plug_in(Connections(asyncio.Protocol, unread_deadline=60), asks=True)
    wire.unread = 10_000_000
    reading.pause_writing()
    for _ in range(3):
        wire.unread -= 100_000
        await clock.put_forward(60)
        assert not wire.closed
    reading.resume_writing()
    await clock.put_forward(600)
    assert not wire.closed
    reading.pause_writing()
    await clock.put_forward(60)
    assert wire.closed


class Endless(MemoryBackend):
    """Always has more to say; knows when it was last asked for more, and when it was left."""

    def __init__(self) -> None:
        super().__init__([])
        self.left = asyncio.Event()
        self.asked_at = self.left_at = 0.0

    @asynccontextmanager
    async def stream(self, prompt: Any) -> AsyncIterator[AsyncIterator[list[BackendEvent]]]:
        loop = asyncio.get_running_loop()

        async def batches() -> AsyncIterator[list[BackendEvent]]:
            while True:
                self.asked_at = loop.time()
                yield [TextPiece("x" * 100_000)]
                await asyncio.sleep(0)

        try:
            yield batches()
        finally:
            self.left_at = loop.time()
            self.left.set()


async def test_a_client_that_stops_reading_is_cut_off_after_a_quarter_of_a_minute(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    for name in ("WRITE_DEADLINE", "HEARTBEAT", "HEAD_WAIT"):
        monkeypatch.setattr(event_stream, name, SHIPPED[f"proxy.ingress.event_stream.{name}"])
    backend = Endless()
    async with running_server(Settings(port=0, store="memory"), backend) as url:
        address = (urlsplit(url).hostname or "", urlsplit(url).port or 0)
        async with connected(address) as (_, writer):
            body = b'{"model":"m","input":"hi","stream":true}'
            writer.write(HEAD % len(body) + body)
            while not backend.left.is_set():
                await clock.put_forward(1)
    # It is looked for every 10 seconds.
    assert 15 <= backend.left_at - backend.asked_at < 45
