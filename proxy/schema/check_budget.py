"""The budget of one check. It is counted, not timed, so that the same value and schema are always judged alike.

A step was measured as about a microsecond, whatever it is spent on: a keyword, eight members looked through, 64
characters of a message. Nothing that a schema or a value can make large may come cheaper.
"""

from __future__ import annotations

# Steps: half a second at the most, and within that what a schema and a value of their size are worth.
MOST = 500_000
LEAST = 40_000
FOR_EACH_CHARACTER = 8

# Subschemas that are at work within one another. Python's own limit would depend on who asks.
MOST_DEPTH = 256


class SchemaUnusable(Exception):  # noqa: N818 -- the schema may be right; it is of no use
    """The value could not be judged in bounds; the message says why."""


class CheckBudget:
    """For a schema and a value of `size` characters in all. Whoever spends more than there is gets `SchemaUnusable`."""

    __slots__ = ("_left", "depth")

    def __init__(self, size: int) -> None:
        self._left = min(MOST, LEAST + FOR_EACH_CHARACTER * size)
        self.depth = 0

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise SchemaUnusable("the check takes too many steps")

    def go_deeper(self) -> None:
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise SchemaUnusable("the check goes too deep")

    def come_back(self) -> None:
        self.depth -= 1
