"""Filters one behind the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class TextFilter(Protocol):
    """Takes something out of a text that comes in pieces, or restores it. How the text is cut does not show."""

    def feed(self, text: str) -> str:
        """The text that may be shown now."""
        ...

    def flush(self) -> str:
        """What was held back, where the text ends; the next `feed` begins a new one."""
        ...


class Chain:
    """`filters` as one: what the first lets through is fed to the second, and so on."""

    __slots__ = ("_filters",)

    def __init__(self, filters: Sequence[TextFilter]) -> None:
        self._filters = filters

    def feed(self, text: str) -> str:
        for each in self._filters:
            text = each.feed(text)
        return text

    def flush(self) -> str:
        text = ""
        for each in self._filters:
            text = each.feed(text) + each.flush()
        return text
