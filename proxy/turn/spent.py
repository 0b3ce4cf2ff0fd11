"""How much of its limits a turn has used, in tokens and bytes of its answers, and what they cost."""

from __future__ import annotations

from prompts import Image, Part

from ..contracts import Prompt, Usage
from ..tokens import CHARACTERS_PER_TOKEN, IMAGE_TOKENS, TokenMeter

# Bytes of text and thoughts, calls included. The longest answers that models are let write are a few MiB.
MAX_ANSWER = 16 << 20


class Spent:
    """What a turn has used of what it may: of `limit` tokens, if it is limited, and of `room` bytes of UTF-8.

    Both are for all its answers together: the client pays for what it never sees, and an answer that never ends would
    take memory until its client or its hour is over. `counted` is what the backend says of the answer that is read,
    None where it did not come to that.
    """

    __slots__ = ("_limit", "_meter", "_room", "characters", "counted", "exhausted", "full", "usage")

    def __init__(self, limit: int | None = None, room: int = MAX_ANSWER) -> None:
        self._limit = limit
        self._room = room
        self.full = False
        """Something did not fit into the room."""
        self.usage = Usage()
        """Of the answers that are over."""
        self.begin()

    @property
    def tokens_left(self) -> int | None:
        return None if self._limit is None else max(0, self._limit - self.usage.output_tokens)

    def begin(self) -> None:
        """A further answer is read."""
        left = self.tokens_left
        self._meter = None if left is None else TokenMeter(left)
        self.characters = 0
        self.counted: Usage | None = None
        self.exhausted = False

    def end(self, prompt: Prompt) -> None:
        """The answer to `prompt` is over."""
        # A turn that was left early is not counted by the backend, and costs all the same.
        self.usage += self.counted or estimated_usage(prompt, self.tokens)

    @property
    def tokens(self) -> int:
        """An estimate of the answer's, for want of the backend's own count."""
        return self.characters // CHARACTERS_PER_TOKEN if self._meter is None else self._meter.spent

    def take_thought(self, text: str) -> str:
        """The beginning of `text` for which there is room, mostly all of it."""
        size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        if size > self._room:
            self.full = True
            text = text.encode("utf-8", "surrogatepass")[: self._room].decode("utf-8", "ignore")
            size = self._room
        self._room -= size
        return text

    def take(self, text: str) -> str:
        """As `take_thought`, of the answer's text, which is limited in tokens, too."""
        size = len(text)
        if self._meter is None and size <= self._room and text.isascii():  # as nearly all
            self._room -= size
            self.characters += size
            return text
        text = self.take_thought(text)
        if self._meter is not None:
            text = self._meter.take(text)
            self.exhausted = self._meter.exhausted
        self.characters += len(text)
        return text


def estimated_usage(prompt: Prompt, answered: int) -> Usage:
    """Usage of a turn that was ended before the backend counted it; `answered` are tokens."""
    asked = len(prompt.developer or "") // CHARACTERS_PER_TOKEN + sum(map(_weight, prompt.parts))
    return Usage(input_tokens=asked, output_tokens=answered)


def _weight(part: Part) -> int:
    return IMAGE_TOKENS if isinstance(part, Image) else len(part.text) // CHARACTERS_PER_TOKEN
