"""One suite for every store in the table."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from proxy.contracts import Claim, ResponseStore, Run, StoredRequest
from proxy.errors import UsageError
from proxy.stores import STORES, make_store
from tests.support.fake_redis import FakeRedis
from tests.support.redis_server import SERVERS, redis_server
from tests.support.stored import CONVERSATION, ITEMS, RESPONSE, SECOND, find_item

RUN, NEXT = Run("resp_1", "1.aa"), Run("resp_1", "2.bb")


@asynccontextmanager
async def place(kind: str, folder: Path) -> AsyncIterator[str]:
    """The setting of a store of this kind: one of the table, or a real server."""
    match kind:
        case "memory":
            yield "memory"
        case "sqlite":
            yield f"sqlite:{folder}/folder/r.db"
        case "redis":
            async with FakeRedis() as fake:
                yield fake.url
        case server:
            async with redis_server(SERVERS[server]) as real:
                yield real.url


REAL = [pytest.param(server, marks=pytest.mark.redis) for server in SERVERS]


@pytest.fixture(params=["memory", "sqlite", "redis", *REAL])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ResponseStore]:
    async with place(request.param, tmp_path) as setting, make_store(setting) as opened:
        yield opened


@pytest.fixture(params=["sqlite", "redis", *REAL])
async def two(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[ResponseStore, ResponseStore]]:
    """What two processes have on one place."""
    async with place(request.param, tmp_path) as setting, make_store(setting) as here, make_store(setting) as there:
        yield here, there


def test_every_kind_of_store_is_held_to_this_suite() -> None:
    assert set(STORES) == {"memory", "sqlite", "redis", "rediss", "none"}


async def test_what_was_saved_is_found(store: ResponseStore) -> None:
    assert store.keeps
    assert await store.save(RESPONSE)
    assert await store.save(SECOND)
    assert await store.load("resp_1", "me") == RESPONSE
    assert await store.load("resp_2", "me") == SECOND


async def test_what_is_saved_again_is_replaced(store: ResponseStore) -> None:
    await store.save(RESPONSE)
    again = replace(RESPONSE, response={**RESPONSE.response, "status": "incomplete"})
    await store.save(again)
    assert await store.load("resp_1", "me") == again


async def test_items_of_input_and_output_are_found(store: ResponseStore) -> None:
    await store.save(RESPONSE)
    assert await find_item(store, "msg_1", "me") == RESPONSE.input[0]
    assert await find_item(store, "msg_2", "me") == RESPONSE.output[0]
    assert await find_item(store, "msg_3", "me") is None


async def test_nobody_finds_what_is_anothers(store: ResponseStore) -> None:
    await store.save(RESPONSE, events=b"events")
    await store.save_conversation(CONVERSATION, ITEMS)
    assert await store.load("resp_1", "you") is None
    assert await store.load_events("resp_1", "you") is None
    assert await find_item(store, "msg_1", "you") is None
    assert not await store.delete("resp_1", "you")
    assert await store.load("resp_1", "me") == RESPONSE
    assert await store.load_conversation("conv_1", "you") is None
    assert await store.update_conversation("conv_1", "you", {}) is None
    assert await store.items("conv_1", "you") is None
    assert not await store.add_items("conv_1", "you", ITEMS)
    assert not await store.delete_item("conv_1", "msg_c0", "you")
    assert not await store.delete_conversation("conv_1", "you")
    assert await store.items("conv_1", "me") == ITEMS


async def test_nobody_appends_to_a_conversation_of_another(store: ResponseStore) -> None:
    await store.save_conversation(CONVERSATION)
    assert await store.save(replace(RESPONSE, owner="you"), append_to="conv_1")
    assert await store.items("conv_1", "me") == ()


async def test_what_a_deleted_response_only_referred_to_is_still_there(store: ResponseStore) -> None:
    later = {"id": "resp_3", "status": "completed", "output": [{"id": "msg_4", "type": "message", "content": []}]}
    await store.save(RESPONSE)
    await store.save(replace(RESPONSE, id="resp_3", input=(*RESPONSE.input, *RESPONSE.output), response=later))
    assert await store.delete("resp_3", "me")
    assert await find_item(store, "msg_2", "me") == RESPONSE.output[0]
    assert await find_item(store, "msg_4", "me") is None
    assert await store.delete("resp_1", "me")
    assert await find_item(store, "msg_2", "me") is None


async def test_what_was_deleted_is_gone_with_its_items_and_events(store: ResponseStore) -> None:
    await store.save(RESPONSE, events=b"events")
    assert await store.delete("resp_1", "me")
    assert not await store.delete("resp_1", "me")
    assert await store.load("resp_1", "me") is None
    assert await store.load_events("resp_1", "me") is None
    assert await find_item(store, "msg_1", "me") is None


async def test_events_come_back_as_they_were(store: ResponseStore) -> None:
    events = b"event: a\ndata: {}\n\n" * 1_000
    await store.save(RESPONSE)
    assert await store.load_events("resp_1", "me") is None
    await store.save(RESPONSE, events=events)
    assert await store.load_events("resp_1", "me") == events


@pytest.mark.parametrize("identifier", ["' OR 1=1 --", "../../etc/passwd\0", "\ud800", "", "x" * 10_000, "\u00e9"])
async def test_a_hostile_id_is_just_not_there(store: ResponseStore, identifier: str) -> None:
    assert await store.load(identifier, "me") is None
    assert await store.load_events(identifier, "me") is None
    assert await find_item(store, identifier, "me") is None
    assert await store.items(identifier, "me") is None
    assert await store.lease_of(identifier) is None
    assert await store.load_request(identifier) is None
    assert not await store.delete(identifier, "me")


async def test_a_lease_lasts_until_it_is_given_back_or_its_response_is_gone(store: ResponseStore) -> None:
    assert await store.lease_of("resp_1") is None
    assert await store.journal.renew([RUN]) == {RUN}
    await store.save(RESPONSE, lease=RUN)
    assert await store.lease_of("resp_1") == RUN
    assert await store.journal.renew([RUN]) == set()
    await store.save(RESPONSE)
    assert await store.lease_of("resp_1") is None
    await store.save(RESPONSE, lease=RUN)
    await store.delete("resp_1", "me")
    assert await store.journal.renew([RUN]) == {RUN}


async def test_who_has_lost_the_lease_writes_nothing(store: ResponseStore) -> None:
    await store.save_conversation(CONVERSATION)
    await store.save(RESPONSE, lease=RUN)
    cancelled = replace(RESPONSE, response={**RESPONSE.response, "status": "cancelled"})
    await store.save(cancelled)
    assert not await store.save(RESPONSE, append_to="conv_1", leased_by=RUN)
    await store.save(cancelled, lease=NEXT)
    assert not await store.save(RESPONSE, append_to="conv_1", leased_by=RUN)
    assert await store.load("resp_1", "me") == cancelled
    assert await store.items("conv_1", "me") == ()
    assert await store.save(RESPONSE, append_to="conv_1", leased_by=NEXT)
    assert await store.items("conv_1", "me") == (*RESPONSE.input, *RESPONSE.output)
    assert await store.lease_of("resp_1") is None


@pytest.mark.parametrize("claim", [None, Claim("conv_1", "me", "t")])
async def test_what_a_response_is_made_from_is_kept_until_it_is_over(store: ResponseStore, claim: Claim | None) -> None:
    request = StoredRequest("me", '{"input": "h\u00e9llo"}'.encode(), claim)
    await store.save(RESPONSE, lease=RUN, request=request)
    assert await store.load_request("resp_1") == request
    assert await store.load_request("resp_2") is None
    await store.save(RESPONSE, leased_by=RUN)
    assert await store.load_request("resp_1") is None


async def test_one_run_takes_over_from_another_unless_somebody_was_told(store: ResponseStore) -> None:
    await store.save(RESPONSE, lease=RUN)
    assert await store.take_over(RUN, NEXT)
    assert not await store.take_over(RUN, NEXT)
    assert not await store.tell(RUN)
    assert await store.journal.renew([RUN, NEXT]) == {RUN}
    assert await store.tell(NEXT)
    assert not await store.take_over(NEXT, RUN)
    assert await store.lease_of("resp_1") == NEXT
    await store.save(RESPONSE)
    await store.save(RESPONSE, lease=RUN)
    assert await store.take_over(RUN, NEXT)


async def test_a_conversation_is_claimed_by_one_until_it_is_released(store: ResponseStore) -> None:
    mine, yours = Claim("conv_1", "me", "a"), Claim("conv_1", "me", "b")
    assert not await store.renew_claim(mine, 60)
    assert await store.claim(mine, 60)
    assert not await store.claim(yours, 60)
    assert await store.claim(replace(yours, owner="you"), 60)
    await store.release(yours)
    assert not await store.renew_claim(yours, 60)
    assert await store.renew_claim(mine, 60)
    await store.release(mine)
    assert await store.claim(yours, 60)


async def test_a_claim_is_taken_over_from_those_who_are_known_to_have_gone(store: ResponseStore) -> None:
    first, next_one, other = (Claim("conv_1", "me", token) for token in ("first", "next", "other"))
    assert await store.claim(first, 60)
    assert not await store.claim(next_one, 60, instead_of=["other"])
    assert await store.claim(next_one, 60, instead_of=["other", "first"])
    await store.release(first)
    assert not await store.claim(other, 60)
    assert await store.renew_claim(next_one, 60)


async def test_a_claim_of_a_process_that_gives_no_sign_of_life_is_anybodys(store: ResponseStore) -> None:
    mine, yours = (Claim("conv_1", "me", token, process=f"process-{token}") for token in "ab")
    await store.sign(mine.process, 60)
    assert await store.claim(mine, 600)
    assert not await store.claim(yours, 600)
    assert 50 < await store.claimed_for(yours) <= 60
    assert await store.renew_claim(mine, 600)
    await store.release(mine)
    assert await store.claimed_for(yours) == 0
    assert await store.claim(mine, 600)
    gone = Claim("conv_2", "me", "c", process="gone")
    assert await store.claim(gone, 600)
    assert await store.claim(replace(mine, conversation_id="conv_2"), 600)
    await store.release(gone)
    assert not await store.claim(replace(yours, conversation_id="conv_2"), 600)
    lasting = Claim("conv_3", "me", "d")
    assert await store.claim(lasting, 600)
    assert not await store.claim(replace(yours, conversation_id="conv_3"), 600)
    assert 590 < await store.claimed_for(lasting) <= 600


async def test_only_who_has_the_conversation_adds_to_it_and_that_ends_its_claim(store: ResponseStore) -> None:
    await store.save_conversation(CONVERSATION)
    mine, yours = Claim("conv_1", "me", "a"), Claim("conv_1", "me", "b")
    assert await store.claim(mine, 60)
    assert not await store.save(SECOND, append_to="conv_1", claim=yours)
    assert not await store.add_items("conv_1", "me", ITEMS, claim=yours)
    assert await store.load("resp_2", "me") is None
    assert await store.save(RESPONSE, append_to="conv_1", claim=mine)
    assert await store.claim(yours, 60)
    assert await store.add_items("conv_1", "me", ITEMS, claim=yours)
    assert await store.claim(mine, 60)
    assert await store.items("conv_1", "me") == (*RESPONSE.input, *RESPONSE.output, *ITEMS)
    assert await store.delete_conversation("conv_1", "me")
    assert not await store.add_items("conv_1", "me", ITEMS, claim=mine)
    assert await store.save(SECOND, append_to="conv_1", claim=mine)


async def test_a_request_that_was_answered_gets_its_conversation_not_again(store: ResponseStore) -> None:
    await store.save_conversation(CONVERSATION)
    first, again, other = (Claim("conv_1", "me", token, "p", request) for token, request in ("ax", "bx", "cy"))
    await store.sign("p", 60)
    assert await store.claim(first, 60)
    assert await store.save(RESPONSE, append_to="conv_1", claim=first)
    assert not await store.claim(again, 60)
    assert await store.claim(other, 60)
    await store.release(other)
    assert await store.claim(again, 60)


async def test_behind_a_hostile_id_there_is_nothing_to_claim(store: ResponseStore) -> None:
    claim = Claim("\ud800" * 1_000, "me", "a")
    assert await store.claim(claim, 60)
    assert await store.renew_claim(claim, 60)
    assert await store.claimed_for(claim) == 0
    await store.release(claim)


async def test_of_two_processes_one_gets_the_conversation_each_time(two: tuple[ResponseStore, ResponseStore]) -> None:
    for number in range(50):
        claims = [Claim(f"conv_{number}", "me", token) for token in "ab"]
        got = await asyncio.gather(*(store.claim(claim, 60) for store, claim in zip(two, claims, strict=True)))
        assert sorted(got) == [False, True]
        await two[got.index(True)].release(claims[got.index(True)])
        assert await two[got.index(False)].claim(claims[got.index(False)], 60)


async def test_a_conversation_is_its_items_in_order(store: ResponseStore) -> None:
    await store.save_conversation(CONVERSATION, ITEMS[:1])
    assert await store.load_conversation("conv_1", "me") == CONVERSATION
    assert await store.add_items("conv_1", "me", ITEMS[1:])
    assert await store.items("conv_1", "me") == ITEMS
    assert await store.delete_item("conv_1", "msg_c1", "me")
    assert not await store.delete_item("conv_1", "msg_c1", "me")
    assert await store.items("conv_1", "me") == (ITEMS[0], ITEMS[2])


async def test_new_metadata_leaves_the_items(store: ResponseStore) -> None:
    await store.save_conversation(CONVERSATION, ITEMS)
    updated = await store.update_conversation("conv_1", "me", {"topic": "peas"})
    assert updated == replace(CONVERSATION, metadata={"topic": "peas"})
    assert await store.load_conversation("conv_1", "me") == updated
    assert await store.items("conv_1", "me") == ITEMS


async def test_an_answer_joins_its_conversation_in_one_go(store: ResponseStore) -> None:
    await store.save_conversation(CONVERSATION, ITEMS)
    await store.save(RESPONSE, append_to="conv_1")
    assert await store.items("conv_1", "me") == (*ITEMS, *RESPONSE.input, *RESPONSE.output)


async def test_a_response_is_kept_though_its_conversation_is_gone(store: ResponseStore) -> None:
    await store.save_conversation(CONVERSATION, ITEMS)
    assert await store.delete_conversation("conv_1", "me")
    assert not await store.delete_conversation("conv_1", "me")
    assert await store.save(RESPONSE, append_to="conv_1")
    assert await store.load("resp_1", "me") == RESPONSE
    assert not await store.add_items("conv_1", "me", ITEMS)
    assert await store.update_conversation("conv_1", "me", {}) is None
    assert await store.items("conv_1", "me") is None
    await store.save_conversation(CONVERSATION)
    assert await store.items("conv_1", "me") == ()


async def test_many_at_once_do_not_mix(store: ResponseStore) -> None:
    await store.save_conversation(CONVERSATION)

    async def one(number: int) -> None:
        items = ({"id": f"in_{number}"},)
        response = {"id": f"resp_{number}", "status": "completed", "output": [{"id": f"out_{number}"}]}
        stored = replace(RESPONSE, id=f"resp_{number}", input=items, response=response)
        await store.save(stored, append_to="conv_1")
        assert await store.load(stored.id, "me") == stored

    await asyncio.gather(*map(one, range(8)))
    items = await store.items("conv_1", "me")
    assert items is not None
    ids = [item["id"] for item in items]
    assert sorted(ids) == sorted([f"{end}_{number}" for number in range(8) for end in ("in", "out")])
    assert all(first[3:] == second[4:] for first, second in zip(ids[::2], ids[1::2], strict=True))


async def test_what_is_kept_is_kept_for_as_long_as_its_owner_says() -> None:
    async with FakeRedis() as redis, make_store(redis.url, 7 * 24 * 3600.0) as store:
        await store.save(RESPONSE)
        await store.save_conversation(CONVERSATION, ITEMS)
        assert set(redis.expiries.values()) == {7 * 24 * 3_600_000}


async def test_none_keeps_nothing() -> None:
    async with make_store("none") as store:
        assert not store.keeps
        await store.save(RESPONSE, events=b"x", lease=RUN)
        assert await store.load("resp_1", "me") is None
        assert await find_item(store, "msg_1", "me") is None
        assert not await store.delete("resp_1", "me")
        assert await store.lease_of("resp_1") is None


@pytest.mark.parametrize(
    "setting", ["", "sqlite", "sqlite:", "memory:x", "none:x", "redis", "magic", "magic://me:secret@host"]
)
def test_an_unknown_store_is_one_sentence_without_its_address(setting: str) -> None:
    with pytest.raises(UsageError, match=r"use sqlite:PATH, memory, none or redis://HOST:PORT") as caught:
        make_store(setting)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "said"),
    [("sqlite::memory:", "use --store memory"), ("sqlite:~nobody-of-this-name/r.db", "write the whole path")],
)
def test_an_sqlite_file_that_is_none_is_one_sentence(setting: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make_store(setting)
