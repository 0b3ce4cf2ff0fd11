"""The whole server over an app-server that goes wrong: what an HTTP client sees of it, and what is left at the end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from proxy.rpc.processes import find_process
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.clock import Clock
from tests.support.fault_rows import ROWS, WHOLE, hurry, let_time_pass
from tests.support.faulty_backend import FaultyAppServer, Seen
from tests.support.memory_backend import MemoryBackend
from tests.support.patience import PATIENCE
from tests.support.processes import all_gone, command_of

ROOT = Path(__file__).resolve().parents[2]
BODY: dict[str, Any] = {"model": "m", "input": "hi"}


@dataclass
class Endpoint:
    http: aiohttp.ClientSession
    url: str

    async def text(self) -> str:
        async with self.http.post(f"{self.url}/responses", json=BODY) as response:
            body = await response.json()
        assert response.status == 200, body
        return str(body["output"][0]["content"][0]["text"])


@asynccontextmanager
async def serving(fault: str, folder: Path, **settings: Any) -> AsyncIterator[tuple[Endpoint, FaultyAppServer]]:
    server = FaultyAppServer(fault, folder)
    chosen = Settings(port=0, codex=str(server.script()), codex_home=folder / "home", **settings)
    async with asyncio.timeout(PATIENCE), running_server(chosen) as url, aiohttp.ClientSession() as http:
        yield Endpoint(http, url), server


async def test_an_app_server_that_never_starts_is_a_503_that_says_when_and_why(tmp_path: Path) -> None:
    async with serving("exit 0 at start:always", tmp_path) as (endpoint, server):
        async with endpoint.http.post(f"{endpoint.url}/responses", json=BODY) as response:
            assert response.status == 503
            assert 0 < int(response.headers["retry-after"]) <= 30
            error = (await response.json())["error"]
        assert error["code"] == "backend_unavailable"
        async with endpoint.http.get(endpoint.url.removesuffix("/v1") + "/readyz") as response:
            assert response.status == 503
            assert (await response.json())["problem"] == error["message"]
        async with endpoint.http.get(endpoint.url.removesuffix("/v1") + "/healthz") as response:
            assert response.status == 200
    assert server.lives == 3


async def test_a_hundred_requests_at_once_are_served_or_sent_away_politely(tmp_path: Path) -> None:
    async with serving("overloaded at thread", tmp_path) as (endpoint, _):

        async def ask() -> tuple[int, str | None]:
            async with endpoint.http.post(f"{endpoint.url}/responses", json=BODY) as response:
                await response.read()
                return response.status, response.headers.get("retry-after")

        async with asyncio.TaskGroup() as group:
            requests = [group.create_task(ask()) for _ in range(100)]
    answers = {request.result() for request in requests}
    assert (200, None) in answers
    assert all(retry_after for status, retry_after in answers - {(200, None)} if status in {429, 503})
    assert {status for status, _ in answers} <= {200, 429, 503}


# Each fault, and somebody else's flood of half blocks on the same loop


async def see_answer(http: aiohttp.ClientSession, url: str) -> Seen:
    """A streamed Response as its client saw it: its text and its one end, in the stream or in place of it; "failed" is
    every failure, whose code is one of OpenAI's there.
    """
    async with http.post(f"{url}/responses", json={**BODY, "stream": True}) as response:
        body = await response.text()
    if response.status != 200:
        assert orjson.loads(body)["error"]["message"]
        return Seen("", "failed")
    *blocks, done, nothing = body.split("\n\n")
    assert (done, nothing) == ("data: [DONE]", "")
    events = [orjson.loads(block.partition("data: ")[2]) for block in blocks if block.startswith("event")]
    ends = [event for event in events if event["type"] in {"response.completed", "response.failed", "error"}]
    assert ends == events[-1:], "one end, and nothing behind it"
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    text = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    error = ends[0]["response"]["error"]
    assert error is None or error["message"]
    return Seen(text, "ended" if error is None else "failed")


@asynccontextmanager
async def flooded(http: aiohttp.ClientSession) -> AsyncIterator[None]:
    """Another server on this loop, whose model writes half blocks without an end."""
    half = '<tool_call>{"name": "read_note", "arguments": {"path": "a\n'
    tools = [{"type": "function", "name": "read_note", "parameters": {"type": "object"}, "strict": False}]
    answers = MemoryBackend([lambda _: half * 500] * 100_000)

    async def flood(url: str) -> None:
        while True:
            async with http.post(f"{url}/responses", json={**BODY, "tools": tools}) as response:
                assert response.status == 200
                await response.read()

    async with running_server(Settings(port=0, store="none"), answers) as url, asyncio.TaskGroup() as group:
        flooding = [group.create_task(flood(url), name="flood") for _ in range(2)]
        yield
        for task in flooding:
            task.cancel()


# The core has each fault in `tests/proxy/backends/test_faults.py`. Here it has those of which a client sees something,
# and one in nine beside a flood, which takes the time of all that waits.
BESIDE_A_FLOOD = [*ROWS][::9]
CASES = [
    *(
        pytest.param(fault, fault in BESIDE_A_FLOOD, id=fault)
        for fault, row in ROWS.items()
        if row.seen != WHOLE or fault in BESIDE_A_FLOOD
    ),
    *(
        pytest.param(fault, True, id=f"{fault}, beside a flood", marks=pytest.mark.whole)
        for fault in ROWS
        if fault not in BESIDE_A_FLOOD
    ),
]


@pytest.mark.parametrize(("fault", "flood"), CASES)
async def test_each_fault_is_one_end_of_its_own_answer_and_the_next_one_works(
    fault: str, flood: bool, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    hurry(monkeypatch)
    row, server = ROWS[fault], FaultyAppServer(fault, tmp_path)
    backend = server.backend(row.deadlines, idle_timeout=row.idle_timeout)
    patient = aiohttp.ClientTimeout(None)  # the clock is put forward
    async with (
        running_server(Settings(port=0, store="none"), backend) as url,
        aiohttp.ClientSession(timeout=patient) as http,
        flooded(http) if flood else nullcontext(),
        asyncio.TaskGroup() as group,
    ):
        waiting = group.create_task(let_time_pass(server, clock), name="time")
        for seen in (row.seen, row.seen_next):
            told = seen if seen.end == "ended" else replace(seen, end="failed")
            assert await see_answer(http, url) == told
        waiting.cancel()
    await all_gone(server.pids)


# The whole process


@asynccontextmanager
async def process(
    server: FaultyAppServer, *arguments: str, stderr: int = asyncio.subprocess.DEVNULL
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """`tagcall serve` and its base URL, with a turn that is running."""
    home = server.folder / "home"
    command = ["-m", "proxy.cli", "serve", "--port", "0", "--codex", str(server.script()), "--codex-home", str(home)]
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        *arguments,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,
    )
    assert child.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE), aiohttp.ClientSession() as http:
            url = (await child.stdout.readline()).decode().strip().removeprefix("tagcall is ready on ")
            async with http.post(f"{url}/responses", json={**BODY, "stream": True}) as response:
                async for line in response.content:
                    if b"response.output_text.delta" in line:
                        break
                yield child, url
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def test_a_log_that_nobody_reads_any_more_costs_no_answer(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        async with process(FaultyAppServer("none", tmp_path), stderr=writer) as (child, url):
            async with aiohttp.ClientSession() as http, http.post(f"{url}/responses", json=BODY) as response:
                assert response.status == 200
                assert (await response.json())["status"] == "completed"
            child.send_signal(signal.SIGTERM)
            assert await child.wait() == 0
    finally:
        os.close(writer)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
async def test_a_killed_tagcall_leaves_no_child_even_a_deaf_one(tmp_path: Path) -> None:
    server = FaultyAppServer("deaf", tmp_path)
    async with process(server) as (child, _):
        child.kill()
        await all_gone(server.pids)
    assert server.lives == 1


async def test_a_tagcall_that_is_told_twice_to_stop_leaves_no_child(tmp_path: Path) -> None:
    server = FaultyAppServer("turn mute after text", tmp_path)
    async with process(server) as (child, _):
        child.send_signal(signal.SIGINT)
        child.send_signal(signal.SIGTERM)
        await child.wait()
        await all_gone(server.pids)


async def test_a_second_tagcall_on_the_same_home_hurts_no_turn_of_the_first(tmp_path: Path) -> None:
    server = FaultyAppServer("turn mute after text", tmp_path)
    async with process(server) as (first, _):
        async with process(FaultyAppServer("turn mute after text:always", tmp_path)):
            assert server.lives == 2
            assert first.returncode is None
            assert all(find_process(pid) for pid in server.pids)
        await all_gone(server.pids[1:])
        assert find_process(server.pids[0]) is not None
        os.kill(first.pid, signal.SIGKILL)
        await first.wait()


async def test_what_a_killed_tagcall_left_behind_is_ended_by_the_next_one(tmp_path: Path) -> None:
    """The kernel would do it on Linux; here the child is out of its reach, as on other systems."""
    server = FaultyAppServer("none", tmp_path)
    home = tmp_path / "home"
    async with serving("none", tmp_path) as (endpoint, _):
        assert await endpoint.text() == "one two"
        [record] = (home / "children").iterdir()
        content = orjson.loads(record.read_bytes())
    assert not list((home / "children").iterdir())
    stray = await asyncio.create_subprocess_exec(
        str(server.script()), "app-server", stdin=asyncio.subprocess.PIPE, start_new_session=True
    )
    known = await command_of(stray.pid)
    left = {**content, "pid": stray.pid, "started": known.started, "owner_started": 0.0}
    (home / "children" / f"{stray.pid}.json").write_bytes(orjson.dumps(left))
    async with serving("none", tmp_path) as (endpoint, _):
        assert await endpoint.text() == "one two"
        assert await stray.wait() == -signal.SIGTERM
