"""A child process that speaks lines on stdin and stdout, from its start to its last signal.

It lives in its own session, so that a signal to its group reaches whatever it started. It is ended by
closing its stdin; signals are for one that does not listen. On Linux it also gets SIGTERM when this process
dies: a closed pipe is no sure end for a program that is stuck writing.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import structlog

log = structlog.get_logger(__name__)

READ_SIZE = 2**20
"""Bytes. A prompt comes back as lines of its own size, so blocks are large and lines have no limit here."""
EXIT_AFTER_LAST_WORD = 0.2
"""Seconds between the end of a child's output and its own, for `describe_end` to know how it ended."""
EXIT_AFTER_EOF = 2.0
"""Seconds for a child to leave once its stdin is closed; real ones take 0.07 to 0.4."""
EXIT_AFTER_TERM = 2.0
"""Seconds for its group to leave once it got SIGTERM."""
EXIT_AFTER_KILL = 2.0
"""Seconds for the kernel to report a killed child."""
STDERR_KEPT = 4096
"""Bytes of stderr kept to explain an early end."""

# Asks the kernel for SIGTERM at the parent's death (PR_SET_PDEATHSIG is 1), then becomes the program. A
# preexec_fn would run Python between fork and exec of a process with threads; this one has none.
BOUND_TO_PARENT = """\
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 15)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start: `argv[0]` is a path or a name on PATH, `env` the whole environment."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: Path | None = None


class ChildTransport:
    """The `Transport` to a started child. Made by `start`."""

    def __init__(self, process: asyncio.subprocess.Process, stderr: _StderrTail) -> None:
        self._process = process
        self._stderr = stderr
        self._closing = asyncio.Lock()

    @classmethod
    async def start(cls, launch: Launch) -> Self:
        """Raises `OSError` when the program cannot be started."""
        program = shutil.which(launch.argv[0], path=launch.env.get("PATH"))
        if program is None:
            raise FileNotFoundError(f"{launch.argv[0]} is not a program")
        argv = [program, *launch.argv[1:]]
        if sys.platform == "linux" and sys.executable:
            argv = [sys.executable, "-I", "-S", "-c", BOUND_TO_PARENT, str(os.getpid()), *argv]
        stderr = _StderrTail()
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                env=launch.env,
                cwd=launch.cwd,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr.write_end,
                start_new_session=True,
                limit=READ_SIZE,
            )
        except BaseException:
            stderr.close()
            raise
        finally:
            stderr.close_write_end()
        log.debug("child_started", pid=process.pid, program=program)
        return cls(process, stderr)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def receive(self) -> bytes:
        assert self._process.stdout is not None  # noqa: S101 -- a pipe by `start`
        data = await self._process.stdout.read(READ_SIZE)
        if not data:
            await self._gone_within(EXIT_AFTER_LAST_WORD)
        return data

    async def send(self, line: bytes) -> None:
        assert self._process.stdin is not None  # noqa: S101 -- a pipe by `start`
        self._process.stdin.write(line)
        await self._process.stdin.drain()

    async def close(self) -> None:
        """Flush, close stdin, wait; SIGTERM, wait; SIGKILL, reap. At most 6 s."""
        async with self._closing:
            assert self._process.stdin is not None  # noqa: S101 -- a pipe by `start`
            self._process.stdin.close()
            if not await self._gone_within(EXIT_AFTER_EOF):
                self._signal_group(signal.SIGTERM)
                if not await self._gone_within(EXIT_AFTER_TERM):
                    self._signal_group(signal.SIGKILL)
                    if not await self._gone_within(EXIT_AFTER_KILL):
                        log.error("child_outlived_sigkill", pid=self._process.pid)
            self._stderr.close()

    async def _gone_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._process.wait()
        return self._process.returncode is not None

    def _signal_group(self, number: signal.Signals) -> None:
        # The group has the child's pid as its number for as long as any of its members lives.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def describe_end(self) -> str:
        code = self._process.returncode
        how = "it closed its output" if code is None else f"exit status {code}" if code >= 0 else f"signal {-code}"
        tail = self._stderr.last_line()
        return f"{how}: {tail}" if tail else how


class _StderrTail:
    """A pipe that is always drained, of which only the end is kept."""

    def __init__(self) -> None:
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._kept = b""
        self._open = True
        asyncio.get_running_loop().add_reader(self._read_end, self._drain)

    def close_write_end(self) -> None:
        os.close(self.write_end)

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            data = os.read(self._read_end, READ_SIZE)
            if not data:
                self.close()
                return
            self._kept = (self._kept + data)[-STDERR_KEPT:]
            log.debug("child_stderr", text=data.decode(errors="replace"))

    def last_line(self) -> str:
        lines = self._kept.decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def close(self) -> None:
        if self._open:
            self._open = False
            asyncio.get_running_loop().remove_reader(self._read_end)
            os.close(self._read_end)
