"""A call that leaves while it is written, before anybody knows whether it comes to a good end."""

from __future__ import annotations

from ..contracts import Reasoning, ReasoningItemEnded, ToolCallArguments, ToolCallEnded, ToolCallStarted, TurnEvent
from .filters import Mask


class LeavingCall:
    """Begin it, feed it its arguments, end it: what may leave now is put into `out`. One at a time, or none."""

    __slots__ = ("_behind", "_mask", "_out", "index")

    def __init__(self, out: list[TurnEvent], key: str | None) -> None:
        self._out = out
        self._mask = None if key is None else Mask(key)
        self._behind: list[Reasoning | ReasoningItemEnded] = []
        self.index: int | None = None
        """The parser's number of it; None when no call is leaving."""

    def begin(self, index: int, start: ToolCallStarted) -> None:
        self._out.append(start)
        self.index = index

    def feed(self, text: str) -> None:
        if self._mask is not None:
            text = self._mask.feed(text)
        if text:
            self._out.append(ToolCallArguments(text))

    def end(self, end: ToolCallEnded) -> None:
        self.index = None
        if self._mask is not None and (text := self._mask.flush()):
            self._out.append(ToolCallArguments(text))
        self._out += [end, *self._behind]
        self._behind.clear()

    def let_pass(self, event: Reasoning | ReasoningItemEnded) -> None:
        """Reasoning is never held back, but it does not interrupt a call: no API has items that lie in one another."""
        (self._out if self.index is None else self._behind).append(event)
