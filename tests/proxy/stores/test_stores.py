"""One suite for every store in the table."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from proxy.contracts import ResponseStore, StoredResponse
from proxy.errors import StoreError, UsageError
from proxy.stores import make_store
from proxy.stores.memory import MemoryStore

RESPONSE = StoredResponse(
    id="resp_1",
    previous=None,
    owner="me",
    created_at=1_000,
    input=({"id": "msg_1", "type": "message", "role": "user", "content": "h\u00e9llo"},),
    response={"id": "resp_1", "output": [{"id": "msg_2", "type": "message", "content": []}]},
)
SECOND = replace(RESPONSE, id="resp_2", previous="resp_1", response={"id": "resp_2", "output": []}, input=())


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ResponseStore]:
    async with make_store("memory" if request.param == "memory" else f"sqlite:{tmp_path}/folder/r.db") as opened:
        yield opened


async def test_what_was_saved_is_found(store: ResponseStore) -> None:
    await store.save(RESPONSE)
    await store.save(SECOND)
    assert await store.load("resp_1", "me") == RESPONSE
    assert await store.load("resp_2", "me") == SECOND


async def test_items_of_input_and_output_are_found(store: ResponseStore) -> None:
    await store.save(RESPONSE)
    assert await store.find_item("msg_1", "me") == RESPONSE.input[0]
    assert await store.find_item("msg_2", "me") == RESPONSE.response["output"][0]
    assert await store.find_item("msg_3", "me") is None


async def test_nobody_finds_what_is_anothers(store: ResponseStore) -> None:
    await store.save(RESPONSE)
    assert await store.load("resp_1", "you") is None
    assert await store.find_item("msg_1", "you") is None
    assert not await store.delete("resp_1", "you")
    assert await store.load("resp_1", "me") == RESPONSE


async def test_what_was_deleted_is_gone_with_its_items(store: ResponseStore) -> None:
    await store.save(RESPONSE)
    assert await store.delete("resp_1", "me")
    assert not await store.delete("resp_1", "me")
    assert await store.load("resp_1", "me") is None
    assert await store.find_item("msg_1", "me") is None


async def test_a_hostile_id_is_just_not_there(store: ResponseStore) -> None:
    assert await store.load("' OR 1=1 --", "me") is None
    assert await store.load("../../etc/passwd\0", "me") is None


async def test_memory_forgets_the_oldest() -> None:
    async with MemoryStore(limit=1) as store:
        await store.save(RESPONSE)
        await store.save(SECOND)
        assert await store.load("resp_1", "me") is None
        assert await store.find_item("msg_1", "me") is None
        assert await store.load("resp_2", "me") == SECOND


async def test_memory_keeps_no_more_than_its_size() -> None:
    async with MemoryStore(max_bytes=100_000) as store:
        for number in range(100):
            large = {"id": f"msg_{number}", "type": "message", "role": "user", "content": "x" * 9_000}
            await store.save(replace(SECOND, id=f"resp_{number}", input=(large,)))
        kept = [number for number in range(100) if await store.load(f"resp_{number}", "me")]
        assert kept == list(range(90, 100))
        assert await store.find_item("msg_0", "me") is None
        assert await store.find_item("msg_99", "me") is not None


async def test_an_item_that_was_sent_again_outlives_the_first_response_it_was_in() -> None:
    async with MemoryStore(limit=1) as store:
        await store.save(RESPONSE)
        await store.save(replace(RESPONSE, id="resp_2"))
        assert await store.find_item("msg_1", "me") == RESPONSE.input[0]


async def test_none_keeps_nothing() -> None:
    async with make_store("none") as store:
        await store.save(RESPONSE)
        assert await store.load("resp_1", "me") is None
        assert await store.find_item("msg_1", "me") is None
        assert not await store.delete("resp_1", "me")


async def test_a_file_outlives_the_process_and_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    async with make_store(f"sqlite:{path}") as store:
        await store.save(RESPONSE)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    async with make_store(f"sqlite:{path}") as store:
        assert await store.load("resp_1", "me") == RESPONSE


async def test_a_file_that_breaks_while_it_is_used_is_a_store_error(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    async with make_store(f"sqlite:{path}") as store:
        await store.save(RESPONSE)
        for file in tmp_path.iterdir():
            file.write_bytes(b"not a database" * 1_000)
        with pytest.raises(StoreError) as caught:
            await store.load("resp_1", "me")
    assert caught.value.status == 503


async def test_a_file_that_is_no_database_is_told_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    path.write_bytes(b"not a database" * 1_000)
    with pytest.raises(UsageError, match="cannot be kept"):
        async with make_store(f"sqlite:{path}"):
            pass


@pytest.mark.parametrize("setting", ["", "sqlite", "sqlite:", "memory:x", "none:x", "redis://localhost", "magic"])
def test_an_unknown_store_is_one_sentence(setting: str) -> None:
    with pytest.raises(UsageError, match=r"use memory, none or sqlite:PATH"):
        make_store(setting)
