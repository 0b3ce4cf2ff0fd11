"""How much of a turn's answers is read: what never ends would take memory until its client or its hour is over."""

from __future__ import annotations

# Bytes of text and thoughts, calls included. The longest answers that models are let write are a few MiB.
MAX_ANSWER = 16 << 20


class AnswerRoom:
    """Room for `limit` bytes of UTF-8, of all answers of one turn together."""

    def __init__(self, limit: int = MAX_ANSWER) -> None:
        self._left = limit
        self.full = False
        """Something did not fit."""

    def take(self, text: str) -> str:
        """The beginning of `text` for which there is room, mostly all of it."""
        size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        if size > self._left:
            self.full = True
            text = text.encode("utf-8", "surrogatepass")[: self._left].decode("utf-8", "ignore")
            size = self._left
        self._left -= size
        return text
