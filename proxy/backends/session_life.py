"""How long a session takes turns, and when it may go.

    fresh --retire--> worn ------its last turn ended--> over
      |  '--age-----> lingering --let go--> worn
      '------------------'--------- gone, condemned --> over

A fresh session takes any turn. A lingering one takes only turns that continue a conversation which it holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class SessionLife:
    def __init__(self) -> None:
        self.worn = False
        self.lingers = False
        self.proven = False
        """It has brought a turn to its end."""
        self._turns = 0
        self._unusable = asyncio.Event()
        self._finished = asyncio.Event()

    @property
    def usable(self) -> bool:
        return not self._unusable.is_set()

    @property
    def busy(self) -> bool:
        return self._turns > 0

    async def unusable(self) -> None:
        await self._unusable.wait()

    async def finished(self) -> None:
        await self._finished.wait()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A turn runs as long as this is held."""
        self._turns += 1
        try:
            yield
        finally:
            self._turns -= 1
            self._go_when_done()

    def retire(self) -> None:
        """Take no new turn; end with the last one that runs."""
        self.worn = True
        self._unusable.set()
        self._go_when_done()

    def age(self) -> None:
        """Take no new turn but those that go on with what it holds; end when it is let go, once none runs."""
        self.lingers = True
        self.retire()

    def let_go(self) -> None:
        self.lingers = False
        self._go_when_done()

    def finish(self) -> None:
        """It is over, with whatever still runs."""
        self.lingers = False
        self._unusable.set()
        self._finished.set()

    def _go_when_done(self) -> None:
        if self.worn and not self._turns and not self.lingers:
            self._finished.set()
