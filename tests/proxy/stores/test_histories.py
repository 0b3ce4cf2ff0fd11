"""Inputs that begin alike: what they have in common is kept once, and nobody notices."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.contracts import ResponseStore, Run, StoredResponse, WireObject
from proxy.stores import Append, Drop, KeyedStore, MemoryKeyValue, make_store
from proxy.stores.histories import PLACES
from tests.support.fake_redis import FakeRedis
from tests.support.redis_server import SERVERS, redis_server
from tests.support.stored import find_item

NOTE = "Beans want sun. " * 100


def question(number: int, text: str = NOTE) -> WireObject:
    return {"id": f"msg_q{number}", "type": "message", "role": "user", "content": f"{number}: {text}"}


def call(number: int) -> WireObject:
    return {"id": f"fc_{number}", "type": "function_call", "call_id": f"call_{number}", "name": "f", "arguments": "{}"}


def result(number: int, text: str = NOTE) -> WireObject:
    output = f"{number}: {text}"
    return {"id": f"fco_{number}", "type": "function_call_output", "call_id": f"call_{number}", "output": output}


def loop(steps: int) -> tuple[WireObject, ...]:
    """The whole history of a tool loop that has had so many calls answered."""
    return (question(0), *(item for number in range(steps) for item in (call(number), result(number))))


def stored(name: str, items: Sequence[WireObject], owner: str = "me") -> StoredResponse:
    response = {"id": f"resp_{name}", "status": "completed", "output": [{"id": f"msg_{name}", "type": "message"}]}
    return StoredResponse(f"resp_{name}", None, owner, 1, tuple(items), response)


@pytest.fixture(params=["memory", "sqlite", "redis", *(pytest.param(s, marks=pytest.mark.redis) for s in SERVERS)])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ResponseStore]:
    match request.param:
        case "memory":
            async with make_store("memory") as opened:
                yield opened
        case "sqlite":
            async with make_store(f"sqlite:{tmp_path}/r.db") as opened:
                yield opened
        case "redis":
            async with FakeRedis() as fake, make_store(fake.url) as opened:
                yield opened
        case server:
            async with redis_server(SERVERS[server]) as real, make_store(real.url) as opened:
                yield opened


class Counted(MemoryKeyValue):
    """Knows what was kept in it."""

    @property
    def bytes(self) -> int:
        return self._bytes

    def keys(self, kind: str) -> list[str]:
        return [key for key in self._kept if key.startswith(f"{kind}:")]


async def bytes_of_loop(steps: int) -> int:
    keys = Counted()
    store = KeyedStore(keys)
    for step in range(steps):
        await store.save(stored(str(step), loop(step)))
    return keys.bytes


async def test_a_history_that_is_sent_again_and_again_is_kept_once() -> None:
    """Twice as many requests take twice as much, and not four times."""
    assert await bytes_of_loop(40) < 2.2 * await bytes_of_loop(20)


async def test_what_shares_a_history_comes_back_whole(store: ResponseStore) -> None:
    responses = [stored(str(step), loop(step)) for step in range(5)]
    for response in responses:
        assert await store.save(response)
    for response in responses:
        assert await store.load(response.id, "me") == response
        assert await store.load(response.id, "you") is None
    assert await find_item(store, "msg_q0", "me") == question(0)
    assert await find_item(store, "fco_3", "me") == result(3)


async def test_a_request_that_is_sent_once_more_shares_all_of_it(store: ResponseStore) -> None:
    again = stored("again", loop(3))
    await store.save(stored("first", loop(3)))
    await store.save(again)
    await store.save(again)
    assert await store.load("resp_again", "me") == again
    assert await store.delete("resp_first", "me")
    assert await store.load("resp_again", "me") == again


@pytest.mark.parametrize("deleted", [0, 1, 2, 3])
async def test_a_response_that_is_deleted_takes_nothing_from_the_others(store: ResponseStore, deleted: int) -> None:
    responses = [stored(str(step), loop(step)) for step in range(4)]
    for response in responses:
        await store.save(response)
    gone = responses.pop(deleted)
    assert await store.delete(gone.id, "me")
    assert not await store.delete(gone.id, "me")
    assert await store.load(gone.id, "me") is None
    for response in responses:
        assert await store.load(response.id, "me") == response
    onward = stored("onward", (*responses[-1].input, question(9), call(9), result(9)))
    await store.save(onward)
    assert await store.load("resp_onward", "me") == onward


async def test_items_go_with_the_last_response_that_has_them() -> None:
    keys = Counted()
    store = KeyedStore(keys)
    responses = [stored(str(step), loop(step)) for step in range(5)]
    for response in responses:
        await store.save(response)
    (history,) = keys.keys("history")
    kept = [len(await keys.values(history))]
    for response in reversed(responses[1:]):
        await store.delete(response.id, "me")
        kept.append(len(await keys.values(history)))
    # A head, a question, and two items for each call.
    assert kept == [10, 8, 6, 4, 0]
    assert keys.keys("history") == keys.keys("tail") == []


async def test_items_go_though_an_earlier_response_has_expired() -> None:
    keys = Counted()
    store = KeyedStore(keys)
    await store.save(stored("old", loop(3)))
    await store.save(stored("new", loop(2)))
    await store.save(stored("last", loop(4)))
    await keys.commit([Drop("response:resp_old")])
    await store.delete("resp_last", "me")
    assert len(keys.keys("history")) == 1
    assert await store.load("resp_new", "me") == stored("new", loop(2))


async def test_a_history_lives_as_long_as_its_newest_response() -> None:
    now = [1_000.0]
    keys = Counted(clock=lambda: now[0])
    store = KeyedStore(keys, ttl=100.0)
    await store.save(stored("1", loop(1)))
    now[0] += 60
    await store.save(stored("2", loop(2)))
    now[0] += 60
    assert await store.load("resp_1", "me") is None
    assert await store.load("resp_2", "me") == stored("2", loop(2))
    await store.save(stored("3", loop(3)))
    assert await store.delete("resp_3", "me")
    now[0] += 50
    assert await store.load("resp_2", "me") is None
    (history,) = keys.keys("history")
    assert await keys.read(history) is None


async def test_an_edited_history_is_another_one(store: ResponseStore) -> None:
    edited = stored("edited", (question(0, "Peas?"), *loop(3)[1:]))
    branch = stored("branch", (*loop(2), question(5)))
    for response in (stored("first", loop(4)), edited, branch):
        await store.save(response)
    for response in (stored("first", loop(4)), edited, branch):
        assert await store.load(response.id, "me") == response


async def test_nobody_shares_the_history_of_another() -> None:
    keys = Counted()
    store = KeyedStore(keys)
    await store.save(stored("mine", loop(2)))
    await store.save(stored("yours", loop(2), owner="you"))
    assert len(keys.keys("history")) == 2


async def test_a_client_that_tells_each_call_with_its_result_shares_its_history() -> None:
    """Its request ended in front of all calls of the answer, and not in front of the last one."""
    keys = Counted()
    store = KeyedStore(keys)
    await store.save(stored("1", loop(1)))
    await store.save(stored("2", loop(PLACES)))
    assert len(keys.keys("history")) == 1


async def test_a_history_that_is_gone_or_cut_is_no_empty_one() -> None:
    keys = MemoryKeyValue()
    store = KeyedStore(keys)
    response = stored("1", loop(2))
    for harm in (Drop("history:{}"), Append("history:{}", (b"",), 60)):
        await store.save(response)
        history = next(key for key in keys._kept if key.startswith("history:"))
        if isinstance(harm, Drop):
            await keys.commit([Drop(history)])
        else:
            keys._kept[history].values[2:] = harm.values
        assert await store.load("resp_1", "me") is None
        assert await store.delete("resp_1", "me")


async def test_of_a_history_whose_items_are_forgotten_nothing_is_left_and_nothing_breaks() -> None:
    """As a Redis does that is full: it may forget the list alone."""
    keys = Counted()
    store = KeyedStore(keys)
    for step in (1, 2):
        await store.save(stored(str(step), loop(step)))
    keys._kept[keys.keys("history")[0]].values.clear()
    assert await store.delete("resp_2", "me")
    assert await store.load("resp_1", "me") is None
    assert await store.delete("resp_1", "me")
    assert keys.keys("history") == keys.keys("tail") == []


async def test_the_last_response_takes_the_history_with_it() -> None:
    keys = Counted()
    store = KeyedStore(keys)
    for name in "123":
        await store.save(stored(name, loop(2)))
    for name in "123":
        assert await store.delete(f"resp_{name}", "me")
    assert keys.keys("history") == keys.keys("tail") == []


async def test_what_others_write_meanwhile_costs_a_copy_and_no_item(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = Counted()
    store = KeyedStore(keys)
    await store.save(stored("1", loop(1)))
    read = keys.read

    async def read_late(key: str) -> bytes | None:
        value = await read(key)
        if key.startswith("history:"):
            monkeypatch.undo()
            await store.save(stored("between", loop(2)))
        return value

    monkeypatch.setattr(keys, "read", read_late)
    await store.save(stored("late", loop(3)))
    for name, steps in (("1", 1), ("between", 2), ("late", 3)):
        assert await store.load(f"resp_{name}", "me") == stored(name, loop(steps))
    monkeypatch.setattr(keys, "read", read_late)
    assert await store.delete("resp_1", "me")
    assert await store.load("resp_between", "me") == stored("between", loop(2))


async def test_who_has_lost_the_lease_joins_no_history() -> None:
    keys = Counted()
    store = KeyedStore(keys)
    assert not await store.save(stored("1", loop(2)), leased_by=Run("resp_1", "gone"))
    assert keys.bytes == 0


@given(st.lists(st.tuples(st.sampled_from(["save", "delete"]), st.integers(0, 3), st.integers(0, 4)), max_size=12))
async def test_whatever_is_stored_and_deleted_the_rest_is_there(steps: list[tuple[str, int, int]]) -> None:
    store = KeyedStore(MemoryKeyValue())
    there: dict[str, StoredResponse] = {}
    for what, name, length in steps:
        response = stored(str(name), loop(length) if length < 4 else (*loop(1), question(7)))
        if what == "save":
            await store.save(response)
            there[response.id] = response
        else:
            assert await store.delete(response.id, "me") is (there.pop(response.id, None) is not None)
        for one in there.values():
            assert await store.load(one.id, "me") == one
