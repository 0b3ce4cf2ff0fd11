"""What one check may take: steps, time, and regular expressions that give up instead of running on."""

from __future__ import annotations

import gc
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from time import perf_counter, thread_time

import regex

STEPS = 3_000  # of one to three microseconds each
SECONDS = 0.008  # of our own time; a step that is going on is not broken off
LONGEST_PATTERN = 1_000  # characters; compiling is bounded by length
MOST_REPEATS = 10_000  # counted repeats are written out by the compiler, and those in one another multiply

_COUNT = re.compile(r"\{(\d+)")


class SchemaUnusable(Exception):  # noqa: N818  # the schema may be right; it is of no use
    """The value could not be judged in bounds; the message says why."""


class Budget:
    """Whoever spends more than there is gets `SchemaUnusable`. `shares`: how many times what one check may take."""

    def __init__(self, shares: int = 1) -> None:
        self._steps = STEPS * shares
        self._deadline = perf_counter() + SECONDS * shares
        self._own_deadline = thread_time() + SECONDS * shares

    def spend(self, steps: int = 1) -> None:
        self._steps -= steps
        if self._steps < 0:
            raise SchemaUnusable("the check takes too many steps")
        # A busy machine makes no schema unusable. The clock that knows is slow, so the other one is asked first.
        if perf_counter() > self._deadline and thread_time() > self._own_deadline:
            raise SchemaUnusable("the check takes too long")

    def matches(self, pattern: str, text: str) -> bool:
        """Whether `pattern` is found in `text`.

        `re` has no limit, and in a thread it still holds up the whole process. `regex` has, and it reads what schemas
        for JavaScript are full of: named groups, lookbehind, classes by Unicode property.
        """
        self.spend()
        compiled = _compiled(pattern)
        if compiled is None:
            raise SchemaUnusable("a pattern cannot be used")
        try:
            return compiled.search(text, timeout=max(self._own_deadline - thread_time(), 0.0001)) is not None
        except TimeoutError:
            raise SchemaUnusable("a pattern takes too long") from None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> regex.Pattern[str] | None:
    if len(pattern) > LONGEST_PATTERN:
        return None
    if math.prod(max(1, int(count[:9])) for count in _COUNT.findall(pattern)) > MOST_REPEATS:
        return None
    try:
        return regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError):
        return None


# The library calls keywords with nothing that could carry it.
_current: ContextVar[Budget] = ContextVar("budget")


@contextmanager
def one_budget(shares: int = 1) -> Iterator[Budget]:
    """All checks in here share one budget, with those around them if there are any."""
    shared = _current.get(None)
    if shared is not None:
        yield shared
        return
    # A collection may take longer than a check may, and what it searches is no fault of the schema's.
    collecting = gc.isenabled()
    gc.disable()
    token = _current.set(Budget(shares))
    try:
        yield _current.get()
    finally:
        _current.reset(token)
        if collecting:
            gc.enable()


def current_budget() -> Budget:
    return _current.get()
