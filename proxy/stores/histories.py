"""Inputs that begin like an earlier one. The common items are stored once.

    history:<id>            how many items, their digest, how many of them each Response has; the items as the list
    tail:<owner>:<digest>   the history whose items have this digest

A client that sends its whole history sends the items of its last request, then the answer, then new items. So a new
input goes on from the history that ends right in front of one of its answers. The digest of all items up to there finds
that history. An input that goes on from the middle of a history, after an edit, begins another history.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import accumulate, pairwise

from msgspec import Struct

from ..contracts import StoredResponse, WireObject
from .key_value import HEAD, Append, Change, Drop, KeyValue, Put
from .records import DIGEST_SIZE, decode, encode

# The fewest items of a history: a question, its answer, the next question. Fewer items stand in their Response.
FEWEST = 3

# The newest places of an input at which an earlier request may have ended. Several are tried, because some clients put
# each result behind its call, and then no request ended between the calls of one answer.
PLACES = 16


class Reference(Struct, frozen=True):
    """The first `count` items of a history."""

    history: str
    count: int


class _History(Struct, frozen=True):
    """`users` are the Responses that refer to it, each with its count. `written` is its record in the store."""

    count: int
    digest: str
    users: Mapping[str, int]
    written: bytes | None = None

    def record(self) -> bytes:
        return encode({"count": self.count, "digest": self.digest, "users": self.users})


class HistoryStep(Struct, frozen=True):
    """`changes` to commit if the store still holds what they `expect`. `reference`: the Response's part."""

    changes: Sequence[Change]
    expect: Mapping[str, bytes | None]
    reference: Reference | None = None


class Histories:
    def __init__(self, keys: KeyValue, ttl: float) -> None:
        self._keys = keys
        self._ttl = ttl

    async def join(self, stored: StoredResponse) -> HistoryStep | None:
        """The changes that keep a Response's input in a history; None if the input makes no history."""
        if stored.previous is not None or len(stored.input) < FEWEST:
            return None
        items = [encode(item) for item in stored.input]
        digests = _digests(items)
        found, history = await self._find(stored, digests)
        users = {**history.users, stored.id: len(items)}
        key, tail = f"history:{found}", digests[-1]
        changes: list[Change] = [Put(key, _History(len(items), tail, users).record(), self._ttl)]
        new = items[history.count :] if history.written else [HEAD, *items]
        if new:
            changes.append(Append(key, tuple(new), self._ttl))
        if history.written and history.digest != tail:
            changes.append(Drop(_tail(stored.owner, history.digest)))
        changes.append(Put(_tail(stored.owner, tail), found.encode(), self._ttl))
        return HistoryStep(changes, {key: history.written}, Reference(found, len(items)))

    async def _find(self, stored: StoredResponse, digests: Sequence[str]) -> tuple[str, _History]:
        """The history that holds the longest beginning of the input, or a new one."""
        tried = [digests[count - 1] for count in _places(stored.input)]
        marks = await asyncio.gather(*(self._keys.read(_tail(stored.owner, digest)) for digest in tried))
        for digest, mark in zip(tried, marks, strict=True):
            found = "" if mark is None else mark.decode("ascii", "replace")
            history = await self._read(found) if found else None
            if history is not None and history.digest == digest:
                return found, history
        return secrets.token_hex(16), _History(0, "", {})

    async def items(self, reference: Reference) -> tuple[WireObject, ...] | None:
        """The items that `reference` names; None if not all of them are there."""
        written = (await self._keys.values(f"history:{reference.history}"))[: reference.count + 1]
        items = [item for value in written[1:] if (item := decode(value)) is not None]
        return tuple(items) if written[:1] == [HEAD] and len(items) == reference.count else None

    async def leave(self, reference: Reference, response_id: str, owner: str) -> HistoryStep:
        """The changes that take a Response out of its history, with the items that no other Response has."""
        key = f"history:{reference.history}"
        if (history := await self._read(reference.history)) is None:
            return HistoryStep([], {})
        others = [user for user in history.users if user != response_id]
        lefts = await asyncio.gather(*(self._keys.left(f"response:{user}") for user in others))
        users = {user: history.users[user] for user, left in zip(others, lefts, strict=True) if left}
        kept, left = max(users.values(), default=0), max(lefts, default=0.0)
        if kept == history.count:
            return HistoryStep([Put(key, _History(kept, history.digest, users).record(), left)], {key: history.written})
        changes: list[Change] = [Drop(key), Drop(_tail(owner, history.digest))]
        items = tuple((await self._keys.values(key))[: kept + 1]) if kept else ()
        if len(items) > 1:  # a full Redis may have forgotten the list
            digest = _digests(items[1:])[-1]
            changes += [Put(key, _History(kept, digest, users).record(), left), Append(key, items, left)]
            changes.append(Put(_tail(owner, digest), reference.history.encode(), left))
        return HistoryStep(changes, {key: history.written})

    async def _read(self, identifier: str) -> _History | None:
        written = await self._keys.read(f"history:{identifier}")
        match None if written is None else decode(written):
            case {"count": int(count), "digest": str(digest), "users": dict(users)}:
                counts = {user: users_count for user, users_count in users.items() if isinstance(users_count, int)}
                return _History(count, digest, counts, written)
            case _:
                return None


def _tail(owner: str, digest: str) -> str:
    return f"tail:{owner}:{digest}"


def _digests(items: Sequence[bytes]) -> list[str]:
    """The digest of each beginning, made of the digests with which the records begin."""
    return [digest.hex() for digest in accumulate((item[:DIGEST_SIZE] for item in items), _chained)]


def _chained(before: bytes, own: bytes) -> bytes:
    return blake2b(before + own, digest_size=DIGEST_SIZE).digest()


def _places(items: Sequence[WireObject]) -> list[int]:
    """Counts of items after which an earlier request may have ended, the longest first."""
    written = map(_is_answer, items)
    answered = [count for count, (before, after) in enumerate(pairwise(written), 1) if after and not before]
    return [len(items), *answered[: -PLACES - 1 : -1]]


def _is_answer(item: WireObject) -> bool:
    """Whether a model wrote `item`."""
    kind = str(item.get("type"))
    return item.get("role") == "assistant" if kind == "message" else not kind.endswith("_output")
