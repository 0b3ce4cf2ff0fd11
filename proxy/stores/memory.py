"""Responses in this process's memory: the newest, as many as fit."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Self

from ..contracts import StoredResponse, WireObject

MAX_RESPONSES = 1_000


class MemoryStore:
    """Forgets the oldest Response when there are more than `limit`."""

    def __init__(self, limit: int = MAX_RESPONSES) -> None:
        self._limit = limit
        self._responses: OrderedDict[str, StoredResponse] = OrderedDict()
        self._items: dict[str, tuple[str, WireObject]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._responses.clear()
        self._items.clear()

    async def save(self, stored: StoredResponse) -> None:
        self._responses[stored.id] = stored
        for item in items_of(stored):
            self._items[item["id"]] = (stored.owner, item)
        while len(self._responses) > self._limit:
            self._forget(next(iter(self._responses)))

    async def load(self, response_id: str, owner: str) -> StoredResponse | None:
        stored = self._responses.get(response_id)
        return stored if stored is not None and stored.owner == owner else None

    async def delete(self, response_id: str, owner: str) -> bool:
        if await self.load(response_id, owner) is None:
            return False
        self._forget(response_id)
        return True

    async def find_item(self, item_id: str, owner: str) -> WireObject | None:
        found = self._items.get(item_id)
        return found[1] if found is not None and found[0] == owner else None

    def _forget(self, response_id: str) -> None:
        for item in items_of(self._responses.pop(response_id)):
            self._items.pop(item["id"], None)


class NoStore:
    """Keeps nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        pass

    async def save(self, stored: StoredResponse) -> None:
        pass

    async def load(self, response_id: str, owner: str) -> None:
        return None

    async def delete(self, response_id: str, owner: str) -> bool:
        return False

    async def find_item(self, item_id: str, owner: str) -> None:
        return None


def items_of(stored: StoredResponse) -> list[WireObject]:
    """The items of a Response that can be referred to."""
    output: list[Any] = stored.response["output"]
    return [item for item in (*stored.input, *output) if isinstance(item.get("id"), str)]
