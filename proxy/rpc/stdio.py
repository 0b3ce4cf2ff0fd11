"""A child process that speaks lines on stdin and stdout, from its start to its last signal.

    started --our end closes its stdin--> leaving --2 s--> SIGTERM --2 s--> SIGKILL --> reaped
       |                                     '--------- as soon as it goes ------------>--'
       '-- abort, or our own death on Linux -------------> SIGKILL

The child lives in its own session, so that a signal to its group reaches everything that it started. Windows has
neither: there both signals end each process of its tree. A program that is stuck writing may survive a closed pipe, and
a stuck one SIGTERM. If we die, the kernel ends the child on Linux; elsewhere the next start finds it by its record.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self, cast

import structlog
from msgspec import Struct
from structlog.typing import FilteringBoundLogger

from .child_records import ChildRecords
from .group import group_of, own_group
from .processes import POLL_INTERVAL, resident_bytes
from .stderr import StderrTail

log: FilteringBoundLogger = structlog.get_logger(__name__)

# Bytes. A prompt comes back as lines of its own size, so blocks are large and lines have no limit here.
READ_SIZE = 2**20
# Bytes that a child may write before it is read. By itself a pipe of Linux takes 64 KiB: many streams at once are then
# read, and written on, in four times as many pieces.
PIPE_SIZE = 2**18
# Seconds between the end of a child's output and its own, for `describe_end` to know how it ended.
EXIT_AFTER_LAST_WORD = 0.2
# Seconds for a child to leave once its stdin is closed; real ones take 0.07 to 0.4.
EXIT_AFTER_EOF = 2.0
# Seconds for its group to leave once it got SIGTERM.
EXIT_AFTER_TERM = 2.0
# Seconds for the kernel to report a killed child.
EXIT_AFTER_KILL = 2.0

# Asks the kernel for SIGKILL at the parent's death (PR_SET_PDEATHSIG is 1) and for a wider stdout, then becomes the
# program. A preexec_fn would run Python between fork and exec of a process with threads; this one has none.
BOUND_TO_PARENT = f"""\
import ctypes, fcntl, os, sys
ctypes.CDLL(None).prctl(1, 9)
try:
    fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, {PIPE_SIZE})
except OSError:
    pass  # its user's pipes take all that they may
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


