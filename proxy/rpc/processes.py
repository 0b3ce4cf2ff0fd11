"""Processes as the system sees them: who one is, whether it lives, how much memory it takes.

Linux tells in /proc (proc(5)); elsewhere `ps` is asked, which takes some milliseconds.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

# Where Linux tells of processes, and whether this system does.
PROC = Path("/proc")
IN_PROC = (PROC / "self" / "stat").exists()
# Seconds for `ps`.
PS_TIMEOUT = 5.0
# Seconds between two looks at a process whose end nobody reports.
POLL_INTERVAL = 0.02


@dataclass(frozen=True, slots=True)
class Process:
    """A living process. A pid is given anew some day; together with `started` it is not."""

    pid: int
    started: str
    command: str


def find_process(pid: int) -> Process | None:
    """None when there is none, or only its exit status is left of it."""
    return _find_in_proc(pid) if IN_PROC else _find_by_ps(pid)


def resident_bytes(pid: int) -> int | None:
    """The memory that it has in RAM; None when it cannot be told."""
    try:
        if IN_PROC:
            return int((PROC / str(pid) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return int(_ps(pid, "rss=")) * 1024
    except (OSError, ValueError, IndexError):
        return None


def _find_in_proc(pid: int) -> Process | None:
    try:
        # The name in parentheses may hold anything; the state is the first field after it, the start the 20th.
        fields = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        command = (PROC / str(pid) / "cmdline").read_bytes().rstrip(b"\0").replace(b"\0", b" ")
    except OSError:
        return None
    return None if fields[0] in "ZX" else Process(pid, fields[19], command.decode(errors="replace"))


def _find_by_ps(pid: int) -> Process | None:
    try:
        state, *words = _ps(pid, "stat=,lstart=,args=").split()
    except (OSError, ValueError):
        return None
    # Thu Nov 20 09:20:26 2026
    return None if state.startswith("Z") else Process(pid, " ".join(words[:5]), " ".join(words[5:]))


def _ps(pid: int, columns: str) -> str:
    command = ["ps", "-ww", "-o", columns, "-p", str(pid)]
    try:
        done = subprocess.run(  # noqa: S603 -- the system's own, with a number
            command, capture_output=True, timeout=PS_TIMEOUT, check=True, env={**os.environ, "LC_ALL": "C"}
        )
    except subprocess.SubprocessError as error:
        raise OSError(str(error)) from error
    return done.stdout.decode(errors="replace")
