"""`tagcall log` in front of a running server."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from parser import write_call
from proxy.cli.log import LogOptions, run_log
from proxy.contracts import Prompt
from proxy.errors import UsageError
from proxy.replay.key_placeholder import key_of
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.memory_backend import MemoryBackend
from tests.support.patience import PATIENCE
from tests.support.ports import free_port

TOOLS = [{"type": "function", "name": "read_note", "parameters": {"type": "object"}, "strict": False}]


def calls(prompt: Prompt) -> str:
    return "I look.\n\x1b[2J" + write_call("read_note", '{"path": "a.md",}', key=key_of(prompt.developer))


@asynccontextmanager
async def followed(options: LogOptions, **settings: Any) -> AsyncIterator[Settings]:
    """A server that has answered one request; it stops when the test is done with it."""
    backend = MemoryBackend([calls])
    async with running_server(Settings(port=0, store="memory", **settings), backend) as url:
        headers = {"User-Agent": "Obsidian", "Authorization": "Bearer secret"}
        body = {"model": "m", "input": "hi", "tools": TOOLS}
        async with aiohttp.ClientSession(headers=headers) as session:
            async with session.post(url + "/responses", json=body) as response:
                await response.read()
        port = re.search(r":(\d+)/", url)
        assert port
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            shown = Settings(port=int(port[1]), **{name: settings[name] for name in settings if name == "api_key"})
            following = group.create_task(run_log(shown, options), name="log")
            yield shown
            following.cancel()


async def printed(capsys: pytest.CaptureFixture[str], lines: int) -> Sequence[str]:
    """What was printed, once there is so much of it; the server's own log left out."""
    text = ""
    async with asyncio.timeout(PATIENCE):
        while len(found := [line for line in text.splitlines() if "[info" not in line]) < lines:
            await asyncio.sleep(0)
            text += capsys.readouterr().out
    return found


async def test_each_turn_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    async with followed(LogOptions(), api_key=("secret",)):
        [line] = await printed(capsys, 1)
    assert re.fullmatch(r"\d\d:\d\d:\d\d  done  m  \d+\.\d\d s  100 -> 20 tokens  .*", line)
    assert line.endswith("  called read_note (mended: trailing comma)  Obsidian")


async def test_full_shows_what_the_model_was_shown_and_wrote(capsys: pytest.CaptureFixture[str]) -> None:
    async with followed(LogOptions(full=True), inspect=True):
        lines = await printed(capsys, 8)
    text = "\n".join(lines)
    assert "--- user\nhi" in text
    assert "--- the model wrote\nI look.\n\\x1b[2J<tool_call>" in text
    assert "[call key]" in text


async def test_full_says_what_is_missing() -> None:
    backend = MemoryBackend([])
    async with running_server(Settings(port=0, store="memory"), backend) as url:
        port = int(url.split(":")[2].split("/")[0])
        with pytest.raises(UsageError, match="--inspect"):
            await run_log(Settings(port=port), LogOptions(full=True))


async def test_json_is_an_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    async with followed(LogOptions(as_json=True)):
        [line] = await printed(capsys, 1)
    assert json.loads(line)["calls"] == [
        {"mark": "repaired", "name": "read_note", "why": ["trailing comma"], "attempt": 1}
    ]


async def test_without_the_key_it_says_so() -> None:
    async with running_server(Settings(port=0, api_key=("secret",)), MemoryBackend([])) as url:
        port = int(url.split(":")[2].split("/")[0])
        with pytest.raises(UsageError, match="--api-key"):
            await run_log(Settings(port=port), LogOptions())


async def test_without_a_server_it_says_so() -> None:
    with pytest.raises(UsageError, match="tagcall serve"):
        await run_log(Settings(port=free_port()), LogOptions())


async def test_it_ends_with_the_server(capsys: pytest.CaptureFixture[str]) -> None:
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        async with running_server(Settings(port=0, store="memory"), MemoryBackend([calls])) as url:
            port = int(url.split(":")[2].split("/")[0])
            following = group.create_task(run_log(Settings(port=port), LogOptions()), name="log")
            async with aiohttp.ClientSession() as session:
                async with session.post(url + "/responses", json={"model": "m", "input": "hi", "tools": TOOLS}):
                    pass
            await printed(capsys, 1)
        assert await following == 0
