"""The child processes of the test run, by id, so that tests end those they mean and no others."""

from __future__ import annotations

import os
import subprocess


def app_servers() -> list[int]:
    """Our own children that run as an app-server."""
    listing = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = (line.split(None, 2) for line in listing.splitlines())
    return [int(pid) for pid, parent, arguments in rows if int(parent) == os.getpid() and "app-server" in arguments]
