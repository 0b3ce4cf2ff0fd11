"""The parser of one answer: first it looks for an answer that needs no tags, then a `SentinelParser` reads the text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .block import MAX_CALL_CHARS
from .events import ParserEvent
from .openers import Candidate, Opener
from .registry import ToolRegistry
from .sentinel import SentinelParser


class AnswerParser:
    """Reads one answer as `SentinelParser` does, and as calls of `registry` where it is nothing else.

    Text is held back only while the answer can still be that: nearly every one is let go with its first character. The
    first of several openers counts. `max_chars` bounds what is held.
    """

    receive_text: Callable[[str], list[ParserEvent]]
    """The events that this piece of the answer brings."""

    def __init__(
        self,
        registry: ToolRegistry,
        openers: Sequence[Opener] = (),
        *,
        arguments: bool = True,
        max_chars: int = MAX_CALL_CHARS,
        in_code: bool = False,
    ) -> None:
        self._parser = SentinelParser(arguments=arguments, in_code=in_code)
        self._candidates = [Candidate(opener, registry, tells=arguments) for opener in openers]
        self._max_chars = max_chars
        self._held: list[str] = []
        self._size = 0
        self.receive_text = self._hold if openers else self._parser.receive_text

    def _hold(self, text: str) -> list[ParserEvent]:
        self._held.append(text)
        self._size += len(text)
        # Held text is memory, and a user who waits: a call that is longer than a block may be is none.
        if self._size <= self._max_chars:
            self._candidates = [candidate for candidate in self._candidates if candidate.feed(text)]
            if self._candidates:
                return []
        return self._release()

    def _release(self) -> list[ParserEvent]:
        self._candidates.clear()
        self.receive_text = self._parser.receive_text
        # From the start, as if it had never been held: the parser must see the answer as it is.
        text = "".join(self._held)
        self._held.clear()
        return self.receive_text(text) if text else []

    def receive_eof(self) -> list[ParserEvent]:
        """The events that the end of the answer brings. To be called once."""
        raw = "".join(self._held)
        events = next((told for candidate in self._candidates if (told := candidate.end(raw))), None)
        if events is None:
            events = self._release()
        events += self._parser.receive_eof()
        self.receive_text = self._parser.receive_text
        return events
