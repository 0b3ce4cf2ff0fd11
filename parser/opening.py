"""Does a block begin at this open tag? Only if a JSON value follows."""

from __future__ import annotations

import re
from typing import NamedTuple

from .foreign import begins_foreign, is_markup
from .grammar import OPEN, OPEN_BEGUN
from .json_scan import after_space
from .string_ends import WS

# Characters. The tags, white space and fence before the JSON are held back up to this length.
MAX_OPENING_CHARS = 256

# Where a well-formed call begins: one open tag that says no more, and an object.
OPEN_OBJECT = re.compile(r"<tool_call[ \t\r\n]{0,4}>[ \t\r\n]*+(?={)", re.IGNORECASE)

_SPACE = re.compile(WS)
_FENCE = re.compile(r"(?:`{3,}|~{3,})[\w-]*[ \t\r\n]*")
_FENCE_BEGUN = re.compile(r"(?:`{1,2}|~{1,2}|(?:`{3,}|~{3,})[\w-]*[ \t\r\n]*)\Z")


class BlockOpening(NamedTuple):
    """A block begins that is no well-formed call. Its body starts at `end`, after `openers` open tags.

    `markup` says that it is made of elements, in which quotes mean nothing.
    """

    end: int
    openers: int
    markup: bool


class NoOpening(NamedTuple):
    """The tag, which ends at `end`, is text."""

    end: int


def opening_of(text: str) -> BlockOpening | NoOpening | None:
    """What the open tag at the start of `text` is, if not an `OPEN_OBJECT`; None if that is not decided yet."""
    first = OPEN.match(text)
    if first is None:
        raise ValueError("the text does not start with an open tag")
    body = after_space(text, first.end())
    openers = 1
    if second := OPEN.match(text, body):
        body = after_space(text, second.end())
        openers = 2
    start = _after(_FENCE, text, _after(_SPACE, text, body))
    if start > MAX_OPENING_CHARS:
        return NoOpening(first.end())
    char = text[start : start + 1]
    if char in ("{", "[") or text.startswith('"{', start):
        return BlockOpening(body, openers, markup=False)
    if start == len(text) or text[start:] == '"' or OPEN_BEGUN.match(text, start) or _FENCE_BEGUN.match(text, start):
        return None
    match begins_foreign(text, start):
        case True:
            return BlockOpening(body, openers, markup=is_markup(text, start))
        case None if len(text) <= MAX_OPENING_CHARS:
            return None
        case _:
            return NoOpening(first.end())


def _after(pattern: re.Pattern[str], text: str, pos: int) -> int:
    found = pattern.match(text, pos)
    return found.end() if found else pos
