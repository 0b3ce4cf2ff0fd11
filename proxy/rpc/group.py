"""A child and everything that it started: whether any process is left, and the two ways to end them.

The child leads a process group. Windows has none: there the group is the tree below the child, as seen while the child
lived, and no process can be asked to end by itself.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any, Protocol

from .processes import Process, descendants, find_process, kill


def own_group() -> dict[str, Any]:
    """How to start a child that `group_of` finds, out of reach of our terminal's signals and without a window."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
    return {"start_new_session": True}


class Group(Protocol):
    def alive(self) -> bool:
        """Whether anybody is left. Once nobody is and the child was reaped, its pid may be another's."""

    def terminate(self) -> None:
        """Ask all to leave."""

    def kill(self) -> None: ...


def group_of(pid: int) -> Group:
    return ProcessGroup(pid) if hasattr(os, "killpg") else ProcessTree(pid)


class ProcessGroup:
    """It keeps the child's pid as its number while any member lives."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def alive(self) -> bool:
        return self._signal(0)

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> bool:
        try:
            os.killpg(self._pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True


class ProcessTree:
    """Whoever was seen stays a member, also when its parent has gone and nothing else tells where it came from."""

    def __init__(self, pid: int) -> None:
        child = find_process(pid)
        self._seen = [] if child is None else [child]

    def alive(self) -> bool:
        return bool(self._look())

    def terminate(self) -> None:
        self.kill()

    def kill(self) -> None:
        for member in self._look():
            kill(member.pid)

    def _look(self) -> list[Process]:
        living = {known.pid: known for known in self._seen if known.lives}
        for pid in tuple(living):
            living.update((found.pid, found) for found in descendants(pid))
        self._seen = list(living.values())
        return self._seen
