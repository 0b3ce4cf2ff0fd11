"""What holds for every WebSocket: who is let in, what a message may be, and how connections end."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import structlog

from proxy.contracts import BackendEvent, TextPiece
from proxy.ingress.request_log import RequestLog
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.clock import Clock
from tests.support.http_client import client, error_of
from tests.support.memory_backend import MemoryBackend
from tests.support.patience import PATIENCE, bound_connections
from tests.support.sockets import socket_to, talk
from tests.support.talking import GatedBackend, SilentBackend

PATHS = ["/responses", "/realtime?model=m"]
CREATE = {"type": "response.create", "model": "m", "input": "hi"}
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}


def key() -> str:
    return base64.b64encode(os.urandom(16)).decode()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Host": "evil.example"}, 421),
        ({"Authorization": "Bearer other"}, 401),
        ({"Authorization": ""}, 401),
        ({"Sec-WebSocket-Version": "6"}, 400),
        ({"Sec-WebSocket-Key": "short"}, 400),
    ],
)
async def test_who_is_not_let_in_is_told_so_before_the_upgrade(path: str, headers: dict[str, str], status: int) -> None:
    async with client(api_key=("k",)) as (session, url):
        sent = {**UPGRADE, "Sec-WebSocket-Key": key(), "Authorization": "Bearer k", **headers}
        async with session.get(url + path, headers=sent) as response:
            assert response.status == status
            await error_of(response)


@pytest.mark.parametrize("path", PATHS)
async def test_a_get_that_asks_for_no_upgrade_is_told_what_it_is(path: str) -> None:
    async with client() as (session, url), session.get(url + path) as response:
        assert (response.status, response.headers["Upgrade"]) == (426, "websocket")
        assert (await error_of(response))["code"] == "upgrade_required"


async def test_nothing_but_a_get_is_upgraded() -> None:
    async with client() as (session, url):
        for method, status in (("GET", 101), ("HEAD", 426)):
            sent = {**UPGRADE, "Sec-WebSocket-Key": key()}
            async with session.request(method, f"{url}/responses", headers=sent) as response:
                assert response.status == status


async def test_a_page_gives_its_key_as_a_protocol() -> None:
    async with client(api_key=("k",)) as (session, url):
        protocols = ("realtime", "openai-insecure-api-key.k", "openai-beta.realtime-v1")
        headers = {"Origin": "app://obsidian.md"}
        async with session.ws_connect(f"{url}/realtime?model=m", protocols=protocols, headers=headers) as socket:
            assert socket.protocol == "realtime"
            assert "modalities" in json.loads(await socket.receive_str())["session"]
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(f"{url}/realtime?model=m", protocols=("openai-insecure-api-key.x",))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("others", [(), ("other",)])
async def test_a_page_that_offers_its_key_alone_is_answered_a_protocol(
    path: str, others: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    async with client(api_key=("secret",)) as (session, url):
        # A browser closes a socket that takes none of those it offered.
        offered = "openai-insecure-api-key.secret"
        async with session.ws_connect(url + path, protocols=(*others, offered)) as socket:
            assert socket.protocol == offered
    assert "secret" not in caplog.text


async def test_nothing_is_compressed() -> None:
    async with client() as (session, url), session.ws_connect(f"{url}/responses", compress=15) as socket:
        assert socket.compress == 0


@pytest.mark.parametrize("path", PATHS)
async def test_a_binary_frame_is_an_error_and_no_more(path: str) -> None:
    async with socket_to(path, "Hello") as (socket, _):
        if "realtime" in path:
            await socket.hear()
        await socket.socket.send_bytes(b"{}")
        assert (await socket.hear())["type"] == "error"
        await socket.socket.ping()
        await socket.say("response.dance")
        assert (await socket.hear())["type"] == "error"


async def test_a_message_over_the_limit_closes_its_connection_and_no_other() -> None:
    async with socket_to("/responses", "Hello", max_body=2_000) as (socket, _):
        await socket.socket.send_str("x" * 3_000)
        assert await socket.ended() == aiohttp.WSCloseCode.MESSAGE_TOO_BIG


async def test_a_connection_outlives_the_deadline_of_a_requests_head(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    bound_connections(monkeypatch, head_deadline=10)
    backend = GatedBackend(["Hello"])
    async with socket_to("/responses", backend=backend) as (socket, _):
        await socket.socket.send_json(CREATE)
        await socket.hear_until("response.output_text.delta")
        await clock.put_forward(60)
        backend.gate.set()
        await socket.hear_until("response.completed")


def transport_of(socket: aiohttp.ClientWebSocketResponse) -> asyncio.Transport:
    connection = socket._response.connection
    assert connection is not None
    assert connection.transport is not None
    return connection.transport


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("politely", [True, False])
async def test_a_client_that_goes_ends_its_turn(path: str, politely: bool) -> None:
    backend = SilentBackend()
    async with socket_to(path, backend=backend) as (socket, _):
        await socket.socket.send_json(CREATE)
        async with asyncio.timeout(PATIENCE):
            await backend.asked.wait()
        if politely:
            await socket.socket.close()
        else:
            transport_of(socket.socket).abort()
        async with asyncio.timeout(PATIENCE):
            await backend.left.wait()


class EndlessBackend(MemoryBackend):
    """Says more than anybody reads."""

    def __init__(self) -> None:
        super().__init__([])
        self.left = asyncio.Event()

    @asynccontextmanager
    async def stream(self, prompt: Any) -> AsyncIterator[AsyncIterator[list[BackendEvent]]]:
        async def batches() -> AsyncIterator[list[BackendEvent]]:
            while True:
                yield [TextPiece("x" * 100_000)]
                await asyncio.sleep(0)

        try:
            yield batches()
        finally:
            self.left.set()


async def test_a_client_that_stops_reading_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.ingress.websocket.socket.WRITE_DEADLINE", 0.05)
    backend = EndlessBackend()
    async with running_server(Settings(port=0, store="memory"), backend) as url:
        address = urlsplit(url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        head = "".join(f"{name}: {value}\r\n" for name, value in {**UPGRADE, "Sec-WebSocket-Key": key()}.items())
        writer.write(f"GET /v1/responses HTTP/1.1\r\nHost: localhost\r\n{head}\r\n".encode())
        async with asyncio.timeout(PATIENCE):
            await reader.readuntil(b"\r\n\r\n")
        message = json.dumps(CREATE).encode()
        writer.write(bytes([0x81, 0x80 | len(message), 0, 0, 0, 0]) + message)
        async with asyncio.timeout(PATIENCE):
            await backend.left.wait()
        writer.close()


async def test_one_that_answers_no_ping_has_gone(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    monkeypatch.setattr("proxy.ingress.websocket.socket.PING_INTERVAL", 20.0)
    backend = SilentBackend()
    async with (
        running_server(Settings(port=0, store="memory"), backend) as url,
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{url}/responses", autoping=False) as socket,
    ):
        await socket.send_json(CREATE)
        await backend.asked.wait()
        await clock.put_forward(22)  # aiohttp rounds up
        assert not backend.left.is_set(), "it has half as long to answer"
        await clock.put_forward(12)
        async with asyncio.timeout(PATIENCE):
            await backend.left.wait()


@pytest.mark.parametrize("path", PATHS)
async def test_a_server_that_stops_says_goodbye_to_who_is_only_waiting(path: str) -> None:
    async with aiohttp.ClientSession() as session:
        async with running_server(Settings(port=0, store="memory"), MemoryBackend([])) as url:
            socket = await session.ws_connect(url + path)
        async with asyncio.timeout(PATIENCE):
            while (frame := await socket.receive()).type is aiohttp.WSMsgType.TEXT:
                pass
        assert (frame.type, frame.data) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.GOING_AWAY)


async def test_a_server_that_stops_lets_a_turn_end_and_begins_no_other() -> None:
    backend = GatedBackend(["One", "Two"])
    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        async with running_server(Settings(port=0, store="memory"), backend) as url:
            socket = await session.ws_connect(f"{url}/responses")
            for _ in range(2):
                await socket.send_json(CREATE)
            async with asyncio.timeout(PATIENCE):
                await backend.asked.wait()
            group.create_task(_read_on(socket, backend), name="the rest of the answer")


async def _read_on(socket: aiohttp.ClientWebSocketResponse, backend: GatedBackend) -> None:
    """While the server waits for the turn: it ends, what waited behind it is refused, then comes the close."""
    events: list[dict[str, Any]] = []
    async with asyncio.timeout(PATIENCE):
        while not events or events[-1]["type"] != "response.output_text.delta":
            events.append(json.loads(await socket.receive_str()))
        backend.gate.set()
        while (frame := await socket.receive()).type is aiohttp.WSMsgType.TEXT:
            events.append(json.loads(frame.data))
    types = [event["type"] for event in events]
    assert types[-2:] == ["response.completed", "error"]
    assert events[-1]["error"]["code"] == "server_shutting_down"
    assert frame.data == aiohttp.WSCloseCode.GOING_AWAY


async def test_each_turn_has_its_line_in_the_log() -> None:
    with structlog.testing.capture_logs() as logs:
        async with running_server(Settings(port=0, store="memory"), MemoryBackend(["One", "Two"])) as url:
            async with talk(url, "/responses") as socket:
                for _ in range(2):
                    await socket.socket.send_json(CREATE)
                    await socket.hear_until("response.completed")
                await socket.say("response.create", model="m")
                await socket.hear()
    lines = [line for line in logs if line["event"] == "request"]
    assert [(line["method"], line["status"], line["outcome"]) for line in lines[:3]] == [
        ("WS", 200, "done"),
        ("WS", 200, "done"),
        ("WS", 400, "refused"),
    ]
    assert lines[0]["model"] == "m"
    assert lines[2]["error"] == "missing_required_parameter"
    assert (lines[3]["method"], lines[3]["outcome"]) == ("GET", "done")
    assert len(lines) == 4


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("busy", [True, False])
async def test_a_client_that_goes_without_a_goodbye_has_gone_only_in_mid_turn(
    path: str, busy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = asyncio.Queue[str]()
    monkeypatch.setattr(RequestLog, "write", lambda entry, status: lines.put_nowait(entry.outcome(status)))
    backend = SilentBackend()
    async with socket_to(path, backend=backend) as (socket, _):
        if busy:
            await socket.socket.send_json(CREATE)
            async with asyncio.timeout(PATIENCE):
                await backend.asked.wait()
        elif "realtime" in path:
            await socket.hear()
        transport_of(socket.socket).close()  # as codex does
        async with asyncio.timeout(PATIENCE):
            told = [await lines.get() for _ in range(1 + busy)]
    assert told == (["client gone"] * 2 if busy else ["done"])
