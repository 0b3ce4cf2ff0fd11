"""The file: it outlives its process, stays small, is shared, and breaks without breaking answers."""

from __future__ import annotations

import asyncio
import resource
import sqlite3
import stat
import sys
import time
from contextlib import closing
from pathlib import Path
from shutil import copyfile

import pytest
from structlog.testing import capture_logs

from proxy.errors import StoreError
from proxy.stores import Append, Drop, KeyedStore, Put, SqliteKeyValue, make_store
from proxy.stores.journal import LEASE
from tests.support.cpu_time import any_round
from tests.support.patience import PATIENCE
from tests.support.stored import CONVERSATION, ITEMS, RESPONSE, find_item

WRITER = """
import asyncio, sys
from pathlib import Path
from proxy.stores import Append, Put, SqliteKeyValue

async def main(path, name):
    async with SqliteKeyValue(Path(path)) as keys:
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(100):
            await keys.commit([Put(f"{name}:{number}", name.encode(), 60), Append("both", (name.encode(),) * 2, 60)])

asyncio.run(main(*sys.argv[1:]))
"""


async def test_a_file_outlives_the_process_and_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "r.db"
    async with make_store(f"sqlite:{path}") as store:
        await store.save(RESPONSE)
        await store.save_conversation(CONVERSATION, ITEMS)
        for file in path.parent.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    async with make_store(f"sqlite:{path}") as store:
        assert await store.load("resp_1", "me") == RESPONSE
        assert await store.items("conv_1", "me") == ITEMS


async def test_what_is_over_its_time_is_forgotten_a_little_at_a_time(tmp_path: Path) -> None:
    now = 1_000.0
    async with SqliteKeyValue(tmp_path / "r.db", clock=lambda: now) as keys:
        await keys.commit([Put(f"old:{number}", b"x", 10) for number in range(150)])
        now += 11
        assert await keys.read("old:1") is None
        await keys.commit([Put("new", b"x", 10)])
        assert 90 <= count(tmp_path / "r.db") <= 100
        for _ in range(3):
            await keys.commit([Put("new", b"x", 10)])
        assert count(tmp_path / "r.db") == 1


async def test_the_file_stays_within_its_size_and_the_oldest_goes_first(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    async with SqliteKeyValue(path, max_bytes=1 << 20) as keys:
        await keys.commit([Put("lease", b"mine", LEASE)])
        for number in range(300):
            await keys.commit([Put(f"key:{number}", bytes(20_000), 60), Append(f"key:{number}", (bytes(100),), 60)])
        assert await keys.read("key:0") is None
        assert await keys.values("key:0") == []
        assert await keys.read("key:299") is not None
        assert await keys.read("lease") == b"mine", "somebody is at work"
    assert path.stat().st_size < 3 << 20


async def test_a_clock_that_jumps_back_forgets_nothing(tmp_path: Path) -> None:
    now = 1e9
    async with SqliteKeyValue(tmp_path / "r.db", clock=lambda: now) as keys:
        await keys.commit([Put("a", b"1", 60)])
        now -= 365 * 86_400
        await keys.commit([Put("b", b"2", 60)])
        assert await keys.read("a") == b"1"


async def test_two_processes_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    names = ("one", "two")
    writers = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", WRITER, str(path), name, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        for name in names
    ]
    async with asyncio.timeout(PATIENCE):
        for writer in writers:
            assert writer.stdout is not None
            assert await writer.stdout.readline() == b"ready\n"
        async with SqliteKeyValue(path) as keys:
            await keys.commit([Put("both", b"", 60)])
        for output, _ in await asyncio.gather(*(writer.communicate(b"go\n") for writer in writers)):
            assert output == b""
    assert [writer.returncode for writer in writers] == [0, 0]
    async with SqliteKeyValue(path) as keys:
        assert [await keys.read(f"{name}:{number}") for name in names for number in (0, 99)] == [
            b"one", b"one", b"two", b"two",
        ]  # fmt: skip
        both = await keys.values("both")
    assert len(both) == 400
    assert both[::2] == both[1::2]


