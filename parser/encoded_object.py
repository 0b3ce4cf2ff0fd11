"""An object inside of a JSON string, decoded while it arrives."""

from __future__ import annotations

from .json_scan import ValueScanner, after_space
from .json_text import StringDecoder


class EncodedObject:
    """Takes the text of a JSON string, quotes included, and gives the text of the object that it holds.

    Pieces are made of whole characters and whole escapes. `broken` says that it is no object, or more.
    """

    __slots__ = ("_begun", "_decoder", "_opened", "_scanner", "broken")

    def __init__(self) -> None:
        self.broken = False
        self._opened = False  # past the opening quote
        self._begun = False  # past white space before the object
        self._decoder = StringDecoder()
        self._scanner = ValueScanner()

    def feed(self, piece: str, *, final: bool) -> str:
        """What is now released of the object. `final` says that the string ends with this piece."""
        text = self._decoder.decode(piece[0 if self._opened else 1 : -1 if final else None], final=final)
        self._opened = True
        if not self._begun:
            text = text[after_space(text, 0) :]
            self._begun = bool(text)
            if text and text[0] != "{":
                self.broken = True
                return ""
        scanner = self._scanner
        released = ""
        if not scanner.done:
            released = scanner.feed(text)
            text = scanner.rest
        self.broken = scanner.broken or after_space(text, 0) < len(text) or (final and not scanner.done)
        return released
