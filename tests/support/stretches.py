"""How long the event loop runs without a pause, in CPU time of its thread: the machine's other work is not in it."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def stretches() -> Iterator[list[float]]:
    """Yields the CPU seconds of each step of every loop in this thread, from now on."""
    took: list[float] = []
    run = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        begun = time.thread_time()
        run(handle)
        took.append(time.thread_time() - begun)

    gc.collect()
    gc.freeze()  # what all tests hold is not to be looked through in a step of this one
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncio.Handle, "_run", timed)
            yield took
    finally:
        gc.unfreeze()
