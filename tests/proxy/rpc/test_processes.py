from __future__ import annotations

import os
import subprocess
import sys

import psutil
import pytest

from proxy.rpc.processes import SAME_START, find_process, resident_bytes


@pytest.fixture(params=["by the system's files", "by psutil"], autouse=True)
def told(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How it is found out."""
    if request.param == "by psutil":
        monkeypatch.setattr("proxy.rpc.processes.TOLD_IN", None)
    elif sys.platform != "linux":
        pytest.skip("the files of Linux")


def test_both_ways_tell_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    argv = [sys.executable, "-c", "print('here', flush=True), input()", "a) b", "", "\xfc"]
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    # The system has no command to tell for the moment in which it puts the program in place.
    assert child.stdout.readline() == b"here\n"
    found = find_process(child.pid)
    monkeypatch.setattr("proxy.rpc.processes.TOLD_IN", None)
    other = find_process(child.pid)
    child.communicate(b"\n")
    assert found is not None
    assert other is not None
    assert found.command == other.command
    assert found.has_started(other.started)


def test_a_process_is_known_by_its_pid_and_its_start() -> None:
    this = find_process(os.getpid())
    assert this is not None
    assert this.pid == os.getpid()
    assert this.started > 0
    assert "python" in this.command or "pytest" in this.command
    again = find_process(os.getpid())
    assert again is not None
    assert again.has_started(this.started)
    assert not again.has_started(this.started - SAME_START - 1)


def test_a_clock_that_is_set_makes_no_other_process_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = find_process(os.getpid())
    assert before is not None
    came_up, born = psutil.boot_time(), psutil.Process().create_time()
    monkeypatch.setattr(psutil, "boot_time", lambda: came_up + 3600)
    monkeypatch.setattr(psutil.Process, "create_time", lambda _: born + 3600)
    after = find_process(os.getpid())
    assert after is not None
    assert after.has_started(before.started)


def test_what_has_ended_is_none_before_and_after_it_was_waited_for() -> None:
    child = subprocess.Popen([sys.executable, "-c", "print('here')"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.read()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert find_process(child.pid) is None
    child.wait()
    child.stdout.close()
    assert find_process(child.pid) is None
    assert resident_bytes(child.pid) is None


def test_this_process_takes_some_memory() -> None:
    size = resident_bytes(os.getpid())
    assert size is not None
    assert 2**22 < size < 2**34
