"""Keys and values in this process's memory: as many of the newest as fit."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from msgspec import Struct, field

from .key_value import MOMENT, NOTHING, Append, Change, Drop, Put, Take

# Bytes of all keys and values together.
MAX_BYTES = 64 << 20

# Bytes that a key costs besides its text.
OVERHEAD = 400


class _Kept(Struct):
    expires_at: float
    value: bytes = b""
    values: list[bytes] = field(default_factory=list)

    def size(self, key: str) -> int:
        return OVERHEAD + len(key) + len(self.value) + sum(map(len, self.values))


class MemoryKeyValue:
    """Forgets what was written longest ago when all that is kept takes more than `max_bytes`."""

    up = True

    def __init__(self, max_bytes: int = MAX_BYTES, clock: Callable[[], float] = time.time) -> None:
        self._max_bytes = max_bytes
        self._clock = clock
        self._bytes = 0
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._kept.clear()
        self._bytes = 0

    async def read(self, key: str) -> bytes | None:
        kept = self._find(key)
        return None if kept is None else kept.value

    async def left(self, key: str) -> float:
        kept = self._find(key)
        return 0.0 if kept is None else kept.expires_at - self._clock()

    async def values(self, key: str) -> list[bytes]:
        kept = self._find(key)
        return [] if kept is None else list(kept.values)

    async def commit(
        self, changes: Sequence[Change], *, require: Sequence[str] = (), expect: Mapping[str, bytes | None] = NOTHING
    ) -> bool:
        if any(self._find(key) is None for key in require):
            return False
        if any((kept and kept.value) != value for key, value in expect.items() for kept in [self._find(key)]):
            return False
        for change in changes:
            self._apply(change)
        while self._bytes > self._max_bytes and (oldest := self._oldest()) is not None:
            self._forget(oldest)
        return True

    def _oldest(self) -> str | None:
        """Of what may be forgotten."""
        now = self._clock()
        return next((key for key, kept in self._kept.items() if not now < kept.expires_at < now + MOMENT), None)

    def _apply(self, change: Change) -> None:
        kept = self._find(change.key)
        if kept is not None:
            self._forget(change.key)
        match change:
            case Drop():
                return
            case Put(_, value, ttl):
                kept = kept or _Kept(0)
                kept.value, kept.expires_at = value, self._clock() + ttl
            case Append(_, values, ttl) if kept is not None:
                kept.values += values
                kept.expires_at = self._clock() + ttl
            case Take(_, value) if kept is not None and value in kept.values:
                kept.values.remove(value)
        if kept is not None:
            self._kept[change.key] = kept
            self._bytes += kept.size(change.key)

    def _find(self, key: str) -> _Kept | None:
        kept = self._kept.get(key)
        if kept is not None and kept.expires_at <= self._clock():
            self._forget(key)
            return None
        return kept

    def _forget(self, key: str) -> None:
        self._bytes -= self._kept.pop(key).size(key)


class NoKeyValue:
    """Keeps nothing."""

    up = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        pass

    async def read(self, key: str) -> None:
        return None

    async def left(self, key: str) -> float:
        return 0.0

    async def values(self, key: str) -> list[bytes]:
        return []

    async def commit(
        self, changes: Sequence[Change], *, require: Sequence[str] = (), expect: Mapping[str, bytes | None] = NOTHING
    ) -> bool:
        return not require
