"""The same promises where there are process groups and where there are none."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest

from proxy.rpc.group import Group, ProcessGroup, ProcessTree, group_of, own_group
from proxy.rpc.processes import POLL_INTERVAL, find_process
from tests.support.patience import PATIENCE

# A child with a child of its own, both deaf to being asked.
DEAF = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('ready', flush=True)\ntime.sleep(600)"
PARENT = f"import subprocess, sys\nit = subprocess.Popen([sys.executable, '-c', {DEAF!r}])\nprint(it.pid, flush=True)\n"


@pytest.fixture(params=["a group", "a tree"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What this system has of it."""
    if request.param == "a tree":
        monkeypatch.delattr(os, "killpg")
    return str(request.param)


@pytest.fixture
def family(system: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A child, and the pid of the child that it has itself."""
    child = subprocess.Popen(
        [sys.executable, "-c", PARENT + "sys.stdin.read()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", **own_group(),
    )  # fmt: skip
    assert child.stdout is not None
    lines = {child.stdout.readline().strip(), child.stdout.readline().strip()}
    grandchild = int((lines - {"ready"}).pop())
    yield child, grandchild
    for pid in (child.pid, grandchild):
        with suppress(psutil.Error):
            psutil.Process(pid).kill()
    child.communicate(timeout=PATIENCE)


async def emptied(group: Group, grandchild: int) -> None:
    """Waits for it: nobody reports the end of a child's child."""
    async with asyncio.timeout(PATIENCE):
        while group.alive() or find_process(grandchild) is not None:  # noqa: ASYNC110 -- the same
            await asyncio.sleep(POLL_INTERVAL)


async def test_killing_ends_whatever_the_child_started(family: tuple[subprocess.Popen[str], int]) -> None:
    child, grandchild = family
    group = group_of(child.pid)
    assert group.alive()
    group.kill()
    child.wait(PATIENCE)
    await emptied(group, grandchild)
    group.kill()


async def test_who_is_left_behind_by_the_child_is_still_one_of_them(family: tuple[subprocess.Popen[str], int]) -> None:
    child, grandchild = family
    group = group_of(child.pid)
    assert group.alive()
    child.kill()
    child.wait(PATIENCE)
    assert group.alive()
    group.kill()
    await emptied(group, grandchild)


@pytest.mark.parametrize("system", ["a tree"], indirect=True)
async def test_where_nobody_can_be_asked_to_leave_asking_ends(family: tuple[subprocess.Popen[str], int]) -> None:
    child, grandchild = family
    group = group_of(child.pid)
    group.terminate()
    child.wait(PATIENCE)
    await emptied(group, grandchild)


def test_the_group_of_nobody_is_empty(system: str) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""], **own_group())
    child.wait(PATIENCE)
    group = group_of(child.pid)
    assert isinstance(group, ProcessGroup if system == "a group" else ProcessTree)
    assert not group.alive()
    group.kill()


def test_on_windows_a_child_is_started_without_a_window_and_away_from_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # https://learn.microsoft.com/windows/win32/procthread/process-creation-flags
    monkeypatch.setattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0x200, raising=False)
    monkeypatch.setattr(subprocess, "CREATE_NO_WINDOW", 0x0800_0000, raising=False)
    monkeypatch.setattr(sys, "platform", "win32")
    assert own_group() == {"creationflags": 0x0800_0200}
