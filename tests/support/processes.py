"""The child processes of the test run, by id, so that tests end those they mean and no others."""

from __future__ import annotations

from contextlib import suppress

import psutil


def app_servers(parent: int | None = None) -> list[int]:
    """The children of `parent`, our own without it, that run as an app-server."""
    found = []
    for child in psutil.Process(parent).children():
        with suppress(psutil.NoSuchProcess):
            if "app-server" in " ".join(child.cmdline()):
                found.append(child.pid)
    return found
