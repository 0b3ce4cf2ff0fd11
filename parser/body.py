"""A block in another form than the taught one: whether one begins, and all of it up to its end."""

from __future__ import annotations

import re
from typing import NamedTuple

from msgspec import Struct

from .beginnings import growing
from .foreign import begins_foreign, is_markup
from .grammar import (
    CLOSE,
    CLOSE_BEGUN,
    CLOSE_BEHIND,
    CLOSE_BEHIND_BEGUN,
    KEY_IN_FRONT,
    KEY_IN_FRONT_BEGUN,
    OPEN,
    OPEN_BEGUN,
)
from .json_scan import BLANKS, ValueScanner, after_space
from .relaxed_json import ESCAPED_SPACE, WS

# Characters. The tags, white space and fence before the JSON are held back up to this length.
MAX_OPENING_CHARS = 256

# Where a well-formed call begins: one open tag that says no more, and an object.
OPEN_OBJECT = re.compile(r"<tool_call[ \t\r\n]{0,4}>[ \t\r\n]*+(?={)", re.IGNORECASE)

# Characters. So many may stand between the tags of a block that holds no call.
MAX_WORDS_CHARS = 1000

_SPACE = re.compile(rf"{WS}(?:{ESCAPED_SPACE.pattern}{WS})*")
_TAG = re.compile(f"(?P<close>{CLOSE.pattern})|{OPEN.pattern}", re.IGNORECASE)
_FENCE, _FENCE_BEGUN = growing(r"(?:`{3,}|~{3,})[\w-]*[ \t\r\n]*")

_TOKEN = re.compile(
    rf"(?P<close>{CLOSE.pattern})|(?P<behind>{CLOSE_BEHIND.pattern})|(?P<open>{OPEN.pattern})|(?P<escape>\\[\s\S])"
    rf"|(?P<quote>[\"'])|(?P<begun>\\\Z|{CLOSE_BEHIND_BEGUN.pattern}|{OPEN_BEGUN.pattern})",
    re.IGNORECASE,
)
# An apostrophe opens a string only where a key or a value may start, that of a keyword too: in a remark behind the
# JSON stands `don't`.
_BEFORE_STRING = frozenset("{[,:=")
_AFTER_VALUE = frozenset('}])>"`;')
# Characters. After a whole call, so much more text is awaited that may still bring its close tag, or a second one.
MAX_TAIL_CHARS = 1000
# What follows a whole call and starts like this belongs to the block, however long it is.
_GOES_ON = ("{", "[", ",", ";", "`", '"')


class BlockOpening(NamedTuple):
    """A block begins that is no well-formed call. Its body starts at `end`, after one open tag or two.

    `markup` says that it is made of elements, in which quotes mean nothing.
    """

    end: int
    markup: bool


class NoCall(NamedTuple):
    """A block that holds no call for this `reason`, with its close tag: it ends at `end`. Without one it is a tag alone
    that is text.
    """

    end: int
    reason: str = ""


def opening_of(text: str, *, first_on_line: bool) -> BlockOpening | NoCall | None:
    """What the open tag at the start of `text` is, if not an `OPEN_OBJECT`; None if that is not decided yet.

    `first_on_line`: nothing but blanks stands before it on its line.
    """
    first = OPEN.match(text)
    if first is None:
        raise ValueError("the text does not start with an open tag")
    body = after_space(text, first.end())
    if second := OPEN.match(text, body):
        body = after_space(text, second.end())
    at = _after(_SPACE, text, body)
    # What is not there yet where the limit is does not count, or it would show how the text was cut.
    head = text[:MAX_OPENING_CHARS]
    start = _after(_FENCE, text, _after(KEY_IN_FRONT, head, at))
    if start > MAX_OPENING_CHARS:
        return NoCall(first.end())
    if text.startswith(("{", "[", '"{'), start):
        return BlockOpening(body, markup=False)
    if text[start:] in ('"', "\\") or OPEN_BEGUN.match(text, start) or _FENCE_BEGUN.match(text, start):
        return None
    begins = begins_foreign(head, start)
    if begins:
        return BlockOpening(body, is_markup(text, start))
    may_come = len(text) < MAX_OPENING_CHARS and (begins is None or KEY_IN_FRONT_BEGUN.match(head, at))
    return None if may_come else _without_call(text, first.end(), body, first_on_line=first_on_line)


def _without_call(text: str, tag_end: int, body: int, *, first_on_line: bool) -> NoCall | None:
    """What an open tag is that ends at `tag_end`, where no call begins at `body`: a block all the same, or text."""
    # Whoever mentions a tag in a sentence goes on in its line, and seldom closes it.
    in_line = not first_on_line and "\n" not in text[tag_end:body]
    tag = _TAG.search(text, body, MAX_WORDS_CHARS)
    may_come = len(text) < MAX_WORDS_CHARS
    if tag is None:
        return None if may_come and (not in_line or CLOSE_BEGUN.match(text, body)) else NoCall(tag_end)
    if not tag["close"] or text.count("`", body, tag.start()) % 2 or (in_line and tag.start() > body):
        return NoCall(tag_end)
    behind = text[tag.end() : MAX_WORDS_CHARS].lstrip(" \t")[:1]
    if in_line and behind not in ("\r", "\n", "<"):
        return None if may_come and not behind else NoCall(tag_end)
    return NoCall(
        tag.end(), "no JSON stands between its tags" if tag.start() > body else "nothing stands between its tags"
    )


