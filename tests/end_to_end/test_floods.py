"""Floods, and somebody else beside them: told by what comes first, and by the ratio of what that took in one run."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from parser import write_call
from proxy.contracts import BackendEvent, Prompt
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.cpu_time import any_round
from tests.support.memory_backend import MemoryBackend, Script
from tests.support.patience import PATIENCE
from tests.support.tagcall_server import tagcall_process

HALF = '<tool_call>{"name": "read_note", "arguments": {"path": "a'
FLOOD = f"{HALF}\n" * (250_000 // len(HALF))
TOOLS = [{"type": "function", "name": "read_note", "parameters": {"type": "object"}, "strict": False}]
FLOODS = 4


class AskedBackend(MemoryBackend):
    """`flooded` is set when all floods were asked of it."""

    def __init__(self, answers: list[Script]) -> None:
        super().__init__(answers)
        self.flooded = asyncio.Event()

    @asynccontextmanager
    async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
        async with super().stream(prompt) as batches:
            if len(self.prompts) >= FLOODS:
                self.flooded.set()
            yield batches


def answered(prompt: Prompt) -> str:
    """To whoever asks for it a flood, to whoever sends one a call without a key; a word to all others."""
    asked = "".join(getattr(part, "text", "") for part in prompt.parts)
    if "Flood me." in asked:
        return FLOOD
    return write_call("read_note", '{"path": "b.md"}') if len(asked) > 10_000 else "Hello."


@pytest.mark.parametrize("text", ["Flood me.", FLOOD], ids=["in answers", "in requests"])
async def test_a_flood_of_half_blocks_holds_up_nobody_else(text: str) -> None:
    backend = AskedBackend([answered] * 100)
    over: list[str] = []

    async def ask(session: aiohttp.ClientSession, url: str, who: str, text: str) -> None:
        body: dict[str, Any] = {"model": "m", "input": text, "tools": TOOLS}
        async with session.post(url, json=body, headers={"Authorization": f"Bearer {who}"}) as response:
            assert response.status == 200
            await response.read()
        over.append(who)

    settings = Settings(port=0, store="none")
    async with running_server(settings, backend) as base, aiohttp.ClientSession() as session:
        url = f"{base}/responses"
        async with asyncio.timeout(10 * PATIENCE), asyncio.TaskGroup() as group:
            for _ in range(FLOODS):
                group.create_task(ask(session, url, "flood", text))
            await backend.flooded.wait()
            for _ in range(3):
                await ask(session, url, "other", "hi")
    # Whoever came last, after all the floods had begun, was answered three times before the second of them was over.
    assert over[:3].count("other") >= 2
    assert sorted(over) == [*["flood"] * FLOODS, *["other"] * 3]


# The whole program, its app-server, and a client whose answer takes as long as a short one of a real model.

PROGRAM = Path(__file__).resolve().parents[1] / "support" / "busy_app_server.py"
PACED: Mapping[str, Any] = {"mark": "word", "pieces": 20, "pause": 0.02}
ANSWERS = 5
# More than there may be of one address.
SOCKETS = 300


@dataclass(frozen=True, slots=True)
class Running:
    url: str
    noise: Path
    """Whoever touches it starts a flood on the app-server's stderr, which ends with the server."""

    @property
    def address(self) -> tuple[str, int]:
        return urlsplit(self.url).hostname or "", urlsplit(self.url).port or 0

    async def ask(self, who: str, wanted: Mapping[str, Any]) -> float:
        """Seconds to the end of an answer."""
        body = {"model": "m", "input": json.dumps(wanted), "tools": TOOLS, "stream": True}
        begun = time.perf_counter()
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.url}/responses", json=body, headers={"Authorization": f"Bearer {who}"}) as response,
        ):
            assert response.status == 200
            assert b"response.completed" in await response.read()
        return time.perf_counter() - begun

    async def usual_time(self) -> float:
        return statistics.median([await self.ask("other", PACED) for _ in range(ANSWERS)])

    async def hold_socket(self, word: bytes) -> None:
        """One after the other, each as long as it may stay; what it says comes byte by byte."""
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(*self.address)
                try:
                    for byte in word:
                        writer.write(bytes([byte]))
                        await writer.drain()
                        await asyncio.sleep(0.5)
                    await reader.read()
                finally:
                    writer.close()
            await asyncio.sleep(1)

    async def hold_sockets(self, word: bytes) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(SOCKETS):
                group.create_task(self.hold_socket(word))

    async def ask_for_half_blocks(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(FLOODS):
                group.create_task(self._ask_on())

    async def _ask_on(self) -> None:
        while True:
            with suppress(AssertionError, aiohttp.ClientError):  # what becomes of them is no matter
                await self.ask("flood", {"mark": f"{HALF}\n" * 100, "pieces": 40})

    async def make_noise(self) -> None:
        self.noise.touch()
        await asyncio.Event().wait()


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Running]:
    program, noise = folder / "codex", folder / "noise"
    noisy = f'(until test -e "{noise}"; do sleep 0.1; done; exec yes "noise sk-secretsecret" >&2) &'
    program.write_text(
        f'#!/bin/sh\n[ "$*" = app-server ] && {noisy}\nexec {sys.executable} -I -S {PROGRAM} {folder / "log"} "$@"\n'
    )
    program.chmod(0o700)
    arguments = ["serve", "--port", "0", "--backend", "codex", "--store", "none"]
    arguments += ["--codex", str(program), "--codex-home", str(folder / "home")]
    async with tagcall_process(arguments, folder) as (_, url):
        yield Running(url, noise)


OTHERS: Mapping[str, Callable[[Running], Coroutine[Any, Any, None]]] = {
    "silent sockets": lambda server: server.hold_sockets(b""),
    "heads byte by byte": lambda server: server.hold_sockets(b"POST /v1/responses HTTP/1.1\r\nX: " + b"x" * 1000),
    "stderr": Running.make_noise,
    "half blocks": Running.ask_for_half_blocks,
}


async def usual_times(flood: str, folder: Path) -> tuple[float, float]:
    """Without the flood, and beside it."""
    folder.mkdir()
    async with asyncio.timeout(PATIENCE), running(folder) as server:
        await server.ask("other", PACED)  # what is loaded once
        usual = await server.usual_time()
        async with asyncio.TaskGroup() as group:
            begun = group.create_task(OTHERS[flood](server))
            await asyncio.sleep(2)  # until it is at its height; sockets may be made to give way after a second
            beside = await server.usual_time()
            begun.cancel()
    return usual, beside


@pytest.mark.growth
@pytest.mark.skipif(sys.platform == "win32", reason="its app-server is a shell script")
@pytest.mark.parametrize("flood", OTHERS)
async def test_others_are_answered_within_twice_their_usual_time(flood: str, tmp_path: Path) -> None:
    for number, each in enumerate(any_round()):
        with each:
            usual, beside = await usual_times(flood, tmp_path / str(number))
            assert beside < 2 * usual