class Launch(Struct, frozen=True):
    """What to start: `argv[0]` is a path or a name on PATH, `env` the whole environment.

    `records` is where a child is written down that must not outlive a killed tagcall.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: Path | None = None
    records: ChildRecords | None = None


class _Straight(asyncio.Protocol):
    """Of a pipe: all but its data goes to the protocol `behind`."""

    def __init__(self, take: Callable[[bytes], None], behind: asyncio.BaseProtocol) -> None:
        self._take = take
        self._behind = behind

    def data_received(self, data: bytes) -> None:
        self._take(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._behind.connection_lost(exc)


class _Output(asyncio.subprocess.SubprocessStreamProtocol):
    """asyncio's protocol for a child, but what it says is heard where it is read: there each read would be passed on in
    the loop's next turn, and to who waits for it in the one after that, and a delta is read alone.
    """

    def __init__(self) -> None:
        super().__init__(limit=READ_SIZE, loop=asyncio.get_running_loop())
        self._unheard: list[bytes] = []
        self._hearer: Callable[[bytes], None] = self._unheard.append
        self._over = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # uvloop's own is no subclass.
        pipe = cast("asyncio.SubprocessTransport", transport).get_pipe_transport(1)
        assert pipe is not None  # noqa: S101 -- a pipe by `start`
        pipe.set_protocol(_Straight(self._take, pipe.get_protocol()))

    def _take(self, data: bytes) -> None:
        self._hearer(data)

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        """Before there was a connection."""
        assert isinstance(data, bytes)  # noqa: S101 -- not a text stream
        self._take(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        super().pipe_connection_lost(fd, exc)
        if fd == 1:
            self._over.set()

    async def hear(self, take: Callable[[bytes], None]) -> None:
        while self._unheard:
            take(self._unheard.pop(0))
        self._hearer = take
        try:
            await self._over.wait()
        finally:
            self._hearer = self._unheard.append


class ChildTransport:
    """The `Transport` to a started child. Made by `start`."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        output: _Output,
        stderr: StderrTail,
        records: ChildRecords | None = None,
    ) -> None:
        self._process = process
        self._output = output
        self._stderr = stderr
        self._records = records
        self._group = group_of(process.pid)
        self._closing = asyncio.Lock()
        self._gone = False

    @classmethod
    async def start(cls, launch: Launch) -> Self:
        """Raises `OSError` when the program cannot be started."""
        program = shutil.which(launch.argv[0], path=launch.env.get("PATH"))
        if program is None:
            raise FileNotFoundError(f"{launch.argv[0]} is not a program")
        if launch.records is not None:
            await launch.records.end_leftovers()
        argv = command = [program, *launch.argv[1:]]
        if sys.platform == "linux" and sys.executable:
            argv = [sys.executable, "-I", "-S", "-c", BOUND_TO_PARENT, str(os.getpid()), *command]
        stderr = StderrTail()
        try:
            transport, output = await asyncio.get_running_loop().subprocess_exec(
                _Output,
                *argv,
                env=launch.env,
                cwd=launch.cwd,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr.write_end,
                **own_group(),
            )
        except BaseException:
            stderr.close()
            raise
        finally:
            stderr.close_write_end()
        process = asyncio.subprocess.Process(transport, output, asyncio.get_running_loop())
        log.debug("child_started", pid=process.pid, program=program)
        if launch.records is not None:
            launch.records.write(process.pid, command)
        return cls(process, output, stderr, launch.records)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def hear(self, take: Callable[[bytes], None]) -> None:
        await self._output.hear(take)
        await self._exited_within(EXIT_AFTER_LAST_WORD)

    def offer(self, line: bytes) -> bool:
        assert self._process.stdin is not None  # noqa: S101 -- a pipe by `start`
        pipe = self._process.stdin.transport
        if pipe.is_closing() or pipe.get_write_buffer_size():
            return False
        pipe.write(line)
        return True

    async def send(self, line: bytes) -> None:
        assert self._process.stdin is not None  # noqa: S101 -- a pipe by `start`
        self._process.stdin.write(line)
        await self._process.stdin.drain()

    async def close(self) -> None:
        """Close stdin, wait; SIGTERM, wait; SIGKILL, reap. At most 6 s; the last two at once when this is cancelled."""
        async with self._closing:
            try:
                await self._leave()
            except asyncio.CancelledError:
                self.abort()
                # A loop that closes before it is told of the child's end leaves its transport behind, unclosed.
                await self._exited_within(EXIT_AFTER_KILL)
                raise
            finally:
                self._stderr.close()

    async def _leave(self) -> None:
        assert self._process.stdin is not None  # noqa: S101 -- a pipe by `start`
        self._anybody()  # who is there now: a tree is not to be seen any more once the child has gone
        self._process.stdin.close()
        if not await self._gone_within(EXIT_AFTER_EOF):
            self._group.terminate()
            if not await self._gone_within(EXIT_AFTER_TERM):
                self._group.kill()
                if not await self._gone_within(EXIT_AFTER_KILL):
                    log.error("child_outlived_sigkill", pid=self._process.pid)
        if self._records is not None and self._gone:
            self._records.remove(self._process.pid)

    def abort(self) -> None:
        if self._anybody():
            self._group.kill()

    async def _exited_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._process.wait()
        return self._process.returncode is not None

    async def _gone_within(self, seconds: float) -> bool:
        """Whether it has gone, and with it whatever it started: npm's launcher leaves its program behind."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._process.wait()
                while self._anybody():  # noqa: ASYNC110 -- nobody reports the end of a child's children
                    await asyncio.sleep(POLL_INTERVAL)
        return self._gone

    def _anybody(self) -> bool:
        """Whether anybody is there."""
        if self._gone:  # the pid may be another's by now
            return False
        if self._group.alive():
            return True
        self._gone = self._process.returncode is not None
        return False

    def describe_end(self) -> str:
        """How it ended, and the last line of its stderr, without secrets."""
        code = self._process.returncode
        how = "it closed its output" if code is None else f"exit status {code}" if code >= 0 else f"signal {-code}"
        tail = self._stderr.last_line()
        return f"{how}: {tail}" if tail else how

    async def resident_bytes(self) -> int | None:
        return await asyncio.to_thread(resident_bytes, self._process.pid)
