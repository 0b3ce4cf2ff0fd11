"""The child processes of the test run, by id, so that tests end those they mean and no others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import psutil

from proxy.rpc.processes import POLL_INTERVAL, Process, find_process

from .patience import PATIENCE


def app_servers(parent: int | None = None) -> list[int]:
    """The children of `parent`, our own without it, that run as an app-server."""
    found = []
    for child in psutil.Process(parent).children():
        with suppress(psutil.NoSuchProcess):
            if "app-server" in " ".join(child.cmdline()):
                found.append(child.pid)
    return found


async def all_gone(pids: Sequence[int]) -> None:
    """Waits for it: who was killed may be there for a moment."""
    async with asyncio.timeout(PATIENCE):
        while any(map(find_process, pids)):  # noqa: ASYNC110 -- they may be nobody's children any more
            await asyncio.sleep(POLL_INTERVAL)


async def command_of(pid: int) -> Process:
    """As it was found, once it has a command: for a moment after its start it has none, while it is put in place."""
    async with asyncio.timeout(PATIENCE):
        while not (found := find_process(pid)) or not found.command:  # noqa: ASYNC110 -- the system gives no sign
            await asyncio.sleep(POLL_INTERVAL)
    return found


async def said_by(process: asyncio.subprocess.Process) -> tuple[str, str]:
    """What it says on its standard output and error until it ends by itself; else it is killed."""
    try:
        async with asyncio.timeout(PATIENCE):
            out, error = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return (out or b"").decode(), (error or b"").decode()
