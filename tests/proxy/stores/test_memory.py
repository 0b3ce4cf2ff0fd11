"""What memory keeps, and what it forgets."""

from __future__ import annotations

from msgspec.structs import replace

from proxy.stores import Append, Drop, KeyedStore, MemoryKeyValue, Put, Take
from proxy.stores.memory import OVERHEAD
from tests.support.stored import SECOND, find_item


async def test_no_more_is_kept_than_fits_and_the_oldest_goes_first() -> None:
    async with KeyedStore(MemoryKeyValue(max_bytes=100_000)) as store:
        for number in range(100):
            large = {"id": f"msg_{number}", "type": "message", "role": "user", "content": "x" * 9_000}
            response = {"id": f"resp_{number}", "status": "completed", "output": []}
            await store.save(replace(SECOND, id=f"resp_{number}", input=(large,), response=response))
        kept = [number for number in range(100) if await store.load(f"resp_{number}", "me")]
        assert kept == list(range(kept[0], 100))
        assert 8 <= len(kept) <= 10
        assert await find_item(store, "msg_0", "me") is None
        assert await find_item(store, "msg_99", "me") is not None


async def test_a_long_key_takes_its_room_too() -> None:
    keys = MemoryKeyValue(max_bytes=2 * OVERHEAD + 1_500)
    await keys.commit([Put("a" * 1_000, b"1", 1_000), Put("b" * 1_000, b"2", 1_000)])
    assert (await keys.read("a" * 1_000), await keys.read("b" * 1_000)) == (None, b"2")


async def test_what_was_given_back_makes_room() -> None:
    keys = MemoryKeyValue(max_bytes=2 * OVERHEAD + 200)
    for _ in range(50):
        await keys.commit([Put("a", b"x" * 100, 10), Append("a", (b"y",), 10)])
        await keys.commit([Take("a", b"y"), Drop("a")])
    await keys.commit([Put("a", b"1", 10), Put("b", b"2", 10)])
    assert (await keys.read("a"), await keys.read("b")) == (b"1", b"2")
