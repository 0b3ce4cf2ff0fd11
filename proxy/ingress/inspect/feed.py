"""Who follows the turns. A slow follower misses steps of a turn, never its last: only which turns changed is noted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import orjson

from .access import Viewer
from .turn_log import TurnLog

# Pages and terminals at a time.
FOLLOWERS = 32


class _Follower:
    def __init__(self) -> None:
        self.changed: dict[str, None] = {}
        self.woken = asyncio.Event()


class Feed:
    def __init__(self, log: TurnLog) -> None:
        self._log = log
        self._followers: set[_Follower] = set()
        self._closed = False

    @property
    def full(self) -> bool:
        return len(self._followers) >= FOLLOWERS

    def tell(self, id: str) -> None:
        """The turn with this id is another one now."""
        for follower in self._followers:
            follower.changed[id] = None
            follower.woken.set()

    def close(self) -> None:
        """Ends what is followed, once it has been told."""
        self._closed = True
        for follower in self._followers:
            follower.woken.set()

    async def follow(self, viewer: Viewer) -> AsyncGenerator[list[bytes], None]:
        """Events of the turns that are kept and `viewer` sees, the oldest first, then of each that changes."""
        follower = _Follower()
        follower.changed = dict.fromkeys(record.id for record in self._log.records)
        self._followers.add(follower)
        try:
            while True:
                ids, follower.changed = list(follower.changed), {}
                yield [self._event(each, viewer) for each in ids]
                if self._closed and not follower.changed:
                    return
                if not follower.changed:
                    follower.woken.clear()
                    await follower.woken.wait()
        finally:
            self._followers.discard(follower)

    def _event(self, id: str, viewer: Viewer) -> bytes:
        record = self._log.get(id)
        if record is None or not viewer.sees(record.owner):
            return b""
        return b"event: turn\ndata: %b\n\n" % orjson.dumps(record.summary)
