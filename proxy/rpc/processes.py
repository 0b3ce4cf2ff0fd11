"""Processes as the system sees them: which one it is, whether it lives, how much memory it takes.

Linux tells this in three small files. On other systems psutil does. It takes 3 MB, so it is loaded only there.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

# Seconds between two looks at a process whose end nobody reports.
POLL_INTERVAL = 0.02
# Where files tell of processes: proc(5).
TOLD_IN = Path("/proc") if sys.platform == "linux" else None
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
    if TOLD_IN is not None:
        return _found_in(TOLD_IN / str(pid), pid)
    import psutil  # noqa: PLC0415 -- as it says above

    try:
        process = psutil.Process(pid)
        with process.oneshot():
            if process.status() in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}:
                return None
            return Process(pid, process.create_time() - psutil.boot_time(), " ".join(process.cmdline()))
    except psutil.Error:
        return None


def _found_in(folder: Path, pid: int) -> Process | None:
    try:
        # The name of its program stands in brackets, and may have some itself.
        state, *numbers = (folder / "stat").read_text("utf-8", "replace").rpartition(") ")[2].split()
        command = (folder / "cmdline").read_text("utf-8", "surrogateescape")
    except OSError:
        return None
    if state in "ZXx":
        return None
    return Process(pid, int(numbers[18]) / os.sysconf("SC_CLK_TCK"), " ".join(command.rstrip("\0").split("\0")))


def descendants(pid: int) -> list[Process]:
    """The living processes that it started, and that those did; none once it has gone."""
    import psutil  # noqa: PLC0415 -- as it says above

    try:
        children = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []
    return [found for child in children if (found := find_process(child.pid)) is not None]


def resident_bytes(pid: int) -> int | None:
    """The memory that it has in RAM; None when it cannot be told."""
    if TOLD_IN is not None:
        try:
            pages = int((TOLD_IN / str(pid) / "statm").read_text().split()[1])
        except OSError:
            return None
        return pages * os.sysconf("SC_PAGE_SIZE") or None
    import psutil  # noqa: PLC0415 -- as it says above

    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return None


def kill(pid: int) -> None:
    """Ends it, if it is there."""
    import psutil  # noqa: PLC0415 -- as it says above

    with suppress(psutil.Error):
        psutil.Process(pid).kill()