@pytest.mark.growth
@pytest.mark.parametrize("at_once", [True, False])
async def test_who_holds_the_file_holds_up_all_that_wait_only_once(
    at_once: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.stores.sqlite.BUSY_TIMEOUT", 400)

    async def refused(keys: SqliteKeyValue) -> None:
        assert await keys.read("a") is None
        with pytest.raises(StoreError):
            await keys.commit([Put("a", b"1", 60)])

    async with SqliteKeyValue(tmp_path / "r.db") as keys:
        for each in any_round():
            with each, closing(sqlite3.connect(tmp_path / "r.db", isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                begun = time.perf_counter()
                await refused(keys)
                one = time.perf_counter() - begun
                if at_once:
                    await asyncio.gather(*(refused(keys) for _ in range(20)))
                else:
                    for _ in range(20):
                        await refused(keys)
                other.execute("ROLLBACK")
                assert await keys.commit([Put("b", b"1", 60)])
                assert time.perf_counter() - begun - one < 5 * one


async def test_who_holds_the_file_anew_is_waited_for_also_behind_a_change_that_was_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.stores.sqlite.BUSY_TIMEOUT", 400)
    async with SqliteKeyValue(tmp_path / "r.db") as keys:
        for _ in range(2):
            with closing(sqlite3.connect(tmp_path / "r.db", isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                begun = time.perf_counter()
                with pytest.raises(StoreError):
                    await keys.commit([Put("a", b"1", 60)])
                assert time.perf_counter() - begun > 0.2, "it waited for the lock"
            assert not await keys.commit([Put("a", b"1", 60)], require=["absent"])


async def test_a_full_disk_is_a_store_error_and_what_was_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    async with KeyedStore(SqliteKeyValue(path)) as store:
        await store.save(RESPONSE)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
        try:
            with pytest.raises(StoreError) as caught:
                await store.save(RESPONSE, events=b"".join(number.to_bytes(4, "big") for number in range(1 << 18)))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert caught.value.status == 503
        assert await store.load("resp_1", "me") == RESPONSE
        assert await store.save(RESPONSE, events=b"x")


async def test_a_file_that_breaks_while_it_is_used_is_a_store_error_and_begun_anew_at_the_next_start(
    tmp_path: Path,
) -> None:
    path = tmp_path / "r.db"
    async with make_store(f"sqlite:{path}") as store:
        await store.save(RESPONSE)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"damaged" * 4_000)
    with capture_logs() as logs:
        async with make_store(f"sqlite:{path}") as store:
            assert await store.load("resp_1", "me") is None
            assert await store.save(RESPONSE)
    (aside,) = (file for file in tmp_path.iterdir() if file.name.startswith("r.db.damaged-"))
    assert [(log["event"], log["moved_to"]) for log in logs] == [("damaged_store_set_aside", str(aside))]


async def test_a_cancelled_write_is_whole_or_not_there(tmp_path: Path) -> None:
    """At whatever step of it: the next one finds the file free."""
    async with SqliteKeyValue(tmp_path / "r.db") as keys:
        for steps in range(25):
            name = f"key:{steps}"
            async with asyncio.TaskGroup() as group:
                writing = group.create_task(keys.commit([Put(name, b"1", 60), Append(name, (b"2",), 60), Drop("x")]))
                for _ in range(steps):
                    await asyncio.sleep(0)
                writing.cancel()
            value, values = await keys.read(name), await keys.values(name)
            assert values == ([b"2"] if value else [])
            assert await keys.commit([Put("after", b"1", 60)])


def count(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        (number,) = database.execute("SELECT count(*) FROM records").fetchone()
    return int(number)


async def test_a_file_of_version_0_1_is_read(tmp_path: Path) -> None:
    """It was written once and is not to be written anew: people have files like it."""
    path = tmp_path / "responses.sqlite"
    copyfile(Path(__file__).parent / "recorded" / "version_0.1.sqlite", path)
    async with KeyedStore(SqliteKeyValue(path, clock=lambda: 1_780_000_100.0)) as store:
        second = await store.load("resp_2", "owner")
        assert second is not None
        assert (second.previous, second.response["status"]) == ("resp_1", "completed")
        assert [item["id"] for item in (*second.input, *second.output)] == ["msg_2a", "msg_2b"]
        call = await find_item(store, "fc_1", "owner")
        assert call is not None
        assert call["arguments"] == '{"path":"a.md"}'
        assert await store.load_events("resp_2", "owner") == b"event: response.created\n\n"
        conversation = await store.load_conversation("conv_1", "owner")
        assert conversation is not None
        assert conversation.metadata == {"topic": "tides"}
        assert [item["id"] for item in await store.items("conv_1", "owner") or ()] == ["msg_0", "msg_2a", "msg_2b"]
        assert await store.load("resp_2", "another") is None
        assert await store.add_items("conv_1", "owner", [{"id": "msg_3", "type": "message"}])
