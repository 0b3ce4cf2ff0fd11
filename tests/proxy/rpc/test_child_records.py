"""Real processes: what a killed tagcall leaves behind is ended by the next, and nothing else is."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from proxy.rpc import ChildRecords, ChildTransport, Launch, child_records
from proxy.rpc.processes import find_process
from tests.support.heard import next_heard
from tests.support.patience import NEVER, PATIENCE

DEAF = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
ECHO = "import sys\nprint('ready', flush=True)\nfor line in sys.stdin: print(line, end='', flush=True)"
ARGV = [sys.executable, "-c", ECHO]


class Stray:
    """A process that is nobody's child in the eyes of the records: they only look at pids."""

    def __init__(self, argv: list[str]) -> None:
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, bufsize=0
        )
        assert self.process.stdout is not None
        self.process.stdout.readline()

    @property
    def lives(self) -> bool:
        """Whether it still answers: who got a signal does not, but may be there for a moment."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(b"?\n")
        except BrokenPipeError:
            return False
        return self.process.stdout.readline() == b"?\n"

    def ended_by(self) -> int:
        """The signal. A process that is about to be gone has a moment to go."""
        return -self.process.wait(timeout=PATIENCE)

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def start() -> Iterator[Callable[[list[str]], Stray]]:
    """Starts strays that do not outlive the test."""
    strays: list[Stray] = []

    def start(argv: list[str]) -> Stray:
        strays.append(Stray(argv))
        return strays[-1]

    yield start
    for stray in strays:
        stray.end()


@pytest.fixture
def stray(start: Callable[[list[str]], Stray]) -> Stray:
    return start(ARGV)


@pytest.fixture(autouse=True)
def _reaped(monkeypatch: pytest.MonkeyPatch) -> None:
    """In these tests strays are our own children: a dead one would stay a zombie, which is no living process."""
    monkeypatch.setattr(child_records, "LEAVES_WITHIN", NEVER)


def rewrite(file: Path, **changes: Any) -> None:
    file.write_bytes(orjson.dumps({**orjson.loads(file.read_bytes()), **changes}))


def left_by_the_dead(folder: Path, pid: int, argv: list[str], **changes: Any) -> ChildRecords:
    """As if the process that started it was killed: there is nobody who started then."""
    records = ChildRecords(folder)
    records.write(pid, argv)
    rewrite(folder / f"{pid}.json", owner_started=0.0, **changes)
    return records


async def test_a_child_whose_owner_is_gone_is_ended(tmp_path: Path, stray: Stray) -> None:
    records = left_by_the_dead(tmp_path, stray.process.pid, ARGV)
    await records.end_leftovers()
    assert stray.ended_by() == signal.SIGTERM
    assert not list(tmp_path.iterdir())


async def test_where_there_are_no_process_groups_it_is_ended_too(
    tmp_path: Path, start: Callable[[list[str]], Stray], monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = [sys.executable, "-c", DEAF + ECHO]
    stray = start(argv)
    monkeypatch.delattr(os, "killpg")
    await left_by_the_dead(tmp_path, stray.process.pid, argv).end_leftovers()
    assert stray.ended_by() == signal.SIGKILL
    assert not list(tmp_path.iterdir())


async def test_one_that_does_not_listen_is_killed(
    tmp_path: Path, start: Callable[[list[str]], Stray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_records, "LEAVES_WITHIN", 0.1)
    argv = [sys.executable, "-c", DEAF + ECHO]
    stray = start(argv)
    await left_by_the_dead(tmp_path, stray.process.pid, argv).end_leftovers()
    assert stray.ended_by() == signal.SIGKILL


async def test_a_child_of_a_living_owner_is_left_alone(
    tmp_path: Path, stray: Stray, start: Callable[[list[str]], Stray]
) -> None:
    """Two instances on one folder: each ends its own."""
    owner = start(ARGV)
    owner_process = find_process(owner.process.pid)
    assert owner_process is not None
    records = left_by_the_dead(tmp_path, stray.process.pid, ARGV)
    file = tmp_path / f"{stray.process.pid}.json"
    rewrite(file, owner=owner.process.pid, owner_started=owner_process.started)
    await records.end_leftovers()
    assert stray.lives
    assert file.exists()
    owner.process.kill()
    owner.process.wait()
    await records.end_leftovers()
    assert stray.ended_by() == signal.SIGTERM


@pytest.mark.parametrize("changed", [{"started": 0.0}, {"command": "codex app-server"}])
async def test_a_process_that_is_not_the_recorded_one_is_left_alone(
    changed: dict[str, Any], tmp_path: Path, stray: Stray
) -> None:
    await left_by_the_dead(tmp_path, stray.process.pid, ARGV, **changed).end_leftovers()
    assert stray.lives
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"[]", b'{"pid": "1"}', b'{"pid": 1}', b"\xff"])
async def test_a_record_that_cannot_be_read_is_forgotten(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "1.json").write_bytes(content)
    await ChildRecords(tmp_path).end_leftovers()
    assert not list(tmp_path.iterdir())


async def test_a_started_child_is_recorded_until_it_was_waited_for(tmp_path: Path) -> None:
    records = ChildRecords(tmp_path / "children")
    launch = Launch([sys.executable, "-c", "import sys\nsys.stdin.read()"], dict(os.environ), records=records)
    transport = await ChildTransport.start(launch)
    [file] = (tmp_path / "children").iterdir()
    assert orjson.loads(file.read_bytes())["pid"] == transport.pid
    assert file.stat().st_mode & 0o077 == 0
    await records.end_leftovers()
    assert transport.describe_end() == "it closed its output", "our own child lives on"
    await transport.close()
    assert not file.exists()


async def test_a_folder_that_cannot_be_written_keeps_no_child_from_starting(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    records = ChildRecords(tmp_path / "file" / "children")
    transport = await ChildTransport.start(Launch([sys.executable, "-c", ""], dict(os.environ), records=records))
    assert await next_heard(transport) == b""
    await transport.close()
    assert transport.describe_end() == "exit status 0"


async def test_what_a_killed_tagcall_left_behind_is_ended_by_the_next_start(tmp_path: Path, stray: Stray) -> None:
    records = left_by_the_dead(tmp_path, stray.process.pid, ARGV)
    transport = await ChildTransport.start(Launch([sys.executable, "-c", ""], dict(os.environ), records=records))
    assert stray.ended_by() == signal.SIGTERM
    await asyncio.gather(transport.close(), transport.close())
