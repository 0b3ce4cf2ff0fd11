"""Find where a block ends that is not well-formed, without being fooled by tags in its strings."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .grammar import CLOSE, CLOSE_BEGUN, CLOSE_BEHIND, CLOSE_BEHIND_BEGUN, OPEN, OPEN_BEGUN
from .json_scan import BLANKS

# Strategy: quotes decide. A tag in a string is text, as in a note that holds a whole call, so a block ends at the first
# tag outside of its strings. But the block is broken, and it may be its quotes that are: so the first close tag in a
# string is remembered, as the place where the block has ended if it turns out to have no reading.

_OUTSIDE = re.compile(r"[\"'<\\]")
_INSIDE = {'"': re.compile(r'["\\<]'), "'": re.compile(r"['\\<]")}
# An apostrophe opens a string only where a key or a value may start: in a remark behind the JSON stands `don't`.
_BEFORE_STRING = frozenset("{[,:")
_AFTER_VALUE = frozenset('}])>"`;')


@dataclass(frozen=True, slots=True)
class End:
    """The body ends at `start`; what ended it, up to `end`, is its close tag unless it is an opener."""

    start: int
    end: int
    closed: bool


class BlockEnd:
    """Searches a body that arrives in pieces; each character is looked at once.

    `in_string` is the end of the first close tag that stands in a string. When the quotes turn out not
    to mean what they seemed to, that is where the block may have ended. In `markup` there are no strings,
    but a block may stand inside of a value.
    """

    __slots__ = ("_before", "_depth", "_markup", "_offset", "_quote", "_tail", "in_string")

    def __init__(self, *, markup: bool = False) -> None:
        self._markup = markup
        self._depth = 0  # blocks that were opened inside of this one
        self.in_string: int | None = None
        self._offset = 0  # of `_tail` in the body
        self._tail = ""  # the beginning of a tag or of an escape
        self._quote = ""
        self._before = ""  # the last character outside of strings that is not blank

    def feed(self, text: str) -> End | None:
        text, self._tail = self._tail + text, ""
        pos = 0
        while pos < len(text) and not self._tail:
            end = self._inside(text, pos) if self._quote else self._outside(text, pos)
            if isinstance(end, End):
                return end
            pos = end
        self._offset += pos
        self._tail = text[pos:]
        return None

    # Each gives where to go on. If it leaves something in `_tail`, what stands there is not whole yet.

    def _outside(self, text: str, pos: int) -> End | int:
        found = _OUTSIDE.search(text, pos)
        at = found.start() if found else len(text)
        self._before = text[pos:at].rstrip(BLANKS)[-1:] or self._before
        if found is None:
            return at
        char = text[at]
        if char == "\\":
            # JSON that is escaped as a whole: its quotes are none of those that end with a plain one.
            if at + 1 == len(text):
                self._tail = char
                return at
            # Taken for strings they would hide the close tag of the block.
            return at + 2 if text[at + 1] in "\"'\\" else at + 1
        if char != "<":
            if not self._markup and (char == '"' or self._before in _BEFORE_STRING):
                self._quote = char
            return at + 1
        # Escaped as in a string it is one only where a value has ended: the block may be a string without its quotes.
        behind = self._before in _AFTER_VALUE
        if close := (CLOSE_BEHIND if behind else CLOSE).match(text, at):
            # That of a block inside of a value, which has no quotes round it in markup.
            if self._depth:
                self._depth -= 1
                return close.end()
            return End(self._offset + at, self._offset + close.end(), closed=True)
        if opener := OPEN.match(text, at):
            # Elements have an end of their own, so a block in between is part of a value. JSON has it in quotes.
            if self._markup:
                self._depth += 1
                return opener.end()
            return End(self._offset + at, self._offset + at, closed=False)
        if (CLOSE_BEHIND_BEGUN if behind else CLOSE_BEGUN).match(text, at) or OPEN_BEGUN.match(text, at):
            self._tail = text[at:]
            return at
        return at + 1

    def _inside(self, text: str, pos: int) -> int:
        found = _INSIDE[self._quote].search(text, pos)
        if found is None:
            return len(text)
        at = found.start()
        char = text[at]
        if char == self._quote:
            self._quote, self._before = "", char
        elif char == "\\":
            if at + 1 == len(text):
                self._tail = char
                return at
            return at + 2
        elif close := CLOSE.match(text, at):
            # The first one only: if the quotes mean nothing, it is there that the block ended, and what follows is
            # prose or other blocks.
            if self.in_string is None:
                self.in_string = self._offset + close.end()
            return close.end()
        elif CLOSE_BEGUN.match(text, at):
            self._tail = text[at:]
            return at
        return at + 1
