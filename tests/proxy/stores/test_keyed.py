"""Records that something happened to: they are not there, and nothing breaks."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from proxy.contracts import Claim, StoredResponse
from proxy.stores import Append, KeyedStore, MemoryKeyValue, Put
from proxy.stores.records import encode
from tests.support.stored import CONVERSATION, ITEMS, RESPONSE, find_item

GOOD: dict[str, Any] = {"owner": "me", "previous": None, "created_at": 1, "input": [], "response": RESPONSE.response}


@pytest.mark.parametrize(
    "record",
    [
        b"", b"garbage", encode({}), encode({"owner": "me"}), encode({**GOOD, "previous": 5}),
        encode({**GOOD, "created_at": "now"}), encode({**GOOD, "input": ["text"]}), encode({**GOOD, "response": []}),
        encode({**GOOD, "response": {**RESPONSE.response, "output": [1]}}),
        encode({**GOOD, "response": {**RESPONSE.response, "id": "resp_other"}}),
        encode({**GOOD, "response": {"id": "resp_1", "output": []}}),
    ],
)  # fmt: skip
async def test_a_response_that_cannot_be_read_is_not_there(record: bytes) -> None:
    keys = MemoryKeyValue()
    store = KeyedStore(keys)
    await keys.commit([Put("response:resp_1", record, 60), Put("item:me:msg_1", b"resp_1", 60)])
    assert await store.load("resp_1", "me") is None
    assert await find_item(store, "msg_1", "me") is None


async def test_an_index_that_leads_nowhere_finds_nothing() -> None:
    keys = MemoryKeyValue()
    store = KeyedStore(keys)
    await store.save(RESPONSE)
    for mark in (b"resp_9", b"\xff\xff", b"", b"resp_1"):
        await keys.commit([Put("item:me:msg_9", mark, 60)])
        assert await find_item(store, "msg_9", "me") is None


async def test_a_response_is_read_once_for_all_the_items_that_stand_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that refers to its history item by item has all of it in its newest Response."""
    store = KeyedStore(MemoryKeyValue())
    items = tuple({"id": f"fc_{number}", "type": "message"} for number in range(10))
    await store.save(replace(RESPONSE, input=items))
    loaded: list[str] = []
    load = store.load

    async def noted(response_id: str, owner: str) -> StoredResponse | None:
        loaded.append(response_id)
        return await load(response_id, owner)

    monkeypatch.setattr(store, "load", noted)
    found = await store.find_items([*(str(item["id"]) for item in items), "fc_2", "msg_2", "msg_3"], "me")
    assert found == {item["id"]: item for item in (*items, *RESPONSE.output)}
    assert loaded == [RESPONSE.id]


async def test_a_conversation_that_is_released_while_it_is_looked_at_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = MemoryKeyValue()
    store = KeyedStore(keys)
    mine, yours = (Claim("conv_1", "me", token) for token in "ab")
    assert await store.claim(mine, 60)
    read = keys.read

    async def read_late(key: str) -> bytes | None:
        await store.release(mine)
        return await read(key)

    monkeypatch.setattr(keys, "read", read_late)
    assert await store.claim(yours, 60)
    assert not await store.renew_claim(mine, 60)
    assert await store.renew_claim(yours, 60)


async def test_a_conversation_goes_on_without_the_item_that_cannot_be_read() -> None:
    keys = MemoryKeyValue()
    store = KeyedStore(keys)
    await store.save_conversation(CONVERSATION, ITEMS)
    await keys.commit([Append("conversation:conv_1", (b"garbage", encode({"id": "msg_new"})), 60)])
    assert await store.items("conv_1", "me") == (*ITEMS, {"id": "msg_new"})


async def test_only_so_many_items_are_found_by_their_id() -> None:
    """A pinned limit: the newest thousand of one response."""
    store = KeyedStore(MemoryKeyValue())
    items = tuple({"id": f"msg_{number}"} for number in range(1_100))
    await store.save(
        type(RESPONSE)(RESPONSE.id, None, "me", 1, items, {"id": RESPONSE.id, "status": "completed", "output": []})
    )
    assert await find_item(store, "msg_99", "me") is None
    assert await find_item(store, "msg_100", "me") == {"id": "msg_100"}
