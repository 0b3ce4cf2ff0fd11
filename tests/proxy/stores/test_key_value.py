"""One suite for every place for keys and values."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from proxy.stores import Append, Change, Drop, KeyValue, MemoryKeyValue, Put, SqliteKeyValue, Take
from proxy.stores.journal import LEASE
from proxy.stores.redis import RedisKeyValue
from tests.support.fake_redis import FakeRedis

DAY = 86_400.0


@pytest.fixture(params=["memory", "sqlite", "redis"])
async def keys(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[KeyValue]:
    match request.param:
        case "memory":
            async with MemoryKeyValue() as memory:
                yield memory
        case "sqlite":
            async with SqliteKeyValue(tmp_path / "r.db") as sqlite:
                yield sqlite
        case _:
            async with FakeRedis() as server, RedisKeyValue(server.url) as redis:
                yield redis


async def test_a_key_has_its_value_and_its_list_until_it_is_dropped(keys: KeyValue) -> None:
    assert (await keys.read("a"), await keys.values("a"), await keys.left("a")) == (None, [], 0)
    assert await keys.commit([Put("a", b"1", DAY), Append("a", (b"x", b"y"), DAY)])
    assert await keys.commit([Put("a", b"2", DAY), Append("a", (b"x",), DAY), Put("b", b"3", DAY)])
    assert (await keys.read("a"), await keys.values("a")) == (b"2", [b"x", b"y", b"x"])
    assert DAY - 60 < await keys.left("a") <= DAY
    assert await keys.commit([Drop("a"), Drop("c")])
    assert (await keys.read("a"), await keys.values("a"), await keys.left("a")) == (None, [], 0)
    assert (await keys.read("b"), keys.up) == (b"3", True)


async def test_a_list_begins_anew_with_its_key(keys: KeyValue) -> None:
    await keys.commit([Put("a", b"1", DAY), Append("a", (b"x",), DAY)])
    await keys.commit([Drop("a")])
    await keys.commit([Put("a", b"2", DAY)])
    assert await keys.values("a") == []


async def test_the_first_of_equal_values_leaves_a_list(keys: KeyValue) -> None:
    await keys.commit([Put("a", b"", DAY), Append("a", (b"x", b"y", b"x"), DAY)])
    assert await keys.commit([Take("a", b"x"), Take("a", b"z"), Take("b", b"x")])
    assert await keys.values("a") == [b"y", b"x"]


async def test_nothing_is_appended_to_what_is_not_there(keys: KeyValue) -> None:
    assert await keys.commit([Append("a", (b"x",), DAY), Put("b", b"1", DAY)])
    assert (await keys.values("a"), await keys.read("b")) == ([], b"1")
    await keys.commit([Put("a", b"1", DAY)])
    assert await keys.values("a") == []


@pytest.mark.parametrize(
    ("require", "expect", "done"),
    [
        ((), {}, True),
        (("a",), {}, True),
        (("a", "b"), {}, False),
        ((), {"a": b"1"}, True),
        ((), {"a": b"2"}, False),
        ((), {"a": None}, False),
        ((), {"b": None}, True),
        ((), {"b": b"1"}, False),
        (("a",), {"a": b"1", "b": b"1"}, False),
    ],
)
async def test_all_of_the_changes_are_made_or_none(
    keys: KeyValue, require: tuple[str, ...], expect: dict[str, bytes | None], done: bool
) -> None:
    await keys.commit([Put("a", b"1", DAY), Append("a", (b"x",), DAY)])
    changes: list[Change] = [Put("c", b"3", DAY), Append("a", (b"y",), DAY), Put("a", b"4", DAY)]
    assert await keys.commit(changes, require=require, expect=expect) is done
    assert await keys.read("c") == (b"3" if done else None)
    assert (await keys.read("a"), await keys.values("a")) == ((b"4", [b"x", b"y"]) if done else (b"1", [b"x"]))


# Where the time and the room are ours


@dataclass
class Clock:
    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


ROOM = 200_000


@pytest.fixture(params=["memory", "sqlite"])
async def own(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> AsyncIterator[KeyValue]:
    if request.param == "memory":
        async with MemoryKeyValue(ROOM, clock) as memory:
            yield memory
    else:
        async with SqliteKeyValue(tmp_path / "r.db", ROOM, clock) as sqlite:
            yield sqlite


async def test_what_is_over_its_time_is_not_there(own: KeyValue, clock: Clock) -> None:
    await own.commit([Put("a", b"1", 10), Append("a", (b"x",), 20)])
    clock.now += 19
    assert (await own.read("a"), await own.left("a")) == (b"1", 1)
    clock.now += 1
    assert (await own.read("a"), await own.values("a"), await own.left("a")) == (None, [], 0)
    assert not await own.commit([Put("b", b"1", 10)], require=["a"])
    assert await own.commit([Put("b", b"1", 10)], expect={"a": None})


async def test_for_want_of_room_the_oldest_goes_first_and_nobody_loses_a_lease(own: KeyValue, clock: Clock) -> None:
    async def fill() -> None:
        for number in range(40):
            clock.now += 0.01
            await own.commit([Put(f"{number}", bytes(10_000), DAY), Append(f"{number}", (b"x",), DAY)])

    await own.commit([Put("lease", b"mine", LEASE)])
    await fill()
    kept = [await own.read(f"{number}") is not None for number in range(40)]
    assert kept == sorted(kept)
    assert 5 < sum(kept) < 20
    assert (await own.values("0"), await own.values("39")) == ([], [b"x"])
    assert await own.read("lease") == b"mine"
    clock.now += LEASE
    await fill()
    assert await own.read("lease") is None
