"""Systems that are not here: a whole server without what Windows lacks, and as macOS starts its child.

Windows itself is not here; what is tried is that every branch for it is taken and does what is told of it.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from openai import AsyncOpenAI

from parser import write_call
from proxy.backends import make_backend
from proxy.errors import UsageError
from proxy.rpc import ChildTransport, Launch
from proxy.settings import Settings
from proxy.stores import make_store
from tests.support.codex_programs import child_environment, installed_programs
from tests.support.heard import next_heard
from tests.support.patience import NEVER, PATIENCE
from tests.support.processes import all_gone, app_servers
from tests.support.scripted_model import Message, Reply, ScriptedModel

ROOT = Path(__file__).resolve().parents[2]


@asynccontextmanager
async def without_unix(home: Path, *arguments: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """A `tagcall serve` and its base URL. It has SIGTERM, as a console on Windows has Ctrl+Break."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.no_unix", "serve", "--port", "0", *arguments,
        cwd=ROOT, env=child_environment(home), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout is not None
    try:
        yield child, (await child.stdout.readline()).decode().strip().removeprefix("tagcall is ready on ")
    finally:
        if child.returncode is None:
            child.kill()
            await child.communicate()


async def stopped(child: asyncio.subprocess.Process) -> str:
    """What it said on its standard error, once it was told to stop and did."""
    child.send_signal(signal.SIGTERM)
    async with asyncio.timeout(PATIENCE):
        _, said = await child.communicate()
    assert child.returncode == 0, said.decode()
    return said.decode()


async def test_the_real_program_answers_and_ends_without_anything_that_only_unix_has(
    model: ScriptedModel, tmp_path: Path
) -> None:
    program = installed_programs()[0].path
    assert program is not None, "openai-codex-cli-bin is not installed"
    # It is asked twice, as it does not write the key.
    model.default = Reply([Message(write_call("read_note", '{"path": "a.md"}'))])
    people = tmp_path / "Ann Smith"
    arguments = [
        "--codex", str(program), "--upstream", model.url, "--codex-home", str(people / "codex home"),
        "--store", f"sqlite:{people / 'my answers.sqlite'}",
    ]  # fmt: skip
    async with without_unix(people, *arguments) as (child, url):
        async with AsyncOpenAI(base_url=url, api_key="any", max_retries=0, timeout=PATIENCE) as client:
            answer = await client.responses.create(
                model="gpt-5.5",
                input="What is in a.md?",
                tools=[{"type": "function", "name": "read_note", "parameters": {"type": "object"}, "strict": False}],
            )
        servers = app_servers(child.pid)
        said = await stopped(child)
    assert [item.type for item in answer.output] == ["function_call"]
    assert servers
    await all_gone(servers)
    assert "Traceback" not in said


async def test_recordings_are_played_there_too(tmp_path: Path) -> None:
    async with without_unix(tmp_path, "--backend", f"replay:{ROOT / 'fixtures'}", "--store", "memory") as (child, url):
        async with AsyncOpenAI(base_url=url, api_key="any", max_retries=0, timeout=PATIENCE) as client:
            answer = await client.responses.create(
                model="gpt-5.5",
                input="Weather in Paris and Rome?",
                tools=[{"type": "function", "name": "get_weather", "parameters": {"type": "object"}, "strict": False}],
            )
        said = await stopped(child)
    assert [item.type for item in answer.output if item.type != "message"] == ["function_call"] * 2
    assert "Traceback" not in said


def test_the_colon_of_a_drive_belongs_to_its_path() -> None:
    folder = r"C:\Users\Ann Smith\fixtures"
    with pytest.raises(UsageError, match=re.escape(f"{folder} is not a folder")):
        make_backend(Settings(backend=f"replay:{folder}"))
    with pytest.raises(UsageError, match=re.escape(f"{folder} is not a program")):
        make_backend(Settings(codex=folder))
    make_store(rf"sqlite:{folder}\answers.sqlite")
    make_store(r"sqlite:\\server\share\answers.sqlite")


def test_a_unix_socket_is_refused_in_one_sentence_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")
    with pytest.raises(UsageError, match="ws://HOST:PORT"):
        make_backend(Settings(backend="unix:/run/codex.sock"))


async def test_macos_starts_the_program_itself_which_ends_with_its_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr("proxy.rpc.stdio.EXIT_AFTER_EOF", NEVER)
    code = "import os, sys\nprint(os.getppid(), os.getsid(0) == os.getpid(), flush=True)\nsys.stdin.read()"
    child = await ChildTransport.start(Launch([sys.executable, "-c", code], {"PATH": os.environ["PATH"]}))
    assert await next_heard(child) == f"{os.getpid()} True\n".encode()
    await child.close()
    assert child.describe_end() == "exit status 0"
