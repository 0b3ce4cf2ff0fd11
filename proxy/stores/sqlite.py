"""Keys and values in an SQLite file, readable by its owner only.

With the write-ahead log the data survives if this process dies at any moment, and with `synchronous = FULL` if the
machine does. Processes may share a file: a transaction takes its lock at once and waits for the others'. A network file
system will not do, because SQLite cannot trust its locks.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Self

import aiosqlite
import structlog
from structlog.typing import FilteringBoundLogger

from ..errors import StoreError, UsageError, reason_of
from .key_value import MOMENT, NOTHING, Append, Change, Drop, Put, Take
from .sqlite_file import BUSY_TIMEOUT, prepare

# Bytes of the file that are in use.
MAX_BYTES = 256 << 20

# Records that are forgotten in one step, besides as many as were just written: expired ones, and the oldest ones if
# there is no room. The second step is small and repeated, because records may be large.
EXPIRED_STEP = 50
OLDEST_STEP = 2
# The most steps that forget the oldest records after one write.
MAX_STEPS = 10

# Bytes to which the log shrinks again after a large transaction.
MAX_LOG_BYTES = 16 << 20

# KiB of the file's pages that SQLite keeps in memory. By itself it fills 2 MiB; the system keeps these pages as well.
PAGE_CACHE = 256

READ = "SELECT value FROM records WHERE key = ? AND expires_at > ?"
IS_THERE = "SELECT 1 FROM records WHERE key = ? AND expires_at > ?"
EXPIRY = "SELECT expires_at FROM records WHERE key = ?"
LIST = """
SELECT value FROM entries
WHERE key = ? AND EXISTS (SELECT 1 FROM records WHERE key = ? AND expires_at > ?) ORDER BY position
"""
PUT = """
INSERT INTO records VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE
SET value = excluded.value, written_at = excluded.written_at, expires_at = excluded.expires_at
"""
APPEND = "INSERT INTO entries (key, value) SELECT key, ? FROM records WHERE key = ?"
TOUCH = "UPDATE records SET written_at = ?, expires_at = ? WHERE key = ?"
TAKE = """
DELETE FROM entries
WHERE position = (SELECT position FROM entries WHERE key = ? AND value = ? ORDER BY position LIMIT 1)
"""
DROP = "DELETE FROM records WHERE key = ?"
FORGET_EXPIRED = """
DELETE FROM records
WHERE rowid IN (SELECT rowid FROM records WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)
"""
FORGET_OLDEST = """
DELETE FROM records WHERE rowid IN (SELECT rowid FROM records WHERE expires_at > ? ORDER BY written_at LIMIT ?)
"""

log: FilteringBoundLogger = structlog.get_logger(__name__)


class SqliteKeyValue:
    """One connection, whose thread does the waiting. Operations take turns on it.

    After each write, expired records are forgotten in small steps. So are the oldest while there are over `max_bytes`.
    """

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._clock = clock
        self._open: aiosqlite.Connection | None = None
        self._turn = asyncio.Lock()
        self._patience = BUSY_TIMEOUT
        self._held = False
        self.up = True

    async def __aenter__(self) -> Self:
        aside = await asyncio.to_thread(prepare, self._path)
        if aside is not None:
            log.warning("damaged_store_set_aside", moved_to=str(aside))
        try:
            self._open = await aiosqlite.connect(self._path, isolation_level=None)
            for pragma in (
                f"busy_timeout = {self._patience}",
                "synchronous = FULL",
                "foreign_keys = ON",
                f"cache_size = -{PAGE_CACHE}",
                f"journal_size_limit = {MAX_LOG_BYTES}",
            ):
                await self._open.execute(f"PRAGMA {pragma}")
        except aiosqlite.Error as error:
            await self.__aexit__()
            raise UsageError(
                f"Responses cannot be kept in {self._path} ({reason_of(error)})", "choose another --store"
            ) from None
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._open is not None:
            await self._open.close()
            self._open = None

    async def read(self, key: str) -> bytes | None:
        async with self._database() as database, database.execute(READ, (key, self._clock())) as cursor:
            row = await cursor.fetchone()
        return None if row is None else bytes(row[0])

    async def left(self, key: str) -> float:
        async with self._database() as database, database.execute(EXPIRY, (key,)) as cursor:
            row = await cursor.fetchone()
        return 0.0 if row is None else max(0.0, float(row[0]) - self._clock())

    async def values(self, key: str) -> list[bytes]:
        async with self._database() as database, database.execute(LIST, (key, key, self._clock())) as cursor:
            return [bytes(row[0]) for row in await cursor.fetchall()]

    async def commit(
        self, changes: Sequence[Change], *, require: Sequence[str] = (), expect: Mapping[str, bytes | None] = NOTHING
    ) -> bool:
        async with self._database() as database:
            async with _transaction(database):
                self._held = False
                for key in require:
                    async with database.execute(IS_THERE, (key, self._clock())) as cursor:
                        if await cursor.fetchone() is None:
                            return False
                for key, value in expect.items():
                    async with database.execute(READ, (key, self._clock())) as cursor:
                        row = await cursor.fetchone()
                    if (None if row is None else bytes(row[0])) != value:
                        return False
                now = self._clock()
                steps = [step for change in changes for step in _statements(change, now)]
                # Each call costs a way to the thread and back, so equal statements in a row go together.
                for statement, group in groupby(steps, key=itemgetter(0)):
                    await database.executemany(statement, [parameters for _, parameters in group])
            await self._forget(database, len(changes))
        return True

    @asynccontextmanager
    async def _database(self) -> AsyncIterator[aiosqlite.Connection]:
        if self._open is None:
            raise RuntimeError("the store is not open")
        now = asyncio.get_running_loop().time
        came = now()
        async with self._turn:
            try:
                await self._be_patient(self._open, now() - came)
                yield self._open
                self.up = True
            except aiosqlite.Error as error:
                self.up = False
                code = getattr(error, "sqlite_errorcode", 0)  # errors of Python's own have none
                self._held = self._held or code & 0xFF == sqlite3.SQLITE_BUSY
                raise StoreError(str(error)) from error

    async def _be_patient(self, database: aiosqlite.Connection, waited: float) -> None:
        """Sets how long SQLite waits for the file's lock. The seconds that the operation has `waited` for its turn
        count: if another process holds the file, all operations wait together only once. Later ones, such as the next
        steps of a request, do not wait again until one of them gets the lock.

        A short wait is always left, for a process that holds the file for a write.
        """
        quarters = 0 if self._held else 4 - int(4_000 * waited / BUSY_TIMEOUT)
        patience = max(quarters * BUSY_TIMEOUT // 4, BUSY_TIMEOUT // 50)
        if patience != self._patience:
            self._patience = patience
            async with database.execute(f"PRAGMA busy_timeout = {patience}"):
                pass

    async def _forget(self, database: aiosqlite.Connection, written: int) -> None:
        """Forgets a little more than was written. A failure here is only logged, because the write is done."""
        try:
            async with _transaction(database):
                await database.execute(FORGET_EXPIRED, (self._clock(), EXPIRED_STEP + written))
            for _ in range(MAX_STEPS):
                if await self._used(database) <= self._max_bytes:
                    break
                async with _transaction(database):
                    await database.execute(FORGET_OLDEST, (self._clock() + MOMENT, OLDEST_STEP + written))
        except aiosqlite.Error as error:
            log.warning("forgetting_failed", error=str(error))

    async def _used(self, database: aiosqlite.Connection) -> int:
        pages, free, size = [
            row[0]
            for name in ("page_count", "freelist_count", "page_size")
            for row in await database.execute_fetchall(f"PRAGMA {name}")
        ]
        return int((pages - free) * size)


@asynccontextmanager
async def _transaction(database: aiosqlite.Connection) -> AsyncIterator[None]:
    """A transaction. It is rolled back on any error, also if the task is cancelled."""
    try:
        await database.execute("BEGIN IMMEDIATE")
        yield
        await database.execute("COMMIT")
    except BaseException:
        await database.rollback()
        raise


def _statements(change: Change, now: float) -> Sequence[tuple[str, tuple[object, ...]]]:
    """The statements that make a change."""
    match change:
        case Put(key, value, ttl):
            return [(PUT, (key, value, now, now + ttl))]
        case Append(key, values, ttl):
            return [*((APPEND, (value, key)) for value in values), (TOUCH, (now, now + ttl, key))]
        case Take(key, value):
            return [(TAKE, (key, value))]
        case Drop(key):
            return [(DROP, (key,))]
