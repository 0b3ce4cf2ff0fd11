"""Whether a file is a store of ours that can be used, before SQLite is let near it.

missing, empty            a new store
ours                      opened; set aside and begun anew when it is damaged
ours, another version     refused
of another program, or no database at all    refused, and left as it is
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

from ..errors import UsageError, reason_of

# What every SQLite file begins with, and what marks one of ours.
MAGIC = b"SQLite format 3\0"
APPLICATION_ID = 0x7467_636C  # "tgcl"
# Of the tables below; a file of another version is refused.
VERSION = 1

# Where SQLite's header has these two (https://www.sqlite.org/fileformat.html, section 1.3).
_VERSION_AT = slice(60, 64)
_APPLICATION_AT = slice(68, 72)
_HEADER_SIZE = 100

SCHEMA = f"""
CREATE TABLE IF NOT EXISTS records (
  key TEXT PRIMARY KEY, value BLOB NOT NULL, written_at REAL NOT NULL, expires_at REAL NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS records_written ON records (written_at);
CREATE INDEX IF NOT EXISTS records_expires ON records (expires_at);
CREATE TABLE IF NOT EXISTS entries (
  position INTEGER PRIMARY KEY, key TEXT NOT NULL REFERENCES records ON DELETE CASCADE, value BLOB NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS entries_key ON entries (key, position);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
"""

# Milliseconds that a statement waits for another process on the same file.
BUSY_TIMEOUT = 5_000
# Milliseconds between two attempts where SQLite does not wait by itself.
_PAUSE = 10


def _create(path: Path) -> None:
    """The file first, so that it is never readable by others, not even for a moment."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # One that is there is not opened: closing it would take the locks of a store that has it open in this process
    # (https://www.sqlite.org/howtocorrupt.html, section 2.2).
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _check_owner(path: Path) -> None:
    """Refuses what is not ours, or not of this version. A pipe would be read for ever."""
    if not path.is_file():
        raise UsageError(f"{path} is not a file", "choose another --store")
    try:
        with closing(sqlite3.connect(path)) as database:
            application, version, tables = database.execute(
                "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) "
                "FROM pragma_application_id, pragma_user_version"
            ).fetchone()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if not _is_damage(error):
            raise
        with path.open("rb") as file:
            header = file.read(_HEADER_SIZE)
        if len(header) < _HEADER_SIZE or not header.startswith(MAGIC):
            raise UsageError(f"{path} is not a store of tagcall", "move it away, or choose another --store") from None
        application = int.from_bytes(header[_APPLICATION_AT], "big")
        version = int.from_bytes(header[_VERSION_AT], "big")
        tables = 1
    if application != APPLICATION_ID and (application or version or tables):
        raise UsageError(f"{path} is the database of another program", "choose another --store")
    if application == APPLICATION_ID and version != VERSION:
        raise UsageError(
            f"{path} was written by another version of tagcall (format {version}; this version has {VERSION})",
            "move it away, or choose another --store",
        )


def _is_damage(error: sqlite3.DatabaseError | UnicodeDecodeError) -> bool:
    """A damaged schema is quoted in SQLite's error, which Python then cannot read."""
    if isinstance(error, UnicodeDecodeError):
        return True
    return error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def _make(path: Path) -> bool:
    """Brings the file into its form. False when it is damaged."""
    with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT / 1000, isolation_level=None)) as database:
        try:
            _write_ahead(database)
            database.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")
            return bool(database.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if _is_damage(error):
                return False
            raise


def _write_ahead(database: sqlite3.Connection) -> None:
    """Switches to the write-ahead log. Raises `sqlite3.OperationalError`.

    SQLite does not wait here for another process that does the same at this moment, whatever its timeout says.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT / 1000
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE / 1000)
        else:
            return


def _set_aside(path: Path) -> Path:
    """Moves a damaged store away, with the files that belong to it. Returns where it is now."""
    aside = path.with_name(f"{path.name}.damaged-{time.time_ns()}")
    path.rename(aside)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return aside


def prepare(path: Path) -> Path | None:
    """Makes `path` a store that can be opened. Returns where a damaged one was moved to, if there was one.

    Blocks while the file is read through. Raises `UsageError`.
    """
    try:
        _create(path)
        _check_owner(path)
        if _make(path):
            return None
        aside = _set_aside(path)
        _create(path)
        _make(path)
    except (OSError, sqlite3.Error) as error:
        raise UsageError(f"Responses cannot be kept in {path} ({reason_of(error)})", "choose another --store") from None
    return aside
