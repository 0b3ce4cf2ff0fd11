"""The whole server under clients that come all at once, vanish, or do not read. Its child runs many turns at once."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import psutil
import pytest

from proxy.server import running_server
from proxy.settings import Settings
from tests.support.patience import PATIENCE, bound_connections

PROGRAM = Path(__file__).resolve().parents[1] / "support" / "busy_app_server.py"
MIB = 1 << 20
# How many come and go away.
CLIENTS = 500

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="counts descriptors, which Windows does not have")


@dataclass
class Endpoint:
    url: str
    log: Path

    @property
    def address(self) -> tuple[str, int]:
        return urlsplit(self.url).hostname or "", urlsplit(self.url).port or 0

    def notes(self, what: str) -> set[str]:
        """The marks of the turns that have started, were interrupted, or ended."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return {mark for noted, mark in map(json.loads, lines) if noted == what}

    async def gauge(self, http: aiohttp.ClientSession, name: str) -> float:
        async with http.get(self.url.removesuffix("/v1") + "/metrics") as response:
            lines = (await response.text()).splitlines()
        (value,) = (float(line.split()[1]) for line in lines if line.startswith(f"{name} "))
        return value


@asynccontextmanager
async def serving(folder: Path, **settings: Any) -> AsyncIterator[Endpoint]:
    program, log = folder / "codex", folder / "log"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {PROGRAM} {log} "$@"\n')
    program.chmod(0o700)
    chosen = Settings(port=0, codex=str(program), codex_home=folder / "home", store="none", **settings)
    async with running_server(chosen) as url:
        yield Endpoint(url, log)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():  # noqa: ASYNC110 -- what another process and the system do gives no sign
            await asyncio.sleep(0.02)


async def no_open_turn(endpoint: Endpoint, http: aiohttp.ClientSession) -> None:
    async with asyncio.timeout(PATIENCE):
        while await endpoint.gauge(http, "tagcall_backend_open_turns"):  # noqa: ASYNC110 -- as above
            await asyncio.sleep(0.02)


def body(mark: str, *, stream: bool = True, **wanted: Any) -> dict[str, Any]:
    return {"model": "m", "input": json.dumps({"mark": mark, **wanted}), "stream": stream}


def request(mark: str, **wanted: Any) -> bytes:
    content = json.dumps(body(mark, **wanted)).encode()
    head = "POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


async def ask(http: aiohttp.ClientSession, endpoint: Endpoint, mark: str, **wanted: Any) -> tuple[int, str, str | None]:
    """The status, the text and `retry-after`; of a refusal the type of its error."""
    async with http.post(f"{endpoint.url}/responses", json=body(mark, **wanted)) as response:
        answer = await response.text()
        if response.status != 200:
            return response.status, json.loads(answer)["error"]["type"], response.headers.get("retry-after")
    events = [json.loads(block.partition("data: ")[2]) for block in answer.split("\n\n") if block.startswith("event: ")]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[-1]["type"] == "response.completed", events[-1]
    return 200, "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta"), None


# When a client goes -> what its turn does meanwhile
MOMENTS: dict[str, dict[str, Any]] = {
    "at once": {"silent": True},
    "while it thinks": {"silent": True},
    "while it thinks, without a stream": {"silent": True, "stream": False},
    "in mid answer": {"pieces": 10_000, "pause": 0.01},
    "in mid answer, without a stream": {"pieces": 10_000, "pause": 0.01, "stream": False},
}


async def abort(endpoint: Endpoint, mark: str, moment: str, *, reset: bool) -> None:
    """Sends a request and goes away."""
    wanted = MOMENTS[moment]
    reader, writer = await asyncio.open_connection(*endpoint.address)
    try:
        writer.write(request(mark, **wanted))
        await writer.drain()
        if moment != "at once":
            await until(lambda: f'["start", "{mark}"' in endpoint.log.read_text())
        if moment == "in mid answer":
            async with asyncio.timeout(PATIENCE):
                await reader.readuntil(b"response.output_text.delta")
        if reset:
            wire: socket.socket = writer.get_extra_info("socket")
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    finally:
        writer.close()


def held() -> tuple[Counter[str], int, int]:
    """The names of tasks, the number of threads but for the loop's own pool, and that of descriptors."""
    names = Counter(" ".join(task.get_name().split()[:2]) for task in asyncio.all_tasks())
    threads = sum(not thread.name.startswith("asyncio_") for thread in threading.enumerate())
    return names, threads, descriptors()


