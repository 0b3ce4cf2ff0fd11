from __future__ import annotations

import os
import subprocess
import sys

import pytest

from proxy.rpc import processes
from proxy.rpc.processes import find_process, resident_bytes


@pytest.fixture(params=["/proc", "ps"], autouse=True)
def _source(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "/proc" and not processes.IN_PROC:
        pytest.skip("there is no /proc here")
    monkeypatch.setattr(processes, "IN_PROC", request.param == "/proc")


def test_a_process_is_known_by_its_pid_and_its_start() -> None:
    this = find_process(os.getpid())
    assert this is not None
    assert this.pid == os.getpid()
    assert this.started
    assert "python" in this.command or "pytest" in this.command
    assert find_process(os.getpid()) == this


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
