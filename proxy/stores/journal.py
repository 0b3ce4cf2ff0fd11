"""The journal of a store whose processes tell each other nothing: each knows the events of its own Responses.

A follower in another process checks now and then whether the Response is over. A lease in the store shows that the
process still lives. When the lease has expired, whoever finds the Response marks it failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from ..contracts import Run
from .key_value import KeyValue, Put

# Seconds that a lease holds without another sign.
LEASE = 30.0

# Seconds between two looks at a Response that another process is making.
POLL = 1.0


class OwnJournal:
    """`Journal` over `keys`."""

    takes_over = False
    hold = LEASE

    def __init__(self, keys: KeyValue) -> None:
        self._keys = keys

    async def run(self) -> None:
        """There is nothing to write."""

    async def begin(self, run: Run, opening: Sequence[bytes]) -> None: ...

    def append(self, run: Run, number: int, pieces: Sequence[bytes], *, last: bool = False) -> bool:
        return True

    def end(self, run: Run) -> None: ...

    def forget(self, run: Run) -> None: ...

    @asynccontextmanager
    async def follow(self, run: Run, after: int) -> AsyncIterator[NoNews]:
        yield NoNews()

    async def events(self, run: Run) -> None:
        return None

    async def renew(self, runs: Sequence[Run]) -> set[Run]:
        kept = await asyncio.gather(*map(self._renewed, runs))
        return {run for run, is_kept in zip(runs, kept, strict=True) if not is_kept}

    async def _renewed(self, run: Run) -> bool:
        key, token = f"lease:{run.response_id}", run.token.encode()
        return await self._keys.commit([Put(key, token, self.hold)], expect={key: token})

    async def take(self, silence: float, limit: int) -> list[str]:
        return []

    def leave(self, response_id: str) -> None: ...

    async def flush(self) -> None: ...


class NoNews:
    """A follower of what nobody tells."""

    ended = full = False

    async def next(self) -> Sequence[bytes]:
        await asyncio.sleep(POLL)
        return ()
