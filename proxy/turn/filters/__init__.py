"""The text of an answer on its way to the client: each filter takes out one thing, however the text is cut.

own_notation   headers and lines of ours, and results that the model made up, at the beginning of a line
masking        the call key
stop_strings   all text from a stop string on

`prompts.Unescaper`, which restores tags that we escaped, is such a filter as well. Several are `chained` to one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Protocol

from .masking import Mask, masked, places
from .own_notation import LineRule, OwnNotation, headers, invented_results, own_lines
from .stop_strings import StopStrings

__all__ = [
    "Chain",
    "LineRule",
    "Mask",
    "OwnNotation",
    "StopStrings",
    "TextFilter",
    "chained",
    "headers",
    "invented_results",
    "masked",
    "own_lines",
    "places",
]


class TextFilter(Protocol):
    """Takes something out of a text that comes in pieces, or restores it. How the text is cut does not show."""

    def feed(self, text: str) -> str:
        """The text that may be shown now."""
        ...

    def flush(self) -> str:
        """What waited, where the text ends; the next `feed` begins a new one."""
        ...


class Chain:
    """Two filters as one: what the first lets through is fed to the second."""

    __slots__ = ("_first", "_second")

    def __init__(self, first: TextFilter, second: TextFilter) -> None:
        self._first = first
        self._second = second

    def feed(self, text: str) -> str:
        return self._second.feed(self._first.feed(text))

    def flush(self) -> str:
        return self._second.feed(self._first.flush()) + self._second.flush()


def chained(filters: Sequence[TextFilter]) -> TextFilter:
    """`filters`, of which there is one at least, as one."""
    return reduce(Chain, filters)
