"""Threads that are started ahead, so that a request need not wait for its own.

A thread gets its instructions when it starts; `turn/start` takes none. So a thread can be made ready only for
instructions that came before. Each request of a conversation brings the same ones, so the thread for the next request
is started while a turn runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from cachetools import TTLCache
from msgspec import Struct
from msgspec.structs import replace

from ...contracts import Prompt
from ...errors import BackendError
from .running_turn import TurnLostError

# Seconds that a thread waits at most. What it was started with is not looked at again.
GOOD_FOR = 600.0

Key = tuple[str, str | None, str | None]


class Started(Struct, frozen=True):
    """A thread. One that is not `ephemeral` leaves a trace; one that `waited` may be gone."""

    id: str
    ephemeral: bool
    waited: bool = False


class SpareThreads:
    """`start` raises `BackendError` or `TurnLostError`. `most` threads wait; then the oldest is forgotten."""

    def __init__(self, start: Callable[[Prompt], Awaitable[Started]], most: int) -> None:
        self._start = start
        self._most = most
        self._waiting: TTLCache[Key, Started] = TTLCache(most, GOOD_FOR, lambda: asyncio.get_running_loop().time())
        self._wanted: asyncio.Queue[Prompt] = asyncio.Queue()

    def take(self, prompt: Prompt) -> Started | None:
        """A thread for `prompt`, which is nobody else's then."""
        return self._waiting.pop(_key(prompt), None)

    def want(self, prompt: Prompt) -> None:
        """A request like `prompt` is likely to come."""
        # Of many at once most would be forgotten before they are taken.
        if self._wanted.qsize() < self._most and _key(prompt) not in self._waiting:
            self._wanted.put_nowait(prompt)

    async def run(self) -> None:
        """Starts what is wanted, one thread at a time, until it is cancelled."""
        while True:
            prompt = await self._wanted.get()
            if _key(prompt) not in self._waiting:
                with suppress(BackendError, TurnLostError):
                    self._waiting[_key(prompt)] = replace(await self._start(prompt), waited=True)


def _key(prompt: Prompt) -> Key:
    return prompt.model, prompt.developer, prompt.verbosity
