"""Responses in an SQLite file, readable by its owner only.

A Response is committed before its last event is sent. The write-ahead log survives the end of this
process at any moment; `synchronous=FULL` survives that of the machine.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

import aiosqlite
import orjson

from ..contracts import StoredResponse, WireObject
from ..errors import StoreError, UsageError
from .memory import items_of

# Milliseconds that a write waits for another process on the same file.
BUSY_TIMEOUT = 5_000

SCHEMA = """
CREATE TABLE IF NOT EXISTS responses (
  id TEXT PRIMARY KEY, previous TEXT, owner TEXT NOT NULL, created_at INTEGER NOT NULL,
  input BLOB NOT NULL, response BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS items (
  id TEXT NOT NULL, owner TEXT NOT NULL, response TEXT NOT NULL REFERENCES responses ON DELETE CASCADE,
  item BLOB NOT NULL, PRIMARY KEY (id, owner)
) STRICT;
CREATE INDEX IF NOT EXISTS items_response ON items (response);
"""


class SqliteStore:
    """One connection; writes take turns on it. Raises `StoreError` when the file cannot be read or written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: aiosqlite.Connection | None = None
        self._writing = asyncio.Lock()

    async def __aenter__(self) -> Self:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # The file first, so that it is never readable by others, not even for a moment.
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
            self._open = await aiosqlite.connect(self._path)
            await self._open.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT}")
            await self._open.execute("PRAGMA journal_mode = WAL")
            await self._open.execute("PRAGMA synchronous = FULL")
            await self._open.execute("PRAGMA foreign_keys = ON")
            await self._open.executescript(SCHEMA)
        except (OSError, aiosqlite.Error) as error:
            await self.__aexit__()
            raise UsageError(f"Responses cannot be kept in {self._path} ({error}): choose another --store.") from None
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._open is not None:
            await self._open.close()
            self._open = None

    @asynccontextmanager
    async def _database(self) -> AsyncIterator[aiosqlite.Connection]:
        if self._open is None:
            raise RuntimeError("the store is not open")
        try:
            yield self._open
        except aiosqlite.Error as error:
            raise StoreError(str(error)) from error

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[aiosqlite.Connection]:
        """All of it or nothing, and nothing of another task in between."""
        async with self._writing, self._database() as database:
            try:
                yield database
                await database.commit()
            except BaseException:
                await database.rollback()
                raise

    async def save(self, stored: StoredResponse) -> None:
        row = (stored.id, stored.previous, stored.owner, stored.created_at)
        async with self._transaction() as database:
            await database.execute(
                "INSERT OR REPLACE INTO responses VALUES (?, ?, ?, ?, ?, ?)",
                (*row, orjson.dumps(stored.input), orjson.dumps(stored.response)),
            )
            await database.executemany(
                "INSERT OR REPLACE INTO items VALUES (?, ?, ?, ?)",
                [(item["id"], stored.owner, stored.id, orjson.dumps(item)) for item in items_of(stored)],
            )

    async def load(self, response_id: str, owner: str) -> StoredResponse | None:
        query = "SELECT id, previous, owner, created_at, input, response FROM responses WHERE id = ? AND owner = ?"
        async with self._database() as database, database.execute(query, (response_id, owner)) as cursor:
            row = await cursor.fetchone()
        if row is None:
            return None
        return StoredResponse(row[0], row[1], row[2], row[3], tuple(orjson.loads(row[4])), orjson.loads(row[5]))

    async def delete(self, response_id: str, owner: str) -> bool:
        query = "DELETE FROM responses WHERE id = ? AND owner = ?"
        async with self._transaction() as database, database.execute(query, (response_id, owner)) as cursor:
            return cursor.rowcount > 0

    async def find_item(self, item_id: str, owner: str) -> WireObject | None:
        query = "SELECT item FROM items WHERE id = ? AND owner = ?"
        async with self._database() as database, database.execute(query, (item_id, owner)) as cursor:
            row = await cursor.fetchone()
        if row is None:
            return None
        item: WireObject = orjson.loads(row[0])
        return item