def descriptors() -> int:
    return psutil.Process().num_fds()


async def test_five_hundred_aborted_requests_leave_nothing_behind(tmp_path: Path) -> None:
    # A worn app-server stays as long as it keeps the lane of a conversation.
    async with serving(tmp_path, lanes="off") as endpoint, aiohttp.ClientSession() as http:
        for number in range(2):
            assert (await ask(http, endpoint, f"warm{number}"))[0] == 200
        before = held()
        room = asyncio.Semaphore(60)

        async def one(number: int) -> None:
            async with room:
                moment = list(MOMENTS)[number % len(MOMENTS)]
                await abort(endpoint, f"m{number}.", moment, reset=number % 2 == 0)

        async with asyncio.TaskGroup() as group:
            for number in range(CLIENTS):
                group.create_task(one(number), name=f"client {number}")
        await no_open_turn(endpoint, http)
        started, interrupted, ended = (endpoint.notes(what) for what in ("start", "interrupt", "end"))
        assert len(started) >= CLIENTS * 4 / 5  # who leaves at once may never start a turn
        assert started <= ended, "a turn runs on at the app-server"
        assert started - {"warm0", "warm1"} == interrupted
        assert await endpoint.gauge(http, "tagcall_turns_running") == 0
        assert await endpoint.gauge(http, "tagcall_backend_backlog") == 0
        assert len(interrupted) <= await endpoint.gauge(http, "tagcall_backend_interrupts_total") <= CLIENTS
        assert await endpoint.gauge(http, "tagcall_backend_starts_total") <= 2  # one is worn out by 500 threads
        await until(lambda: held()[0] <= before[0])
        assert (await ask(http, endpoint, "after", pieces=3))[:2] == (200, "after " * 3)
        await until(lambda: held()[0] <= before[0])
        assert held()[1] <= before[1]
        await until(lambda: descriptors() <= before[2])


async def test_two_hundred_streams_at_once_get_their_own_text_or_are_sent_away(tmp_path: Path) -> None:
    async with serving(tmp_path) as endpoint, aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        async with asyncio.TaskGroup() as group:
            asked = {
                mark: group.create_task(ask(http, endpoint, mark, pieces=20, pause=0.02))
                for mark in (f"mark{number}." for number in range(200))
            }
    answers = {mark: task.result() for mark, task in asked.items()}
    for mark, (status, text, retry_after) in answers.items():
        if status == 200:
            assert text == f"{mark} " * 20
        else:
            assert status in {429, 503}
            assert retry_after is not None
            assert text in {"requests", "rate_limit_error", "server_error"}
    assert sum(status == 200 for status, _, _ in answers.values()) >= 100


async def test_more_streams_than_connections_are_sent_away_politely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound_connections(monkeypatch, limit=20)
    async with serving(tmp_path) as endpoint, aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(ask(http, endpoint, f"m{number}.", pieces=5, pause=0.05)) for number in range(60)
            ]
    answers = [task.result() for task in asked]
    assert {status for status, _, _ in answers} == {200, 503}
    assert all(status == 200 or (text, after) == ("server_error", "1") for status, text, after in answers)


def resident() -> int:
    return int(psutil.Process().memory_info().rss)


async def test_readers_that_never_read_take_little_memory_and_keep_nobody_from_an_answer(tmp_path: Path) -> None:
    async with serving(tmp_path) as endpoint, aiohttp.ClientSession() as http:
        assert (await ask(http, endpoint, "warm"))[0] == 200
        before = most = resident()
        stalled = []
        for number in range(20):
            reader, writer = await asyncio.open_connection(*endpoint.address, limit=1)
            writer.write(request(f"stalled{number}.", pieces=20, size=MIB))
            stalled.append((reader, writer))
        served, marks = 0, {f"stalled{number}." for number in range(20)}
        while served < 5 or not marks <= endpoint.notes("end"):
            assert (await ask(http, endpoint, f"other{served}", pieces=3))[:2] == (200, f"other{served} " * 3)
            most = max(most, resident())
            served += 1
        for _, writer in stalled:
            writer.close()
        assert (most - before) / MIB < 250
        await no_open_turn(endpoint, http)
