"""The extra `speed`: a server on uvloop answers as one without it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import openai
import pytest
from pytest_aiohttp import AiohttpServer

from tests.support.installation import Installation, closed
from tests.support.patience import PATIENCE
from tests.support.scripted_chat import ScriptedChat

pytestmark = pytest.mark.install


async def test_a_server_runs_on_uvloop_where_the_extra_has_installed_it(
    wheel: Path, tmp_path: Path, aiohttp_server: AiohttpServer
) -> None:
    environment = Installation.make(tmp_path / "environment")
    environment.install(f"tagcall[speed] @ {wheel.as_uri()}")
    chat = ScriptedChat()
    upstream = await aiohttp_server(chat.app, access_log=None, shutdown_timeout=0.1)
    log = tmp_path / "log"
    with log.open("wb") as errors:
        child = await asyncio.create_subprocess_exec(
            environment.program("tagcall"), "serve", "--port", "0", "--log-level", "debug",
            "--backend", str(upstream.make_url("/v1")),
            cwd=tmp_path, env=closed(tmp_path), stdout=asyncio.subprocess.PIPE, stderr=errors,
        )  # fmt: skip
    assert child.stdout is not None
    async with asyncio.timeout(PATIENCE):
        url = (await child.stdout.readline()).decode().split()[-1]
        async with openai.AsyncOpenAI(base_url=url, api_key="any", max_retries=0) as client:
            stream = await client.responses.create(model="gpt-5.5", input="Hi", stream=True)
            events = [event async for event in stream]
        child.terminate()
        assert await child.wait() == 0
    assert events[-1].type == "response.completed"
    assert events[-1].response.output_text == "Hello from the scripted model."
    assert "uvloop" in log.read_text("utf-8")
