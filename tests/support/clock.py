"""A loop's clock that a test puts forward, for deadlines that real connections and child processes run into.

In memory alone nothing need be waited for at all: that is what `virtual_clock` is for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Self

# Turns of the loop after which all that has come is where it belongs: reading passes it on in a dozen.
SETTLED = 100
# Seconds between two looks at what another process does, which gives no sign.
POLL = 0.01


async def settle() -> None:
    """Until whatever has come by now has been passed on."""
    for _ in range(SETTLED):
        await asyncio.sleep(0)


class Clock:
    """The clock of the running loop, as long as the context is open. It goes on by itself, too."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> Self:
        # `call_later` and what is due both ask the loop.
        self._loop.time = self.time  # type: ignore[method-assign]
        return self

    def __exit__(self, *exc: object) -> None:
        del self._loop.time

    def time(self) -> float:
        return time.monotonic() + self._ahead

    async def put_forward(self, seconds: float) -> None:
        """What has come is passed on first, so that nothing is late that is there; then time has passed."""
        await settle()
        self._ahead += seconds
        await settle()

    async def put_forward_when(self, happened: Callable[[], bool], seconds: float) -> None:
        while not happened():  # noqa: ASYNC110 -- what another process does gives no sign
            await asyncio.sleep(POLL)
        await self.put_forward(seconds)
