"""Records of children, so that the next tagcall can end what a killed one left behind.

There is one file a child, named by its pid. A record is about exactly one process: pid, start time and command line
must all match. It also names the process that owns the child. While the owner lives, nobody else ends the child, so two
instances may share a folder.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import orjson
import structlog
from msgspec import Struct
from msgspec.structs import asdict
from structlog.typing import FilteringBoundLogger

from .group import group_of
from .processes import POLL_INTERVAL, find_process

log: FilteringBoundLogger = structlog.get_logger(__name__)

# Seconds for a left-over child to leave after SIGTERM, and again after SIGKILL.
LEAVES_WITHIN = 2.0


class _Record(Struct, frozen=True):
    pid: int
    started: float
    command: str
    owner: int
    owner_started: float

    @classmethod
    def read(cls, file: Path) -> Self | None:
        try:
            known = orjson.loads(file.read_bytes())
        except (OSError, orjson.JSONDecodeError):
            return None
        match known:
            case {
                "pid": int(pid),
                "started": float(started),
                "command": str(command),
                "owner": int(owner),
                "owner_started": float(owner_started),
            }:
                return cls(pid, started, command, owner, owner_started)
            case _:
                return None

    @property
    def owned(self) -> bool:
        owner = find_process(self.owner)
        return owner is not None and owner.has_started(self.owner_started)

    @property
    def alive(self) -> bool:
        process = find_process(self.pid)
        # The command is what was to be started; a script stands behind its interpreter's name.
        return process is not None and process.has_started(self.started) and self.command in process.command


class ChildRecords:
    """In `folder`, which is made when it is needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, pid: int, argv: Sequence[str]) -> None:
        """Remember a child of this process. What cannot be written is only missed after a crash."""
        child, owner = find_process(pid), find_process(os.getpid())
        if child is None or owner is None:
            return
        record = _Record(pid, child.started, " ".join(argv), owner.pid, owner.started)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = self._folder / f"{pid}.new"
            draft.write_bytes(orjson.dumps(asdict(record)))
            draft.chmod(0o600)
            draft.replace(self._file(pid))
        except OSError as error:
            log.warning("child_not_recorded", pid=pid, error=str(error))

    def remove(self, pid: int) -> None:
        """It has gone and was waited for."""
        with suppress(OSError):
            self._file(pid).unlink(missing_ok=True)

    async def end_leftovers(self) -> None:
        """End each recorded child whose owner has gone without ending it."""
        for file in await asyncio.to_thread(lambda: sorted(self._folder.glob("*.json"))):
            record = _Record.read(file)
            if record is not None and record.owned:
                continue
            if record is not None and record.alive:
                await _end(record)
            with suppress(OSError):
                file.unlink(missing_ok=True)

    def _file(self, pid: int) -> Path:
        return self._folder / f"{pid}.json"


async def _end(record: _Record) -> None:
    group = group_of(record.pid)
    for how, end in (("terminate", group.terminate), ("kill", group.kill)):
        end()
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVES_WITHIN):
                while record.alive:  # noqa: ASYNC110 -- nobody reports the end of another's child
                    await asyncio.sleep(POLL_INTERVAL)
            log.warning("left_over_child_ended", pid=record.pid, how=how)
            return
    log.error("left_over_child_stays", pid=record.pid)
