"""A cache of what was made lately, looked up by what it was made from."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class RecentlyMade(Generic[V]):
    """Keeps values of `most` bytes at most, in two halves: once the younger one is full, the older one is forgotten.

    A value that is found in the older half is younger again. Threads may share it.
    """

    def __init__(self, most: int) -> None:
        self._half = most // 2
        self._young: dict[Hashable, tuple[V, int]] = {}
        self._old: dict[Hashable, tuple[V, int]] = {}
        self._bytes = 0

    def get(self, key: Hashable, make: Callable[[], V], size: Callable[[V], int]) -> V:
        """The value for `key`, which `make` makes of nothing but that; its `size` is that with its key, in bytes."""
        if (found := self._young.get(key)) is None:
            if (found := self._old.get(key)) is None:
                made = make()
                found = made, size(made)
            self._keep(key, found)
        return found[0]

    def _keep(self, key: Hashable, found: tuple[V, int]) -> None:
        _, size = found
        if size > self._half:
            return
        if self._bytes + size > self._half:
            self._old, self._young, self._bytes = self._young, {}, 0
        self._young[key] = found
        # Where two threads count at once one of them may be lost, until the next half.
        self._bytes += size

    @property
    def bytes(self) -> int:
        """What it takes now."""
        return sum(size for half in (self._young, self._old) for _, size in half.values())


class Latest(Generic[K, V]):
    """Keeps one value, that of the object which was asked for last: several ask for the same one in a row.

    It is known by what it is, not by what it equals. Threads may share it.
    """

    def __init__(self) -> None:
        self._kept: tuple[K, V] | None = None

    def get(self, key: K) -> V | None:
        kept = self._kept
        return kept[1] if kept is not None and kept[0] is key else None

    def keep(self, key: K, value: V) -> None:
        self._kept = key, value
