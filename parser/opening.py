"""Does a block begin at this open tag? Only if a JSON value follows."""

from __future__ import annotations

import re
from typing import NamedTuple

from .grammar import OPEN, OPEN_BEGUN
from .json_scan import after_space

# The tags, white space and fence before the JSON are held back up to this length.
MAX_OPENING_CHARS = 256

_FENCE = re.compile(r"(?:`{3,}|~{3,})[\w-]*[ \t\r\n]*")
_FENCE_BEGUN = re.compile(r"(?:`{1,2}|~{1,2}|(?:`{3,}|~{3,})[\w-]*[ \t\r\n]*)\Z")


class Opening(NamedTuple):
    """A block begins. `end` is where its body starts, after `openers` open tags.

    `live` says that it starts with an object, after one open tag. Anything else is no well-formed call.
    """

    end: int
    openers: int
    live: bool


class NoOpening(NamedTuple):
    """The tag, which ends at `end`, is text."""

    end: int


def opening_of(text: str) -> Opening | NoOpening | None:
    """What the open tag at the start of `text` is; None if that is not decided yet."""
    first = OPEN.match(text)
    if first is None:
        raise ValueError("the text does not start with an open tag")
    body = after_space(text, first.end())
    if text.startswith("{", body) and body <= MAX_OPENING_CHARS:
        return Opening(body, 1, live=True)
    openers = 1
    if second := OPEN.match(text, body):
        body = after_space(text, second.end())
        openers = 2
    fence = _FENCE.match(text, body)
    start = fence.end() if fence else body
    if start > MAX_OPENING_CHARS:
        return NoOpening(first.end())
    char = text[start : start + 1]
    if char in ("{", "[") or text.startswith('"{', start):
        return Opening(body, openers, live=False)
    if start == len(text) or text[start:] == '"' or OPEN_BEGUN.match(text, start) or _FENCE_BEGUN.match(text, start):
        return None
    return NoOpening(first.end())
