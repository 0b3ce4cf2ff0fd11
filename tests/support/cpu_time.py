"""CPU time as a multiple of what the same machine needs for something simple, for tests that are marked `growth`.

Whatever compares times does so in `any_round`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType

# Other work takes caches and memory's bandwidth as well: beside it a CPU time is often doubled, and now and then ten
# times as long, but not in each of so many rounds.
ROUNDS = 5


class _Round(AbstractContextManager[None]):
    def __init__(self, *, last: bool) -> None:
        self._last = last
        self.held = False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.held = kind is None
        return isinstance(error, AssertionError) and not self._last


def any_round() -> Iterator[AbstractContextManager[None]]:
    """`for each in any_round(): with each: assert ...`: it is to hold in one round; the last one's failure is told."""
    for number in range(1, ROUNDS + 1):
        each = _Round(last=number == ROUNDS)
        yield each
        if each.held:
            return


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
