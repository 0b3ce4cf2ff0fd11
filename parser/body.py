"""Collect the body of a block that is not well-formed, up to where the block ends."""

from __future__ import annotations

from dataclasses import dataclass

from .block_end import BlockEnd
from .grammar import CLOSE_BEHIND_BEGUN

# Characters. After a whole call, so much more text is awaited that may still bring its close tag, or a second one.
MAX_TAIL_CHARS = 1000

# What follows a whole call and starts like this belongs to the block, however long it is.
_GOES_ON = ("{", "[", ",", ";", "`", '"')


@dataclass(frozen=True, slots=True)
class Collected:
    """The block ends after `text` and, if it is `closed`, its close `tag`. `rest` was not looked at.

    `in_string` is the end of the first close tag in `text + tag + rest` that seemed to stand in a string.
    """

    text: str
    tag: str
    rest: str
    closed: bool
    in_string: int | None


@dataclass(frozen=True, slots=True)
class TooLong:
    text: str
    rest: str


class Body:
    """Takes text until the block ends. It may hold `max_chars`.

    If a whole call ended at `whole_to` and no tag follows in time, the block ends there.
    `markup` says that it is made of elements.
    """

    def __init__(self, max_chars: int, whole_to: int | None, *, markup: bool = False) -> None:
        self._max_chars = max_chars
        self._whole_to = whole_to
        self._pieces: list[str] = []
        self._size = 0
        self._end = BlockEnd(markup=markup)

    def feed(self, text: str) -> Collected | TooLong | None:
        """Where the block ends, if it does in this text."""
        while True:
            over = self._take(text)
            if end := self._end.feed(self._pieces[-1]):
                body = "".join(self._pieces)
                rest = body[end.end :] + over
                return Collected(body[: end.start], body[end.start : end.end], rest, end.closed, self._end.in_string)
            if not over:
                return None
            body = "".join(self._pieces)
            if self._whole_to is None:
                return TooLong(body, over)
            if not body[self._whole_to :].lstrip().startswith(_GOES_ON):
                return Collected(body, "", over, closed=False, in_string=self._end.in_string)
            text, self._whole_to = over, None

    def _take(self, text: str) -> str:
        """Add of `text` what is allowed. Gives what is not."""
        limit = self._max_chars if self._whole_to is None else self._whole_to + MAX_TAIL_CHARS
        room = limit - self._size
        self._pieces.append(text[:room])
        self._size += len(self._pieces[-1])
        return text[room:]

    def end(self) -> Collected:
        """No more text comes. What may be half a close tag is one."""
        body = "".join(self._pieces)
        at = body.rfind("<")
        end = at if at >= 0 and CLOSE_BEHIND_BEGUN.match(body, at) else len(body)
        return Collected(body[:end], body[end:], "", closed=False, in_string=self._end.in_string)
