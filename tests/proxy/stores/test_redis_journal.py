"""The journal on real servers: events for any number of followers, its bounds, and the queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace
from redis import Redis as SynchronousRedis
from redis.asyncio import Redis

from proxy.contracts import Follower, ResponseStore, Run, StoredResponse
from proxy.errors import StoreError
from proxy.stores import make_store
from proxy.stores.redis_journal import GROUP, QUEUE
from tests.support.patience import PATIENCE
from tests.support.redis_server import SERVERS, RedisServer, redis_server, wants_servers
from tests.support.stored import RESPONSE

pytestmark = wants_servers

RUN = Run("resp_1", "1.aa")
OPENING = [b"event 0", b"event 1"]


@pytest.fixture(params=SERVERS or ["none is installed"])
async def redis(request: pytest.FixtureRequest) -> AsyncIterator[RedisServer]:
    async with redis_server(SERVERS[request.param]) as server:
        yield server


@asynccontextmanager
async def process(redis: RedisServer, options: str = "") -> AsyncIterator[ResponseStore]:
    """What a process has of the store."""
    async with make_store(redis.url + options) as store, asyncio.TaskGroup() as group:
        journal = group.create_task(store.journal.run(), name="journal")
        yield store
        journal.cancel()


@pytest.fixture
async def here(redis: RedisServer) -> AsyncIterator[ResponseStore]:
    async with process(redis) as store:
        yield store


@pytest.fixture
async def there(redis: RedisServer) -> AsyncIterator[ResponseStore]:
    async with process(redis) as store:
        yield store


def pieces(first: int, count: int) -> list[bytes]:
    return [b"event %d" % number for number in range(first, first + count)]


async def told(follower: Follower, count: int) -> list[bytes]:
    """What a follower is told until there are so many events, or no more come."""
    found: list[bytes] = []
    async with asyncio.timeout(PATIENCE):
        while len(found) < count and not (follower.ended or follower.full):
            found += await follower.next()
    return found


@pytest.mark.parametrize("after", [-1, 0, 1, 700, 2_500])
async def test_a_follower_is_told_what_is_behind_any_number(
    here: ResponseStore, there: ResponseStore, after: int
) -> None:
    await here.journal.begin(RUN, OPENING)
    assert here.journal.append(RUN, 2, pieces(2, 1_499))
    await here.journal.flush()
    async with there.journal.follow(RUN, after) as follower:
        before = await told(follower, min(1, max(0, 1_500 - after)))
        assert here.journal.append(RUN, 1_501, pieces(1_501, 1_500))
        assert here.journal.append(RUN, 3_001, [b"event 3001"], last=True)
        rest = await told(follower, 3_002)
    assert [*before, *rest] == pieces(after + 1, 3_001 - after)
    assert follower.ended
    assert await there.journal.events(RUN) == pieces(0, 3_002)


async def test_who_comes_later_or_is_slow_misses_nothing(
    here: ResponseStore, there: ResponseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.stores.redis_journal.TAIL", 100)
    await here.journal.begin(RUN, OPENING)
    async with AsyncExitStack() as following:
        first = await following.enter_async_context(there.journal.follow(RUN, 1))
        slow = await following.enter_async_context(there.journal.follow(RUN, -1))
        for number in range(2, 200):
            here.journal.append(RUN, number, pieces(number, 1))
            assert await told(first, 1) == pieces(number, 1)
        late = await following.enter_async_context(there.journal.follow(RUN, 50))
        assert await told(slow, 200) == pieces(0, 200)
        assert await told(late, 149) == pieces(51, 149)


async def test_who_joins_while_an_event_is_on_its_way_misses_none_before_it(
    redis: RedisServer, here: ResponseStore, there: ResponseStore
) -> None:
    await here.journal.begin(RUN, pieces(0, 10))
    async with Redis.from_url(redis.url) as owner, there.journal.follow(RUN, 9) as first:
        async with asyncio.timeout(PATIENCE):
            while not any(client["cmd"] == "xread" and "b" in client["flags"] for client in await owner.client_list()):
                pass
        with SynchronousRedis.from_url(redis.url) as writer:
            # The loop of those who follow stands still until the second one has joined.
            writer.execute_command("XADD", "tagcall:stream:resp_1:1.aa", "11-0", "event", "event 10")
        async with there.journal.follow(RUN, -1) as second:
            assert await told(second, 11) == pieces(0, 11)
        assert await told(first, 1) == pieces(10, 1)


async def test_many_followers_leave_the_connections_to_others(redis: RedisServer, here: ResponseStore) -> None:
    runs = [Run(f"resp_{number}", "1.aa") for number in range(40)]
    for run in runs:
        await here.journal.begin(run, OPENING)
    async with process(redis, "?max_connections=2") as there, AsyncExitStack() as following:
        followers = [await following.enter_async_context(there.journal.follow(run, 1)) for run in runs]
        group = await following.enter_async_context(asyncio.TaskGroup())
        waiting = [group.create_task(told(follower, 1)) for follower in followers]
        for _ in range(20):
            assert await there.save(RESPONSE)
            assert await there.load("resp_1", "me") == RESPONSE
        for run in runs:
            here.journal.append(run, 2, [b"event 2"], last=True)
    assert [task.result() for task in waiting] == [[b"event 2"]] * len(runs)


async def test_what_does_not_fit_is_told(
    here: ResponseStore, there: ResponseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.stores.redis_journal.MAX_BYTES", 30)
    await here.journal.begin(RUN, OPENING)
    fits = [here.journal.append(RUN, number, pieces(number, 1)) for number in range(2, 9)]
    assert fits == [True] * 4 + [False] + [True] * 2
    async with there.journal.follow(RUN, -1) as follower:
        assert await told(follower, 100) == pieces(0, 6)
        assert follower.full
        assert not follower.ended
        assert await follower.next() == []
    assert await there.journal.events(RUN) == pieces(0, 6)


@pytest.mark.parametrize("away", ["stalled", "refusing"])
async def test_events_wait_for_a_server_that_is_away_and_come_once(
    redis: RedisServer, here: ResponseStore, there: ResponseStore, away: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await here.journal.begin(RUN, OPENING)
    async with there.journal.follow(RUN, -1) as follower, Redis.from_url(redis.url) as owner:
        assert await told(follower, 2) == OPENING
        monkeypatch.setattr("proxy.stores.redis.DEADLINE", 0.2)
        if away == "stalled":
            redis.stall()
        else:
            await owner.config_set("maxmemory", 1)
        here.journal.append(RUN, 2, pieces(2, 50))
        await here.journal.flush()  # in vain
        here.journal.append(RUN, 52, pieces(52, 50), last=True)
        if away == "stalled":
            redis.go_on()
        else:
            await owner.config_set("maxmemory", 0)
        assert await told(follower, 100) == pieces(2, 100)


async def test_behind_a_hole_nothing_is_told_before_the_end(
    redis: RedisServer, here: ResponseStore, there: ResponseStore
) -> None:
    await here.journal.begin(RUN, OPENING)
    here.journal.append(RUN, 2, pieces(2, 5))
    await here.journal.flush()
    async with Redis.from_url(redis.url) as owner:
        await owner.xdel("tagcall:stream:resp_1:1.aa", "5-0")
    async with there.journal.follow(RUN, -1) as follower:
        assert await told(follower, 100) == pieces(0, 4)
        assert follower.full
    assert await there.journal.events(RUN) == pieces(0, 4)


async def test_a_server_that_queues_nothing_says_why(redis: RedisServer, here: ResponseStore) -> None:
    async with Redis.from_url(redis.url) as owner:
        await owner.config_set("maxmemory", 1)
    with pytest.raises(StoreError, match="OutOfMemoryError"):
        await here.journal.begin(RUN, OPENING)


async def let_pass(redis: RedisServer, seconds: float) -> None:
    """As if so much time had passed since the last sign of any."""
    async with Redis.from_url(redis.url, decode_responses=True) as client:
        for one in await client.xpending_range(QUEUE, GROUP, "-", "+", 100):
            who, what, idle = str(one["consumer"]), str(one["message_id"]), round(seconds * 1000)
            await client.xclaim(QUEUE, GROUP, who, 0, [what], idle=idle, justid=True)


async def test_what_nobody_gives_a_sign_of_is_taken_by_one(
    here: ResponseStore, there: ResponseStore, redis: RedisServer
) -> None:
    runs = [Run(f"resp_{number}", "1.aa") for number in range(3)]
    for run in runs:
        await here.save(_response(run.response_id), lease=run)
        await here.journal.begin(run, OPENING)
    assert await there.journal.take(60, 10) == []
    await let_pass(redis, 3600)
    async with process(redis) as third, asyncio.timeout(PATIENCE):
        taken: list[str] = []
        while len(taken) < 3:
            found = await asyncio.gather(there.journal.take(1800, 1), third.journal.take(1800, 1))
            taken += [one for several in found for one in several]
            assert await there.journal.renew([]) == await third.journal.renew([]) == set()
    assert sorted(taken) == [run.response_id for run in runs]
    # The first one gives its signs again: its leases are still its own.
    assert await here.journal.renew(runs) == set()
    assert await there.journal.take(60, 10) == []
    here.journal.end(runs[0])
    await here.journal.flush()
    assert sorted(await there.journal.take(0, 10)) == ["resp_1", "resp_2"]


async def test_what_is_left_is_found_behind_all_that_others_are_at_work_on(
    here: ResponseStore, there: ResponseStore, redis: RedisServer
) -> None:
    for number in range(20):
        await here.journal.begin(Run(f"resp_{number}", "1.aa"), OPENING)
    async with process(redis) as gone:
        await gone.journal.begin(Run("resp_left", "1.bb"), OPENING)
        await gone.journal.renew([])
    async with asyncio.timeout(PATIENCE):
        while "resp_left" not in await there.journal.take(0.3, 1):
            await here.journal.renew([])


async def test_consumers_of_processes_that_have_gone_leave_the_group(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def consumers(owner: Redis) -> int:
        return len(await owner.xinfo_consumers(QUEUE, GROUP))

    async with Redis.from_url(redis.url) as owner:
        async with process(redis) as stopped, process(redis) as killed, process(redis) as at_work:
            for store, name in ((stopped, "resp_1"), (killed, "resp_2"), (at_work, "resp_3")):
                await store.journal.begin(Run(name, "1.aa"), OPENING)
            for store, name in ((stopped, "resp_1"), (killed, "resp_2")):
                store.journal.end(Run(name, "1.aa"))
            await stopped.journal.flush()
            assert await consumers(owner) == 2
        monkeypatch.setattr("proxy.stores.redis_journal.FORGOTTEN", -1)
        async with process(redis) as new, asyncio.timeout(PATIENCE):
            while await consumers(owner) > 1:
                pass
            assert await new.journal.take(0, 5) == ["resp_3"]


async def test_signs_of_many_responses_are_given_together(redis: RedisServer, here: ResponseStore) -> None:
    runs = [Run(f"resp_{number}", "1.aa") for number in range(16)]
    for run in runs[:15]:
        await here.save(_response(run.response_id), lease=run)
    for run in runs:
        await here.journal.begin(run, OPENING)
    async with Redis.from_url(redis.url) as owner:
        assert await here.journal.renew(runs) == {runs[15]}
        stats: Any = await owner.info("commandstats")
    assert stats["cmdstat_xclaim"]["calls"] == stats["cmdstat_mget"]["calls"] == 1


def _response(response_id: str) -> StoredResponse:
    return replace(RESPONSE, id=response_id, response={**RESPONSE.response, "id": response_id})
