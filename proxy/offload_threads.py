"""Work that takes long, done beside the event loop: one piece of each client at a time, and clients take turns.

    a, a, a, b, c    wait    -->    a a a
                                    b c

A thread, not a process: what is read is large and used again. The loop gets the interpreter back within
`SWITCH_INTERVAL` whenever it has something to do.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

# Clients whose work is done at a time. With one alone a piece of somebody's flood, which may take seconds, would hold
# up all others; with many the loop would wait for each of them at every step.
AT_A_TIME = 2

# Seconds after which Python takes the interpreter from a thread that another one waits for; 0.005 as it comes. A turn
# waits for it at each of its steps, and there are some twenty.
SWITCH_INTERVAL = 0.0005

R = TypeVar("R")


class OffloadThreads:
    """A `proxy.turn.Offload`."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="tagcall offload")
        self._busy: set[str] = set()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    async def __call__(self, owner: str, work: Callable[[], R], /) -> R:
        """What `work` returns. Who leaves before that leaves it to end by itself, and keeps its place until then."""
        await self._turn(owner)
        done = asyncio.get_running_loop().run_in_executor(self._threads, _switching_often, work)
        done.add_done_callback(lambda _: self._pass_on(owner))
        return await asyncio.shield(done)

    async def _turn(self, owner: str) -> None:
        if owner not in self._busy and len(self._busy) < AT_A_TIME:
            self._busy.add(owner)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on(owner)
            raise

    def _pass_on(self, owner: str) -> None:
        """To the oldest piece of who has waited for longest; who has more is behind the others then."""
        self._busy.discard(owner)
        while (following := next((one for one in self._waiting if one not in self._busy), None)) is not None:
            turns = self._waiting.pop(following)
            turn = turns.popleft()
            if turns:
                self._waiting[following] = turns
            if not turn.done():
                self._busy.add(following)
                turn.set_result(None)
                return


class _Switching:
    """Python's switch interval, which is one for all threads: short as long as one of ours works."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._working = 0
        self._before = 0.0

    def __enter__(self) -> None:
        with self._lock:
            self._working += 1
            if self._working == 1:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(SWITCH_INTERVAL)

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._working -= 1
            if self._working == 0:
                sys.setswitchinterval(self._before)


_SWITCHING = _Switching()


def _switching_often(work: Callable[[], R]) -> R:
    with _SWITCHING:
        return work()
