"""Tests in which waiting takes no time: the clock jumps to the next moment at which something is to happen.

For what lives in memory alone; a file or a process does not know of this clock.
"""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

P = ParamSpec("P")


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """Its time begins at 0 and passes only when every task waits."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self._now

    def jump(self, seconds: float) -> None:
        self._now += seconds


class _Selector(selectors.DefaultSelector):
    def __init__(self, loop: VirtualClockLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout:
            self._loop.jump(timeout)
        if not ready and timeout is None and not (ready := super().select(1.0)):
            raise RuntimeError("every task waits for another")
        return ready


def on_a_virtual_clock(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Runs an `async def` test on such a loop, and holds it to leave no task behind."""

    async def checked(*args: P.args, **kwargs: P.kwargs) -> None:
        await test(*args, **kwargs)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks are left: {sorted(task.get_name() for task in left)}"

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
            runner.run(checked(*args, **kwargs))

    return run
