"""A child's stderr. It is always drained, so that the child never waits for us, unless it floods. Only its end is kept.

It is logged at debug level only: a few lines a second, without anything that looks like a secret.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import threading
import time
from contextlib import suppress

import structlog
from structlog.typing import FilteringBoundLogger

log: FilteringBoundLogger = structlog.get_logger(__name__)

# Bytes: what a pipe holds.
READ_SIZE = 2**16
# Bytes kept to explain an early end.
KEPT = 4096
# Seconds without a look at it when as much was there: a flood takes hardly any time of the loop, and goes on by 13 MB
# a second.
FLOOD_PAUSE = 0.005
# Reads that a thread may be ahead of the loop that keeps them.
READS_AHEAD = 16
# Lines that are logged; the others are counted.
LINES_PER_SECOND = 20

# Each pattern's first group stays. A child may write anything: none of them looks at a character more than a few times.
SECRETS = (
    re.compile(r"((?i:bearer|basic)\s+)[\w.~+/=-]+"),
    re.compile(
        r"((?i:api[-_]?key|authorization|cookie|password|passwd|secret|token)[\"']?\s*[:=]\s*[\"']?)"
        r"(?!(?i:bearer|basic)\b)[^\s\"',;}]+"
    ),
    re.compile(r"(\b[a-z][a-z0-9+.-]{0,20}://)[^/\s@]+(?=@)"),
    re.compile(r"(\bsk-)[\w-]{6,}"),
    re.compile(r"((?<![\w-])eyJ)[\w-]+\.[\w-]+(?:\.[\w-]*)?"),
)


def redact(text: str) -> str:
    """`text` without keys, tokens, passwords and what else looks like one."""
    for pattern in SECRETS:
        text = pattern.sub(r"\1***", text)
    return text


class StderrTail:
    """`write_end` is for the child; close ours once it has it."""

    def __init__(self) -> None:
        self._read_end, self.write_end = os.pipe()
        self._kept = b""
        self._begun = b""
        self._second = 0
        self._logged = 0
        self._open = True
        self._watched = True
        self._pause: asyncio.TimerHandle | None = None
        loop = asyncio.get_running_loop()
        try:
            loop.add_reader(self._read_end, self._drain)
            os.set_blocking(self._read_end, False)
        except NotImplementedError:  # Windows, whose loop watches sockets only
            self._watched = False
            threading.Thread(target=self._read_to_the_end, args=(loop,), name="stderr of a child", daemon=True).start()

    def close_write_end(self) -> None:
        os.close(self.write_end)

    def _drain(self) -> None:
        if self._read() == READ_SIZE:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._read_end)
            self._pause = loop.call_later(FLOOD_PAUSE, self._look_again)

    def _look_again(self) -> None:
        self._pause = None
        asyncio.get_running_loop().add_reader(self._read_end, self._drain)

    def _read_the_rest(self) -> None:
        """What came in a pause: a pipe holds no more than one read."""
        if self._open and self._pause is not None:
            self._pause.cancel()
            self._look_again()
            self._read()

    def _read(self) -> int:
        """How many bytes were there."""
        try:
            data = os.read(self._read_end, READ_SIZE)
        except BlockingIOError:
            return 0
        if data:
            self._keep(data)
        else:
            self.close()
        return len(data)

    def _read_to_the_end(self, loop: asyncio.AbstractEventLoop) -> None:
        ahead = threading.Semaphore(READS_AHEAD)

        def keep(data: bytes) -> None:
            self._keep(data)
            ahead.release()

        with suppress(RuntimeError):  # the loop is closed
            while data := os.read(self._read_end, READ_SIZE):
                ahead.acquire()
                loop.call_soon_threadsafe(keep, data)
                if len(data) == READ_SIZE:
                    time.sleep(FLOOD_PAUSE)
        os.close(self._read_end)  # by nobody else: closing waits for a read that waits

    def _keep(self, data: bytes) -> None:
        self._kept = (self._kept + data)[-KEPT:]
        self._log(data)

    def _log(self, data: bytes) -> None:
        # Whole lines only: half a key does not look like one.
        *lines, begun = data.split(b"\n")
        if lines:
            lines[0] = self._begun + lines[0]
            self._begun = b""
        self._begun = (self._begun + begun)[:KEPT]
        second = int(asyncio.get_running_loop().time())
        if second != self._second:
            if self._logged > LINES_PER_SECOND:
                log.debug("child_stderr_not_logged", lines=self._logged - LINES_PER_SECOND)
            self._second, self._logged = second, 0
        if log.is_enabled_for(logging.DEBUG):
            for line in lines[: max(0, LINES_PER_SECOND - self._logged)]:
                log.debug("child_stderr", text=redact(line[:KEPT].decode(errors="replace")))
        self._logged += len(lines)

    def last_line(self) -> str:
        """The last line with anything in it, without secrets."""
        self._read_the_rest()
        lines = self._kept.decode(errors="replace").split("\n")
        return redact(next((line.strip() for line in reversed(lines) if line.strip()), ""))

    def close(self) -> None:
        self._read_the_rest()
        if self._open and self._watched:
            self._open = False
            asyncio.get_running_loop().remove_reader(self._read_end)
            os.close(self._read_end)
