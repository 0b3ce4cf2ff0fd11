"""Text that is one piece in an API, and several messages or thoughts at the backend: these become paragraphs."""

from __future__ import annotations

from msgspec import Struct, field

# What stands between two paragraphs.
GAP = "\n\n"


class Passage(Struct):
    """Text that leaves in pieces; `broken` when what comes next is another paragraph."""

    pieces: list[str] = field(default_factory=list)
    broken: bool = False
    part: int = 0

    def add(self, text: str, part: int = 0) -> str:
        """What leaves for `text`, which is of this `part`: with a gap before it where there is one."""
        if (self.broken or part != self.part) and self.pieces:
            text = GAP + text
        self.broken, self.part = False, part
        self.pieces.append(text)
        return text

    def __str__(self) -> str:
        return "".join(self.pieces)
