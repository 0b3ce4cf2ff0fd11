"""CPU time as a multiple of what the same machine needs for something simple, for tests that are marked `growth`."""

from __future__ import annotations

import time
from collections.abc import Callable


def cpu_seconds(act: Callable[[], object], rounds: int = 3) -> float:
    """The least of some runs, since the rest of a time is other work's."""
    best = float("inf")
    for _ in range(rounds):
        begun = time.process_time()
        act()
        best = min(best, time.process_time() - begun)
    return best


def seconds_to_look_at(text: str) -> float:
    """At each of its characters, once."""

    def look() -> None:
        for _ in text:
            pass

    return cpu_seconds(look)
