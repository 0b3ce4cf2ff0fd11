"""The text between two calls: verbatim, unless it is nothing but white space."""

from __future__ import annotations

from .events import ParserEvent

# Characters. White space is held back until it is known to separate calls only, or until there is this much of it.
MAX_HELD_BLANK = 4096


class Segment:
    """The stretch of text since the last call. White space at its start waits for what comes."""

    __slots__ = ("_after_call", "_held", "_length", "blank")

    def __init__(self) -> None:
        self.blank = True  # nothing was said yet
        self._after_call = False
        self._held: list[str] = []
        self._length = 0

    def say(self, text: str, events: list[ParserEvent]) -> None:
        if not text:
            return
        if not self.blank:
            events.append(text)
            return
        # Hold exactly as much as the limit allows, so that how the text was cut does not show.
        if text.isspace() and self._length + len(text) <= MAX_HELD_BLANK:
            self._held.append(text)
            self._length += len(text)
            return
        self.release(events)
        events.append(text)

    def release(self, events: list[ParserEvent]) -> None:
        """The segment is not blank: let go of what was held, and hold no more."""
        if held := self.pass_text():
            events.append(held)

    def pass_text(self) -> str:
        """The segment is not blank, and others say what was held: gives it."""
        self.blank = False
        return self.take()

    def take(self) -> str:
        """What is held, which is not said here."""
        if not self._held:
            return ""
        held, self._held = self._held, []
        return "".join(held)

    def end_with_call(self) -> str:
        """A call ends this segment, the next one starts. Gives what is held: it only separates."""
        held = self.take()
        self.blank = self._after_call = True
        self._length = 0
        return held

    def end(self, events: list[ParserEvent]) -> None:
        """The answer ends here."""
        if not self._after_call:
            self.release(events)
