"""An answer that has to be JSON, streamed while it is written, if it can be trusted to become JSON.

    BEGINNING --"{" or "["--> STREAMING --the value is whole, or no JSON--> OVER   nothing more leaves
        '-------a code fence, prose----> GIVEN_UP                                all is given back: it is kept as it was

Text that has left cannot be asked for once more. So an answer is trusted only if the backend holds its model to the
format, and the model has not broken it lately (`HeldFormats`).
"""

from __future__ import annotations

from enum import Enum, auto

from cachetools import LRUCache

from parser import BLANKS, ValueScanner
from prompts import JsonUnescaper

from .filters import Chain, Mask
from .key_habits import Speaker

# Owners' models whose broken formats are remembered: their names are the clients'.
MOST_MODELS = 256
# Answers that fit, one after the other, after which a model is trusted again.
FORGIVEN_AFTER = 10


class StreamJson(Enum):
    """When text that has to be JSON leaves: only where it is held to its schema before it is whole, or always."""

    HELD = "held"
    EARLY = "early"


class HeldFormats:
    """Each owner's models that wrote something else than the schema which their backend should hold them to.

    At most `most` of them, each until so many of its answers fit again.
    """

    def __init__(self, most: int = MOST_MODELS) -> None:
        self._broken: LRUCache[tuple[str, str], int] = LRUCache(most)
        """By owner and model, how many answers fitted since."""

    def broken_by(self, speaker: Speaker) -> bool:
        return (speaker.owner, speaker.model) in self._broken

    def note_break(self, speaker: Speaker) -> None:
        if self._broken.maxsize:
            self._broken[speaker.owner, speaker.model] = 0

    def note_fit(self, speaker: Speaker) -> None:
        """A whole answer fits."""
        if self.broken_by(speaker):
            known = speaker.owner, speaker.model
            self._broken[known] += 1
            if self._broken[known] == FORGIVEN_AFTER:
                del self._broken[known]


class _State(Enum):
    BEGINNING = auto()
    STREAMING = auto()
    OVER = auto()
    GIVEN_UP = auto()


class JsonStream:
    """Feed it the text of the answer; what it returns may leave, with escaped tags restored and `key` masked."""

    def __init__(self, key: str | None) -> None:
        self._state = _State.BEGINNING
        self._scanner = ValueScanner()
        self._restored = Chain(JsonUnescaper(), Mask(key))
        # A token that is not whole yet.
        self._token = ""

    @property
    def given_up(self) -> bool:
        """It does not begin as JSON does: nothing has left."""
        return self._state is _State.GIVEN_UP

    def feed(self, text: str) -> str:
        if self._state is _State.BEGINNING:
            text = text.lstrip(BLANKS)
            if not text:
                return ""
            self._state = _State.STREAMING if text[0] in "{[" else _State.GIVEN_UP
        if self._state is not _State.STREAMING:
            return ""
        value = self._scanner.feed(text)
        self._token = (self._token + text)[len(value) :]
        if self._scanner.done or self._scanner.broken:
            self._state, self._token = _State.OVER, ""
        return self._restored.feed(value)

    def flush(self) -> str:
        """What waited of it, where the answer ends or is cut."""
        # Half a token, which is no more wrong than half a value.
        if self._state is _State.STREAMING:
            self._state = _State.OVER
        token, self._token = self._token, ""
        return self._restored.feed(token) + self._restored.flush()
