"""The end of an answer so far, by which the place of a block in it is told."""

from __future__ import annotations

from prompts import BLOCK, CONTEXT

# Pieces that are kept before they are joined and cut.
_KEPT = 512


class TextBefore:
    """Feed it the text of an answer, and a `BLOCK` for each block in it."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def feed(self, text: str = BLOCK) -> None:
        self._pieces.append(text)
        if len(self._pieces) > _KEPT:
            self._pieces[:] = [self.text]

    @property
    def text(self) -> str:
        """Up to `CONTEXT` characters."""
        return "".join(self._pieces)[-CONTEXT:]
