"""Work that takes long, done beside the event loop: one piece at a time, and clients take turns.

    a, a, a, b    wait    -->    a, b, a, a

A thread, not a process: what is read is large and used again, and the loop gets the interpreter back within
`SWITCH_INTERVAL` whenever it has something to do.
"""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

# Seconds after which Python takes the interpreter from a thread that another one waits for; 0.005 as it comes. A turn
# waits for it at each of its steps, and there are some twenty.
SWITCH_INTERVAL = 0.0005

R = TypeVar("R")


class BesideTheLoop:
    """A `proxy.turn.Aside`."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tagcall aside")
        self._busy = False
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    async def __call__(self, owner: str, work: Callable[[], R], /) -> R:
        """What `work` returns. Who leaves before it is done leaves it to end by itself."""
        async with self._turn(owner):
            return await asyncio.get_running_loop().run_in_executor(self._thread, _switching_often, work)

    @asynccontextmanager
    async def _turn(self, owner: str) -> AsyncIterator[None]:
        if self._busy:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(owner, deque()).append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._pass_on()
                raise
        self._busy = True
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        """The next owner's oldest piece; who has more is behind the others then."""
        self._busy = False
        while self._waiting:
            owner, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[owner] = turns
            if not turn.done():
                self._busy = True
                turn.set_result(None)
                return


def _switching_often(work: Callable[[], R]) -> R:
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        return work()
    finally:
        sys.setswitchinterval(before)