def _after(pattern: re.Pattern[str], text: str, pos: int) -> int:
    found = pattern.match(text, pos)
    return found.end() if found else pos


# Strategy: quotes decide. A tag in a string is text, as in a note that holds a whole call, so a block ends at the first
# tag outside of its strings. But the block is broken, and it may be its quotes that are: so the first close tag in a
# string is remembered, as the place where the block has ended if it turns out to have no reading.


class BlockEnd:
    """Searches a body that arrives in pieces, each character once, for the start and the end of its close tag. Of the
    open tag of another block, which ends the body too, these are the same.

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

    def feed(self, text: str) -> tuple[int, int] | None:
        text, self._tail = self._tail + text, ""
        pos, end = 0, len(text)
        while token := _TOKEN.search(text, pos):
            self._pass(text[pos : token.start()])
            if token.lastgroup == "begun":
                end = token.start()
                break
            found = self._inside(token) if self._quote else self._outside(token)
            if isinstance(found, tuple):
                return found
            pos = found
        else:
            self._pass(text[pos:])
        self._offset += end
        self._tail = text[end:]
        return None

    def _pass(self, text: str) -> None:
        if not self._quote:
            self._before = text.rstrip(BLANKS)[-1:] or self._before

    # Each gives where to go on.

    def _outside(self, token: re.Match[str]) -> tuple[int, int] | int:
        kind, start, end = token.lastgroup, *token.span()
        if kind == "quote":
            opens = not self._markup and (token[0] == '"' or self._before in _BEFORE_STRING)
            self._quote = token[0] if opens else ""
            return end
        if kind == "escape":
            # JSON that is escaped as a whole: its quotes are none of those that end with a plain one. Taken for strings
            # they would hide the close tag of the block.
            return end if token[0][1] in "\"'\\" else start + 1
        # Escaped as in a string it is one only where a value has ended: the block may be a string without its quotes.
        if kind == "behind" and self._before not in _AFTER_VALUE:
            return start + 1
        closed = kind != "open"
        # Elements have an end of their own, so a block in between is part of a value, without quotes round it. JSON has
        # it in quotes.
        if self._depth if closed else self._markup:
            self._depth += -1 if closed else 1
            return end
        return self._offset + start, self._offset + (end if closed else start)

    def _inside(self, token: re.Match[str]) -> int:
        if token[0] == self._quote:
            self._quote, self._before = "", token[0]
        elif token["close"]:
            # The first one only: if the quotes mean nothing, it is there that the block ended, and what follows is
            # prose or other blocks.
            self.in_string = self.in_string or self._offset + token.end()
        return token.start() + 1 if token["open"] or token["behind"] else token.end()


class Collected(Struct, frozen=True):
    """The block ends after `text` and, if it is `closed`, its close `tag`. `rest` was not looked at.

    `in_string` is the end of the first close tag in `text + tag + rest` that seemed to stand in a string. One that is
    `too_long` goes on in `rest`.
    """

    text: str
    tag: str
    rest: str
    closed: bool
    in_string: int | None
    too_long: bool = False


class Body:
    """Takes text until the block ends. It may hold `max_chars`.

    If it begins with well-formed JSON and no tag follows that in time, the block ends there.
    `markup` says that it is made of elements.
    """

    def __init__(self, max_chars: int, *, markup: bool = False) -> None:
        self._max_chars = max_chars
        self._scanner: ValueScanner | None = None if markup else ValueScanner()
        self._whole_to: int | None = None  # where the JSON ends
        self._pieces: list[str] = []
        self._size = 0
        self._end = BlockEnd(markup=markup)

    def feed(self, text: str) -> Collected | None:
        """Where the block ends, if it does in this text."""
        if scanner := self._scanner:
            scanner.feed(text)
            end_of_json = self._size + len(text) - len(scanner.rest)
            if scanner.done and end_of_json <= self._max_chars:
                self._whole_to = end_of_json
            self._scanner = None if scanner.done or scanner.broken else scanner
        while True:
            limit = self._max_chars if self._whole_to is None else self._whole_to + MAX_TAIL_CHARS
            room = limit - self._size
            self._pieces.append(text[:room])
            self._size += len(self._pieces[-1])
            over = text[room:]
            if end := self._end.feed(self._pieces[-1]):
                body, (start, after) = "".join(self._pieces), end
                rest = body[after:] + over
                return Collected(body[:start], body[start:after], rest, start < after, self._end.in_string)
            if not over:
                return None
            body = "".join(self._pieces)
            if self._whole_to is None or not body[self._whole_to :].lstrip().startswith(_GOES_ON):
                return Collected(body, "", over, False, self._end.in_string, too_long=self._whole_to is None)
            text, self._whole_to = over, None

    def end(self) -> Collected:
        """No more text comes. What may be half a close tag is one."""
        body = "".join(self._pieces)
        at = body.rfind("<")
        end = at if at >= 0 and CLOSE_BEHIND_BEGUN.match(body, at) else len(body)
        return Collected(body[:end], body[end:], "", closed=False, in_string=self._end.in_string)
