"""What reading a request may cost. Counted and not timed, so that the same request is always read alike.

The unit is a character that is searched, which took 12 to 30 ns where this was measured. Whoever spends more has met
a request that nobody writes in good faith, or a great deal of training data.
"""

from __future__ import annotations

# Why there is a bound: the request is somebody else's text, and the reader starts anew at each of its open tags. A text
# of half blocks may take a time that grows with the square of its length, while everybody else's turn waits. What is
# over the bound is neither taken for calls nor for none: it is asked whether it mentions the call (`readable`).

# Units for one reading of a request: about a second at the most, however long it is. Calls, the zones that a found one
# may stand in, and broken blocks are read apart, each when it is asked for.
MOST = 32_000_000
# However short it is: a page about this very notation may be nothing but broken blocks.
LEAST = 12_000_000
# And for each of its characters. Prose with the tag's word takes 1 to 3; with tags, entities and addresses up to 50, as
# it is read in several spellings, alone and in rows; JSON full of whole calls and broken blocks take over 150.
FOR_EACH_CHARACTER = 24


class TooMuchToReadError(Exception):
    """The text is more, or more entangled, than anybody writes in good faith."""


class ReadingBudget:
    """For a request of `length` characters. What is over stays over."""

    __slots__ = ("_left",)

    def __init__(self, length: int) -> None:
        self._left = min(MOST, LEAST + FOR_EACH_CHARACTER * length)

    def spend(self, units: int) -> None:
        """Raises `TooMuchToReadError` when there is not so much left."""
        # Taken before it is looked at, so that a refusal is no refund: else a small question would pass after a large
        # one was refused, and what is read of a request would depend on the order of the questions.
        self._left -= units
        if self._left < 0:
            raise TooMuchToReadError
