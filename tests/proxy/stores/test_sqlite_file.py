"""Which files are taken, which are refused, and what becomes of a damaged one."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import pytest

from proxy.errors import UsageError
from proxy.stores.sqlite_file import prepare

CRASH = """
import os, sqlite3, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from proxy.stores.sqlite_file import prepare
prepare(Path(sys.argv[1]))
database = sqlite3.connect(sys.argv[1])
database.execute("INSERT INTO records VALUES ('key', x'00', 1, 1)")
database.commit()
os._exit(9)
"""


def test_a_new_file_and_an_empty_one_are_made_into_stores(tmp_path: Path) -> None:
    assert prepare(tmp_path / "new" / "r.db") is None
    (tmp_path / "empty.db").touch()
    assert prepare(tmp_path / "empty.db") is None
    assert prepare(tmp_path / "empty.db") is None


def test_a_store_that_is_open_in_this_process_keeps_its_locks(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    prepare(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("SELECT count(*) FROM records").fetchone()
        prepare(path)
        # Whoever closes a file that nobody else has open takes its log away.
        other = "import sqlite3, sys; it = sqlite3.connect(sys.argv[1]); it.execute('DELETE FROM records'); it.close()"
        subprocess.run([sys.executable, "-c", other, str(path)], check=True)
        assert path.with_name("r.db-wal").exists()


@pytest.mark.parametrize("times", [10, pytest.param(150, marks=pytest.mark.whole)])
def test_servers_that_start_at_the_same_moment_make_one_store(times: int, tmp_path: Path) -> None:
    """Each of some hundred times, as one in thirty was refused: SQLite does not wait for who switches to its log."""
    servers = 6
    with ThreadPoolExecutor(servers) as pool:
        for number in range(times):
            together = Barrier(servers)

            def start(path: Path = tmp_path / f"{number}.db", together: Barrier = together) -> Path | None:
                together.wait()
                return prepare(path)

            started = [pool.submit(start) for _ in range(servers)]
            assert [each.result() for each in started] == [None] * servers


def test_a_file_whose_process_was_killed_is_ours_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    for _ in range(2):
        path.unlink(missing_ok=True)
        assert subprocess.run([sys.executable, "-c", CRASH, str(path)], check=False).returncode == 9
        assert prepare(path) is None
        with closing(sqlite3.connect(path)) as database:
            assert database.execute("SELECT key FROM records").fetchall() == [("key",)]


@pytest.mark.parametrize("content", [b"my diary", b"not a database" * 1_000])
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "diary.txt"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="is not a store of tagcall"):
        prepare(path)
    assert path.read_bytes() == content


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="is not a file"):
        prepare(tmp_path / "pipe")


@pytest.mark.parametrize("statement", ["CREATE TABLE bookmarks (url)", "PRAGMA application_id = 1"])
def test_the_database_of_another_program_is_refused(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "places.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute(statement)
        database.commit()
    with pytest.raises(UsageError, match="database of another program"):
        prepare(path)


def test_another_version_is_refused_with_both_numbers(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    prepare(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 7")
    with pytest.raises(UsageError, match=r"another version of tagcall \(format 7; this version has 1\)"):
        prepare(path)


@pytest.mark.parametrize("at", [100, 4096, 9_000])
def test_a_damaged_store_is_set_aside_and_begun_anew(tmp_path: Path, at: int) -> None:
    path = tmp_path / "r.db"
    prepare(path)
    damaged = bytearray(path.read_bytes())
    damaged[at : at + 4_000] = b"\x99" * 4_000
    path.write_bytes(damaged)
    aside = prepare(path)
    assert aside is not None
    assert aside.read_bytes().startswith(b"SQLite format 3\0")
    assert prepare(path) is None


def test_a_store_whose_schema_is_damaged_is_set_aside(tmp_path: Path) -> None:
    """SQLite quotes it in its error, byte for byte."""
    path = tmp_path / "r.db"
    prepare(path)
    path.write_bytes(path.read_bytes().replace(b"CREATE INDEX records_expires", b"CREATE IND\xa2X records_expires"))
    assert prepare(path) is not None
    assert prepare(path) is None


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path, why in ((tmp_path / "file" / "r.db", "cannot be kept"), (tmp_path, "is not a file")):
        with pytest.raises(UsageError, match=why):
            prepare(path)
