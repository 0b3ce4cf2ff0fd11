"""The storage below a store: values by key, each with a list.

    key -> value, expiry          written by `Put`, gone with `Drop` or when its time is over
        -> first, second, ...     written by `Append`, gone with their key or one by one by `Take`

Every change goes through `commit`, which is the one place where a store must be atomic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, Self

from msgspec import Struct

# Seconds. What is kept for less says that somebody is at work now: it is not forgotten for want of room.
MOMENT = 40.0

# Stands first in a list of which nothing may be missing: a Redis that is full may forget the list alone, and then it is
# not there rather than empty. It reads as no item, also for a tagcall that does not know of it.
HEAD = b""


class Put(Struct, frozen=True):
    """`value` in place of the key's; its list stays. It is kept for `ttl` seconds from now."""

    key: str
    value: bytes
    ttl: float


class Append(Struct, frozen=True):
    """`values` at the end of the list of a key that is there, which is kept for `ttl` seconds from now."""

    key: str
    values: tuple[bytes, ...]
    ttl: float


class Take(Struct, frozen=True):
    """The first of these values leaves the list."""

    key: str
    value: bytes


class Drop(Struct, frozen=True):
    key: str


Change = Put | Append | Take | Drop


# No values are expected.
NOTHING: Mapping[str, bytes | None] = MappingProxyType({})


class KeyValue(Protocol):
    """Entered once for its whole life. Raises `UsageError` when it is entered, `StoreError` later."""

    @property
    def up(self) -> bool:
        """Whether the last operation did not raise `StoreError`."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...

    async def read(self, key: str) -> bytes | None: ...

    async def left(self, key: str) -> float:
        """Seconds for which a key is still kept; 0 when it is not there."""

    async def values(self, key: str) -> list[bytes]:
        """The list of a key, first one first."""

    async def commit(
        self, changes: Sequence[Change], *, require: Sequence[str] = (), expect: Mapping[str, bytes | None] = NOTHING
    ) -> bool:
        """All of the changes or none of them.

        False, and none: a key of `require` is not there, or one of `expect` has another value (None: it is there).
        """
