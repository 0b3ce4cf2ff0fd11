"""Records that something happened to: they are not there, and nothing breaks."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.stores.key_value import Append, Put
from proxy.stores.keyed import KeyedStore
from proxy.stores.memory import MemoryKeyValue
from proxy.stores.records import encode
from tests.support.stored import CONVERSATION, ITEMS, RESPONSE

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
    assert await store.find_item("msg_1", "me") is None


async def test_an_index_that_leads_nowhere_finds_nothing() -> None:
    keys = MemoryKeyValue()
    store = KeyedStore(keys)
    await store.save(RESPONSE)
    for mark in (b"resp_9", b"\xff\xff", b"", b"resp_1"):
        await keys.commit([Put("item:me:msg_9", mark, 60)])
        assert await store.find_item("msg_9", "me") is None


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
    assert await store.find_item("msg_99", "me") is None
    assert await store.find_item("msg_100", "me") == {"id": "msg_100"}
