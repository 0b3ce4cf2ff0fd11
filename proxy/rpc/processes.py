"""Processes as the system sees them: who one is, whether it lives, how much memory it takes."""

from __future__ import annotations

import psutil
from msgspec import Struct

# Seconds between two looks at a process whose end nobody reports.
POLL_INTERVAL = 0.02
# Seconds by which two looks at a process may differ about its start: systems tell to the second when they came up.
SAME_START = 2.0


class Process(Struct, frozen=True):
    """As it was found. `started` is in seconds since the system came up, whose clock may be set meanwhile."""

    pid: int
    started: float
    command: str

    def has_started(self, at: float) -> bool:
        """A pid is given anew some day, and not so soon."""
        return abs(self.started - at) < SAME_START

    @property
    def lives(self) -> bool:
        """Whether it still does."""
        now = find_process(self.pid)
        return now is not None and now.has_started(self.started)


def find_process(pid: int) -> Process | None:
    """None when there is none, or only its exit status is left of it."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            if process.status() in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}:
                return None
            return Process(pid, process.create_time() - psutil.boot_time(), " ".join(process.cmdline()))
    except psutil.Error:
        return None


def descendants(pid: int) -> list[Process]:
    """The living processes that it started, and that those did; none once it has gone."""
    try:
        children = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []
    return [found for child in children if (found := find_process(child.pid)) is not None]


def resident_bytes(pid: int) -> int | None:
    """The memory that it has in RAM; None when it cannot be told."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return None
