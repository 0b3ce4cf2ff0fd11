"""The model's reasoning on its way out, by its parts, without the call key."""

from __future__ import annotations

from ..contracts import Reasoning, ReasoningItemEnded
from .filters import Mask
from .outlet import Outlet


class Thoughts:
    """Feed it the reasoning; `end` a part, or `end_item` all of it."""

    __slots__ = ("_mask", "_outlet", "_part")

    def __init__(self, outlet: Outlet, key: str | None) -> None:
        self._outlet = outlet
        self._mask = None if key is None else Mask(key)
        self._part = 0

    def feed(self, part: int, text: str) -> None:
        if self._mask is not None:
            if part != self._part:
                self.end()
            self._part, text = part, self._mask.feed(text)
        if text:
            self._outlet.think(Reasoning(part, text))

    def end(self) -> None:
        if self._mask is not None and (text := self._mask.flush()):
            self._outlet.think(Reasoning(self._part, text))

    def end_item(self) -> None:
        self.end()
        self._outlet.think(ReasoningItemEnded())
