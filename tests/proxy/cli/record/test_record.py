"""`tagcall record` as a person starts it. Its backend is the replay one: what is recorded is a recording."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest

from proxy.cli.replay import ReplayOptions, run_replay
from proxy.replay.answers import load_answer
from proxy.replay.fixture import FixtureError, load_fixtures, load_request

ROOT = Path(__file__).resolve().parents[4]
FIXTURES = ROOT / "fixtures"
CASE = FIXTURES / "codex-0.169.0-two-calls"


@contextmanager
def record(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running recorder and its base URL."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TAGCALL_")}
    command = ["record", str(folder), "--backend", f"replay:{FIXTURES}", "--port", "0", "--store", "none", *arguments]
    with subprocess.Popen(
        [sys.executable, "-m", "proxy.cli", *command],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
    ) as child:  # fmt: skip
        try:
            assert child.stdout is not None
            yield child, child.stdout.readline().strip().removeprefix("tagcall is ready on ")
        finally:
            child.kill()


def rest_of(child: subprocess.Popen[str]) -> tuple[str, str]:
    """What it printed and nobody has read, once it has ended."""
    assert child.stdout is not None
    assert child.stderr is not None
    return child.stdout.read(), child.stderr.read()


async def test_a_turn_becomes_a_fixture_that_replays(tmp_path: Path) -> None:
    folder = tmp_path / "fixtures"
    folder.mkdir()
    with record(folder) as (child, url):
        async with aiohttp.ClientSession() as http, http.post(f"{url}/responses", json=load_request(CASE)) as response:
            await response.read()
        child.send_signal(signal.SIGTERM)
        await asyncio.to_thread(child.wait, 20)
        output, errors = rest_of(child)
    assert f"Each turn is written to {folder}" in output
    assert "recorded 001-weather-in-paris-and-rome\n" in errors
    (case,) = (folder / name for name in load_fixtures(folder))
    assert load_answer(case) == load_answer(CASE)
    assert await run_replay(folder, ReplayOptions()) == 0


async def test_a_recorder_that_is_killed_in_a_turn_leaves_nothing_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "fixtures"
    with record(folder, "--speed", "1000ms") as (child, url):
        async with aiohttp.ClientSession() as http:
            with pytest.raises(aiohttp.ClientError):
                async with http.post(f"{url}/responses", json=load_request(CASE)) as response:
                    await response.content.readline()
                    child.kill()
                    await response.read()
    with pytest.raises(FixtureError, match="There is no fixture in"):
        load_fixtures(folder)
    assert list(folder.iterdir()) == []


def test_what_a_person_must_change_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with record(tmp_path / "file" / "fixtures") as (child, _):
        assert child.wait(20) == 2
        _, errors = rest_of(child)
    assert "Nothing can be written to" in errors
    assert errors.count("\n") == 1
