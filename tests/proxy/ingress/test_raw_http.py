"""Bytes that no client library would send, and old ones that some still do."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from proxy.server import running_server
from proxy.settings import Settings
from tests.support.http_client import client, connect, raw
from tests.support.memory_backend import MemoryBackend
from tests.support.patience import PATIENCE
from tests.support.talking import GatedBackend

pytestmark = pytest.mark.usefixtures("no_lingering")

STREAMED = b'{"model":"m","input":"hi","stream":true}'
POST = b"POST /v1/responses HTTP/1.%d\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"


async def test_a_stream_over_http_1_0_is_not_chunked_and_ends_with_its_connection() -> None:
    async with running_server(Settings(port=0, store="none"), MemoryBackend(["Hello"])) as url:
        answer = await raw(url, POST % (0, len(STREAMED)) + b"\r\n" + STREAMED)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split()[1] == b"200"
    assert b"transfer-encoding" not in head.lower()
    assert body.startswith(b"event: response.created\ndata: {")
    assert body.endswith(b"data: [DONE]\n\n")


async def test_the_head_of_a_stream_leaves_with_its_first_events() -> None:
    async with running_server(Settings(port=0, store="none"), MemoryBackend(["Hello"])) as url:
        reader, writer = await connect(url)
        writer.write(POST % (1, len(STREAMED)) + b"\r\n" + STREAMED)
        async with asyncio.timeout(PATIENCE):
            first = await reader.read(2**16)
        writer.close()
    assert first.startswith(b"HTTP/1.1 200")
    assert b"event: response.created" in first


async def test_pipelined_requests_are_answered_in_their_order() -> None:
    backend = MemoryBackend([f"answer {number}" for number in range(5)])
    async with running_server(Settings(port=0, store="none"), backend) as url:
        body = b'{"model":"m","input":"hi"}'
        one = POST % (1, len(body)) + b"\r\n" + body
        last = one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
        answer = (await raw(url, one * 4 + last)).decode()
    assert [answer.index(f"answer {number}") for number in range(5)] == sorted(
        answer.index(f"answer {number}") for number in range(5)
    )
    assert answer.count("HTTP/1.1 200") == 5


SMUGGLED = b"GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n"


@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
        b"Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde",
        b"Content-Length: +3\r\n\r\nabc",
        b"Content-Length: 3, 3\r\n\r\nabc",
        b"Content-Length: 0x3\r\n\r\nabc",
        b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n3;a=\n\r\nabc\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
        b"Content-Length: 3\r\n folded: x\r\n\r\nabc",
        b"Content-Length: 3\nX: y\n\nabc",
        b"Content-Length: 3\r\nX\x00: y\r\n\r\nabc",
        b"Content-Length: 3\r\nX: " + b"y" * 9_000 + b"\r\n\r\nabc",
        b"Content-Length: 3\r\n" + b"X: y\r\n" * 300 + b"\r\nabc",
    ],
    ids=range(16),
)
async def test_framing_that_can_be_read_in_two_ways_is_refused_and_the_connection_closed(lines: bytes) -> None:
    head = b"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    backend = MemoryBackend([])
    async with running_server(Settings(port=0, store="none"), backend) as url:
        answer = await raw(url, head + lines)
    assert answer.count(b"HTTP/1.") == 1, "one of two requests would be somebody else's"
    status, body = int(answer.split()[1]), answer.partition(b"\r\n\r\n")[2]
    assert 400 <= status < 500
    assert set(orjson.loads(body)["error"]) == {"message", "type", "param", "code"}
    assert backend.prompts == []


@pytest.mark.parametrize(
    "junk",
    [b"\r\n\r\nJUNK\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
     b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET <script> HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x00" * 9_000],
)  # fmt: skip
async def test_what_is_no_request_gets_our_error_and_none_of_its_own_bytes(junk: bytes) -> None:
    async with running_server(Settings(port=0), MemoryBackend([])) as url:
        answer = await raw(url, junk)
    assert int(answer.split()[1]) in {400, 404}
    assert orjson.loads(answer.partition(b"\r\n\r\n")[2])["error"]["type"] == "invalid_request_error"
    for word in (b"JUNK", b"<script>", b"aiohttp", b"Python"):
        assert word not in answer


@pytest.mark.parametrize("header", ["Origin", "User-Agent", "X-Api-Key", "x-tagcall-dialect", "traceparent"])
async def test_a_header_that_is_no_utf_8_harms_nobody(header: str) -> None:
    body = b'{"model": "m", "input": "hi"}'
    head = b"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
    head += b"Content-Length: %d\r\n%s: \xff\r\n\r\n" % (len(body), header.encode())
    async with client("Hello") as (session, url):
        refused = header in {"Origin", "x-tagcall-dialect"}
        answer = await raw(url, head + body)
        assert answer.startswith(b"HTTP/1.1 4" if refused else b"HTTP/1.1 200")
        assert b"{" in answer
        async with session.get(f"{url.removesuffix('/v1')}/inspect/turns") as response:
            assert response.status == 200
            assert len(orjson.loads(await response.read())["turns"]) == (not refused)


async def test_nothing_stands_behind_the_head_of_a_stream_that_was_asked_for_alone() -> None:
    body = {"model": "m", "input": "hi", "background": True}
    async with client("Hello") as (session, url):
        async with session.post(f"{url}/responses", json=body) as response:
            made = (await response.json())["id"]
        async with session.get(f"{url}/responses/{made}?stream=true") as response:
            assert b"response.completed" in await response.read()
        for path in (f"/v1/responses/{made}?stream=true", "/inspect/events"):
            head = f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"
            asked_next = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            first, second = (await raw(url, (head + asked_next).encode())).split(b"HTTP/1.1 200 OK")[1:]
            assert first.endswith(b"\r\n\r\n")
            assert b"\r\n\r\n" not in first[:-4]
            assert b'"status"' in second


async def test_a_server_that_stops_closes_the_connections_of_those_it_still_answers() -> None:
    backend = GatedBackend(["Hello"])
    async with asyncio.TaskGroup() as group:
        async with running_server(Settings(port=0, store="none"), backend) as url:
            body = b'{"model":"m","input":"hi"}'
            answer = group.create_task(raw(url, POST % (1, len(body)) + b"\r\n" + body), name="client")
            await backend.asked.wait()
            idle_reader, idle_writer = await connect(url)
            idle_writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"connection: close" not in (await idle_reader.readuntil(b"\r\n\r\n")).lower()
            await idle_reader.readuntil(b"}")

            async def ask_while_it_stops() -> bytes:
                """It begins when the server waits for the first answer."""
                idle_writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                head = await idle_reader.readuntil(b"\r\n\r\n")
                backend.gate.set()
                return head

            asked = group.create_task(ask_while_it_stops(), name="another client")
        head = await asked
        assert head.split()[1] == b"200"
        assert b"connection: close" in head.lower()
        idle_writer.close()
    head, _, rest = answer.result().partition(b"\r\n\r\n")
    assert b"connection: close" in head.lower()
    assert b"Hello" in rest
