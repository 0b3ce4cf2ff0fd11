"""The child processes of the test run, by id, so that tests end those they mean and no others."""

from __future__ import annotations

import os
import subprocess


def app_servers(parent: int | None = None) -> list[int]:
    """The children of `parent`, our own without it, that run as an app-server."""
    parent = os.getpid() if parent is None else parent
    listing = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = (line.split(None, 2) for line in listing.splitlines())
    return [int(pid) for pid, of, arguments in rows if int(of) == parent and "app-server" in arguments]
