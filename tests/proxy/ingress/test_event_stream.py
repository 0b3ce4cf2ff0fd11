"""One event stream to a client: what leaves of it, when, and what it says if its client goes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import aiohttp
import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpServer

from proxy.ingress import event_stream
from proxy.ingress.event_stream import EventStream, StreamSink, stream_subscription
from proxy.ingress.request_log import RequestLog
from proxy.ingress.state import REQUEST_LOG, WIRE_FORMAT, WRITTEN
from proxy.wire.responses.request import parse_responses_request
from proxy.wire.responses.responses_builder import ResponsesBuilder
from proxy.wire.sse import DONE, KEEP_ALIVE, encode_chunks, encode_typed
from proxy.wire.wire_format import OPENAI, WireFormat
from tests.support.patience import PATIENCE

Act = Callable[[EventStream], Awaitable[None]]
Handle = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def never() -> None:
    await asyncio.Event().wait()


def acting(act: Act) -> Handle:
    async def handle(request: web.Request) -> web.StreamResponse:
        stream = EventStream(request)
        await act(stream)
        return stream.reply

    return handle


async def served(aiohttp_server: AiohttpServer, handle: Handle) -> tuple[str, RequestLog]:
    """Where a client gets the stream, and the entry of its request."""
    entry = RequestLog("req_1", "GET", "/")

    async def answer(request: web.Request) -> web.StreamResponse:
        request[WIRE_FORMAT], request[REQUEST_LOG] = OPENAI, entry
        return await handle(request)

    app = web.Application()
    app.router.add_get("/", answer)
    server = await aiohttp_server(app)
    return str(server.make_url("/")), entry


async def body_of(url: str) -> bytes:
    async with asyncio.timeout(PATIENCE), aiohttp.ClientSession() as session, session.get(url) as response:
        assert response.content_type == "text/event-stream"
        assert response.headers["X-Accel-Buffering"] == "no"
        return await response.read()


async def test_what_opens_an_answer_leaves_before_its_first_piece_and_the_end_behind_its_last(
    aiohttp_server: AiohttpServer,
) -> None:
    async def act(stream: EventStream) -> None:
        async with stream.open(lambda: [b"opening "]):
            begun = [stream.begun]
            await stream.write([b"one ", b"two "])
            assert [*begun, stream.begun] == [False, True]
            await stream.end()
        assert stream.sent == len(b"opening one two ") + len(DONE)

    url, entry = await served(aiohttp_server, acting(act))
    assert await body_of(url) == b"opening one two " + DONE
    assert entry.whole


@pytest.mark.parametrize("joins", [True, False])
async def test_what_opens_an_answer_is_made_while_the_model_begins(aiohttp_server: AiohttpServer, joins: bool) -> None:
    made: list[str] = []
    written: list[bytes] = []

    def encode(events: Iterable[Mapping[str, object]]) -> list[bytes]:
        made.extend(str(event["type"]) for event in events)
        return encode_typed(events) if joins else encode_chunks(events)

    async def handle(request: web.Request) -> web.StreamResponse:
        request[WIRE_FORMAT], request[WRITTEN] = WireFormat(encode, joins=joins), written
        stream = EventStream(request)
        sink = StreamSink(stream)
        async with sink.open(ResponsesBuilder(parse_responses_request({"model": "m", "input": "hi"}))):
            asyncio.get_running_loop().call_soon(made.append, "asked")
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert made == ["asked", "response.created", "response.in_progress"]
            await sink.send([{"type": "one"}, {"type": "two"}])
            await sink.finish([], None)
        return stream.reply

    url, _ = await served(aiohttp_server, handle)
    await body_of(url)
    assert made == ["asked", "response.created", "response.in_progress", "one", "two"]
    assert len(written) == (2 if joins else 5)


async def test_an_answer_that_does_not_begin_has_its_head_and_its_opening_all_the_same(
    aiohttp_server: AiohttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "HEAD_WAIT", 0.0)
    read = asyncio.Event()

    async def act(stream: EventStream) -> None:
        async with stream.open(lambda: [b"opening\n"]):
            await read.wait()
            await stream.end()

    url, _ = await served(aiohttp_server, acting(act))
    async with asyncio.timeout(PATIENCE), aiohttp.ClientSession() as session, session.get(url) as response:
        assert await response.content.readline() == b"opening\n"
        read.set()
        assert await response.read() == DONE


@pytest.mark.parametrize(("pulse", "seen"), [(tuple, KEEP_ALIVE), (lambda: [b"I think\n\n"], b"I think\n\n")])
async def test_a_silence_is_broken_by_what_the_answer_or_else_its_api_has_for_it(
    aiohttp_server: AiohttpServer,
    monkeypatch: pytest.MonkeyPatch,
    pulse: Callable[[], Sequence[bytes]],
    seen: bytes,
) -> None:
    monkeypatch.setattr(event_stream, "HEAD_WAIT", 0.0)
    monkeypatch.setattr(event_stream, "HEARTBEAT", 0.01)
    read = asyncio.Event()

    async def act(stream: EventStream) -> None:
        async with stream.open(pulse=pulse):
            await read.wait()

    url, _ = await served(aiohttp_server, acting(act))
    async with asyncio.timeout(PATIENCE), aiohttp.ClientSession() as session, session.get(url) as response:
        assert await response.content.readexactly(2 * len(seen)) == 2 * seen
        read.set()


@pytest.mark.parametrize("fault", [None, ZeroDivisionError("ours")])
async def test_a_fault_of_ours_does_not_hide_behind_a_client_that_leaves(
    aiohttp_server: AiohttpServer, monkeypatch: pytest.MonkeyPatch, fault: Exception | None
) -> None:
    monkeypatch.setattr(event_stream, "HEAD_WAIT", 0.0)
    monkeypatch.setattr(event_stream, "HEARTBEAT", 0.0)
    raised: list[type[BaseException]] = []

    def gone() -> Sequence[bytes]:
        raise ConnectionResetError("the client has gone")

    async def act(stream: EventStream) -> None:
        try:
            async with stream.open(pulse=gone):
                try:
                    await never()
                finally:
                    if fault is not None:
                        raise fault
        except Exception as error:  # noqa: BLE001 -- whatever it is
            raised.append(type(error))

    url, _ = await served(aiohttp_server, acting(act))
    await body_of(url)
    assert raised == [ConnectionResetError if fault is None else ZeroDivisionError]


async def test_who_reads_what_is_made_elsewhere_may_leave(aiohttp_server: AiohttpServer) -> None:
    left, closed, over = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def endless() -> event_stream.Subscription:
        try:
            yield [b"one ", b"two\n"]
            await left.wait()
            while True:
                yield [b"more\n"]
                await asyncio.sleep(0)
        finally:
            closed.set()

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await stream_subscription(request, endless())
        finally:
            over.set()

    url, entry = await served(aiohttp_server, handle)
    async with asyncio.timeout(PATIENCE):
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            assert await response.content.readline() == b"one two\n"
            response.close()
        left.set()
        await over.wait()
    assert closed.is_set()
    assert (entry.client_gone, entry.whole) == (True, False)
