"""The Responses of one connection, in front of the store: there they can be continued though nobody keeps them."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from ...contracts import StoredResponse, WireObject
from ..history import Library

# What a connection may hold, the oldest goes first.
MAX_RESPONSES = 1_000
MAX_BYTES = 64 << 20


class Recent:
    """A `Library`. All is of one owner: a connection has one key."""

    def __init__(self, store: Library) -> None:
        self._store = store
        self._responses: dict[str, tuple[StoredResponse, int]] = {}
        self._bytes = 0

    def add(self, stored: StoredResponse) -> None:
        size = len(orjson.dumps([stored.input, stored.output]))
        self._responses[stored.id] = (stored, size)
        self._bytes += size
        while len(self._responses) > MAX_RESPONSES or self._bytes > MAX_BYTES:
            self.forget(next(iter(self._responses)))

    def forget(self, response_id: str) -> None:
        _, size = self._responses.pop(response_id, (None, 0))
        self._bytes -= size

    async def load(self, response_id: str, owner: str) -> StoredResponse | None:
        if response_id in self._responses:
            return self._responses[response_id][0]
        return await self._store.load(response_id, owner)

    async def find_item(self, item_id: str, owner: str) -> WireObject | None:
        for item in self._items():
            if item.get("id") == item_id:
                return item
        return await self._store.find_item(item_id, owner)

    async def items(self, conversation_id: str, owner: str) -> tuple[WireObject, ...] | None:
        return await self._store.items(conversation_id, owner)

    def _items(self) -> Iterator[WireObject]:
        for stored, _ in self._responses.values():
            yield from stored.input
            yield from stored.output
