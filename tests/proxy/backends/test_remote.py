"""The real program as an app-server that listens for itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from proxy.backends import find_kind
from proxy.backends.codex.config import Provider
from proxy.backends.codex.home import prepare_home
from proxy.backends.codex.threads import WHATEVER_RUNS
from proxy.backends.remote import remote_backend
from proxy.contracts import TextPiece
from proxy.rpc import RpcClient
from proxy.rpc.websocket import WebSocketTransport
from proxy.settings import Settings
from tests.support.backend_events import merged, prompt, read_turn
from tests.support.codex_programs import TestProgram, child_environment, installed_programs
from tests.support.patience import PATIENCE
from tests.support.scripted_model import Message, Reply, ScriptedModel

LISTENING = [it for it in installed_programs() if it.release >= (0, 100)]


@pytest.fixture(params=[pytest.param(it, id=f"codex-{it.version}") for it in LISTENING])
def program(request: pytest.FixtureRequest) -> TestProgram:
    program: TestProgram = request.param
    return program


@pytest.fixture
async def address(home: Path, program: TestProgram, model: ScriptedModel, tmp_path: Path) -> AsyncIterator[str]:
    assert program.path is not None
    env = {**child_environment(home), "CODEX_HOME": str(home)}
    await prepare_home(home, program.path, Provider(model.url), 300, env)
    socket = tmp_path / "s"
    process = await asyncio.create_subprocess_exec(
        program.path, "app-server", "--listen", f"unix://{socket}", env=env, stderr=asyncio.subprocess.DEVNULL
    )
    async with asyncio.timeout(PATIENCE):
        while not socket.exists():  # noqa: ASYNC110 -- the file of a socket has no event of its own
            await asyncio.sleep(0.01)
    yield f"unix:{socket}"
    process.kill()
    await process.wait()


async def test_a_listening_app_server_is_a_backend(address: str, model: ScriptedModel) -> None:
    model.push(Reply([Message("Hello over a socket")], chunk=3))
    async with remote_backend(address) as backend:
        assert merged(await read_turn(backend, prompt()))[0] == TextPiece("Hello over a socket")
        assert (await backend.health()).problem is None


async def test_leaving_ends_the_turn_there_too(address: str, model: ScriptedModel) -> None:
    model.push(Reply([Message("word " * 10_000)], chunk=5, pace=0.01))
    async with remote_backend(address) as backend:
        async with backend.stream(prompt()) as batches:
            await anext(batches)
        async with asyncio.timeout(PATIENCE):
            await model.stream_closed.wait()


async def test_the_backends_end_ends_the_turns_it_began(address: str, model: ScriptedModel) -> None:
    """The app-server would run them on: a closed connection is nothing to it."""
    model.push(Reply([Message("word " * 10_000)], chunk=5, pace=0.01))
    async with remote_backend(address) as backend:
        stream = backend.stream(prompt())
        await anext(await stream.__aenter__())
    async with asyncio.timeout(PATIENCE):
        await model.stream_closed.wait()


async def test_nobody_listening_is_said_with_a_time_to_try_again() -> None:
    async with remote_backend("ws://127.0.0.1:9") as backend:
        health = await backend.health()
    assert health.problem is not None
    assert "ws://127.0.0.1:9" in health.problem


async def test_a_turn_that_has_no_name_yet_can_be_ended(address: str, model: ScriptedModel) -> None:
    """As it must be when the connection is lost between a turn's start and its answer."""
    model.push(Reply([Message("word " * 10_000)], chunk=5, pace=0.01))
    client = RpcClient(await WebSocketTransport.connect(address), on_notification=lambda method, params: None)
    async with client.running():
        await client.request("initialize", {"clientInfo": {"name": "test", "version": "0"}}, deadline=PATIENCE)
        client.notify("initialized")
        thread = await client.request("thread/start", {"model": "m", "ephemeral": True}, deadline=PATIENCE)
        turn = {"threadId": thread["thread"]["id"], "input": [{"type": "text", "text": "hi"}]}
        await client.request("turn/start", turn, deadline=PATIENCE)
        await model.called.wait()
        client.post("turn/interrupt", {"threadId": thread["thread"]["id"], "turnId": WHATEVER_RUNS})
        async with asyncio.timeout(PATIENCE):
            await model.stream_closed.wait()


@pytest.mark.parametrize("backend", ["ws://h:1", "wss://h:1", "unix:/s"])
async def test_of_what_such_an_app_server_gives_its_model_nothing_is_claimed(backend: str) -> None:
    (finding,) = await find_kind(backend).check_after(Settings(backend=backend))
    assert (finding.name, finding.good) == ("text-only", None)
