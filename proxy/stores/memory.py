"""Responses in this process's memory: the newest, as many as fit."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Self

import orjson

from ..contracts import StoredResponse, WireObject

MAX_RESPONSES = 1_000
MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class _Kept:
    """A Response as JSON text: as objects it would take several times its size."""

    owner: str
    text: bytes
    items: tuple[str, ...]


class MemoryStore:
    """Forgets the oldest Responses when there are more than `limit`, or when they take more than `max_bytes`."""

    def __init__(self, limit: int = MAX_RESPONSES, max_bytes: int = MAX_BYTES) -> None:
        self._limit = limit
        self._max_bytes = max_bytes
        self._bytes = 0
        self._responses: OrderedDict[str, _Kept] = OrderedDict()
        self._item_of: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._responses.clear()
        self._item_of.clear()
        self._bytes = 0

    async def save(self, stored: StoredResponse) -> None:
        kept = _Kept(stored.owner, orjson.dumps(stored), tuple(item["id"] for item in items_of(stored)))
        self._responses[stored.id] = kept
        self._bytes += len(kept.text)
        self._item_of.update(dict.fromkeys(kept.items, stored.id))
        while len(self._responses) > self._limit or self._bytes > self._max_bytes:
            self._forget(next(iter(self._responses)))

    async def load(self, response_id: str, owner: str) -> StoredResponse | None:
        kept = self._responses.get(response_id)
        if kept is None or kept.owner != owner:
            return None
        members = orjson.loads(kept.text)
        return StoredResponse(**{**members, "input": tuple(members["input"])})

    async def delete(self, response_id: str, owner: str) -> bool:
        kept = self._responses.get(response_id)
        if kept is None or kept.owner != owner:
            return False
        self._forget(response_id)
        return True

    async def find_item(self, item_id: str, owner: str) -> WireObject | None:
        stored = await self.load(self._item_of.get(item_id, ""), owner)
        items = [] if stored is None else items_of(stored)
        return next((item for item in items if item["id"] == item_id), None)

    def _forget(self, response_id: str) -> None:
        kept = self._responses.pop(response_id)
        self._bytes -= len(kept.text)
        for item_id in kept.items:
            if self._item_of.get(item_id) == response_id:
                del self._item_of[item_id]


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
