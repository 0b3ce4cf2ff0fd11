"""`tagcall serve` is told to stop while it answers, in each way that it can be told."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from openai import AuthenticationError
from pytest_aiohttp import AiohttpServer

from tests.support.codex_programs import ROOT, child_environment
from tests.support.patience import PATIENCE
from tests.support.scripted_chat import ScriptedChat
from tests.support.scripted_model import Message, Reply
from tests.support.sdk import openai_client

TEXT = "All that there is to say. " * 4


@pytest.fixture(autouse=True)
def _terminal() -> Iterator[None]:
    """What is started here hears when its terminal is closed, also where all tests run under `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("signals", "ignored"),
    [
        ([signal.SIGTERM], False),
        ([signal.SIGINT], False),
        ([signal.SIGHUP], False),
        ([signal.SIGHUP, signal.SIGHUP], False),
        ([signal.SIGHUP], True),
    ],
    ids=["SIGTERM", "SIGINT", "SIGHUP", "SIGHUP twice", "nohup"],
)
async def test_the_answer_that_is_running_may_finish(
    aiohttp_server: AiohttpServer, tmp_path: Path, signals: list[signal.Signals], ignored: bool
) -> None:
    chat, gate = ScriptedChat(), asyncio.Event()
    chat.push(Reply([Message(TEXT)], hold_after=2, gate=gate))
    server = await aiohttp_server(chat.app)
    child = await asyncio.create_subprocess_exec(
        *(["nohup"] if ignored else []), sys.executable, "-m", "proxy.cli", "serve", "--port", "0",
        "--backend", str(server.make_url("/v1")), "--store", "none",
        cwd=ROOT, env=child_environment(tmp_path), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stderr is not None
    try:
        async with asyncio.timeout(PATIENCE):
            url = (await child.stdout.readline()).decode().strip().removeprefix("tagcall is ready on ")
            async with openai_client(url, "any", timeout=PATIENCE) as client:
                stream = await client.responses.create(model="gpt-5.5", input="Say it.", stream=True)
                events = [await anext(stream)]
                child.send_signal(signals[0])
                while not ignored and b"is stopping" not in await child.stderr.readline():
                    pass
                for again in signals[1:]:
                    child.send_signal(again)
                gate.set()
                events += [event async for event in stream]
                assert events[-1].type == "response.completed"
                assert events[-1].response.output_text == TEXT
                if ignored:
                    await client.models.list()
                    child.terminate()
            await child.communicate()
            assert child.returncode == 0
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


async def test_where_keys_are_in_a_file_it_is_read_anew_and_nothing_ends(
    aiohttp_server: AiohttpServer, tmp_path: Path
) -> None:
    server, file = await aiohttp_server(ScriptedChat().app), tmp_path / "keys"
    file.write_text("ada=sk-old\n")
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "proxy.cli", "serve", "--port", "0", "--api-key-file", str(file),
        "--backend", str(server.make_url("/v1")), "--store", "none", cwd=ROOT, env=child_environment(tmp_path),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stderr is not None
    try:
        async with asyncio.timeout(PATIENCE):
            url = (await child.stdout.readline()).decode().strip().removeprefix("tagcall is ready on ")
            for content, said, accepted in (
                ("ada=sk-new\n", b"1 key is accepted now", ["sk-new"]),
                ("ada=sk-1 many\n", b"the keys stay as they were", ["sk-new"]),
                ("ada=sk-new\nbob=sk-bob\n", b"2 keys are accepted now", ["sk-new", "sk-bob"]),
            ):
                file.write_text(content)
                child.send_signal(signal.SIGHUP)
                while said not in await child.stderr.readline():
                    pass
                for key in ("sk-old", "sk-new", "sk-bob"):
                    async with openai_client(url, key) as client:
                        with nullcontext() if key in accepted else pytest.raises(AuthenticationError):
                            await client.models.list()
            child.terminate()
            await child.communicate()
            assert child.returncode == 0
    finally:
        if child.returncode is None:
            child.kill()
