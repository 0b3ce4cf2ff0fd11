"""Keeps what was made of the beginnings of conversations, so that a longer conversation goes on from there.

A conversation is sent whole with each request, and all but its end was sent before. What is kept is found only by a
conversation that begins with all of it, so nobody is given what they did not send.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable
from itertools import accumulate
from typing import Generic, TypeVar

from msgspec import Struct

from .transcript import Entry

# A conversation: its JSON, or what it says.
W = TypeVar("W", bytes, tuple[Entry, ...])
V = TypeVar("V")

# Conversations of which something is kept, at most: each is compared with each request.
_MOST = 64


class Begun(Struct, Generic[W, V], frozen=True):
    """`made` of the `beginning` of a conversation and of its `context`. It is shared, so nothing may change it; `size`
    are its bytes.
    """

    context: Hashable
    beginning: W
    made: V
    size: int


class Beginnings(Generic[W, V]):
    """Keeps what takes `most` bytes at most, and forgets the oldest first. Threads may share it."""

    def __init__(self, most: int) -> None:
        self._most = most
        # Newest first. Replaced as a whole: where two threads keep something at once, one of them may be lost.
        self._kept: tuple[Begun[W, V], ...] = ()

    def find(self, context: Hashable, whole: W) -> Begun[W, V] | None:
        """What is known of the longest beginning of `whole`, which may be all of it."""
        # Each conversation that is kept is looked at, so without a frame for each.
        if isinstance(whole, bytes):
            begun = [each for each in self._kept if whole.startswith(each.beginning)]
        else:
            # Most others differ in their last entry. Those of one conversation are the same objects, seen at a glance.
            begun = [
                each
                for each in self._kept
                if 0 < (end := len(each.beginning)) <= len(whole)
                and whole[end - 1] == each.beginning[-1]
                and whole[:end] == each.beginning
            ]
        alike = [each for each in begun if each.context == context]
        return max(alike, key=lambda each: len(each.beginning), default=None)

    def keep(self, new: Begun[W, V], instead: Begun[W, V] | None = None) -> None:
        """Of a conversation that goes on only the `new` beginning is kept, `instead` of the one that was found."""
        if new.size > self._most:
            return
        kept = [begun for begun in self._kept if begun is not instead]
        kept.insert(0, new)
        # What each takes with all that are newer.
        taken = list(accumulate([begun.size for begun in kept[:_MOST]]))
        self._kept = tuple(kept[: bisect_right(taken, self._most)])

    @property
    def bytes(self) -> int:
        """What it takes now."""
        return sum(begun.size for begun in self._kept)
