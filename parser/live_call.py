"""Read one call while it is being written, as long as its block is well-formed.

A block that leaves the strict shape is broken here, which says nothing about whether it is a call:
`read_block` decides that when all of it is there.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import NamedTuple

from .beginnings import beginnings
from .events import CallStarted, ParserEvent
from .grammar import KEY
from .json_scan import MAX_HELD, STRING_RUN, ValueScanner, after_space
from .json_text import StringDecoder, ambiguity, decode_string
from .members import ARGUMENTS, IDS, NAME, PARALLEL, is_reserved
from .placeholders import is_placeholder

_RUN = STRING_RUN.pattern
_WS = r"[ \t\r\n]*+"
# The way to a value: a comma unless it is the first, the key, the colon, and the sight of what follows.
MEMBER = re.compile(rf'{_WS}(,?){_WS}"({_RUN})"{_WS}:{_WS}(?=[^ \t\r\n])')
MEMBER_BEGUN = re.compile(beginnings(MEMBER.pattern))
# The two that every call has, as they are taught, with its key or without one: one match for what else takes three. A
# name with an escape in it goes the longer way.
_NAMED = re.compile(
    rf'{_WS}(?:"{KEY}"{_WS}:{_WS}("[^"\\\x00-\x1f]*"){_WS},{_WS})?"{NAME}"{_WS}:{_WS}"([^"\\\x00-\x1f]+)"'
)
_KEY_FIRST = f'"{KEY}"'
_ARGUED = re.compile(rf'{_WS},{_WS}"{ARGUMENTS}"{_WS}:{_WS}(?=\{{)')
OBJECT_END = re.compile(rf"{_WS}}}")
_STRING = re.compile(rf'"({_RUN})"')
_STRING_BEGUN = re.compile(beginnings(_STRING.pattern))
# Characters. What is shorter than this is only looked at when it holds the quotes that are waited for: those of a name,
# those of a key and a name, or those of a member and the one that opens its value.
SHORT = 64
_NAMED_QUOTES, _KEYED_QUOTES, _MEMBER_QUOTES = 4, 8, 3
# What is looked at in full all the same: where arguments begin, and where the block may end, which is also the `<` of a
# tag that stands where none can.
_URGENT = re.compile("[{}<]")


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


# Strategy: only the strict shape is told while it is written, as what was told cannot be taken back. At the first thing
# that could have another reading this stops, and nothing is lost: the block has the text from its start, `read_block`
# reads all of it, and what it finds must go on from what was told here.


class _At(Enum):
    """Where in the object the next character stands.

    FIRST --key--> NAME, ARGUMENTS, ENCODED, VALUE --its end--> MEMBER --key--> NAME, ...
    MEMBER --"}"--> done
    """

    FIRST = auto()
    MEMBER = auto()
    NAME = auto()
    ARGUMENTS = auto()  # an object
    ENCODED = auto()  # a string that holds an object
    VALUE = auto()  # of any other key


# Looking a member up in its class is a Python call on 3.11, and this is the hot path.
_FIRST, _IN_MEMBER, _IN_NAME, _IN_ARGUMENTS, _IN_ENCODED, _IN_VALUE = _At


class Header(NamedTuple):
    """What stands in an object before a value: its key, and where the value begins. Without a key, the object ends."""

    key: str | None
    end: int


class NoHeader(NamedTuple):
    """There is none, and none may come of it."""


def read_header(text: str, *, first: bool) -> Header | NoHeader | None:
    """The header at the start of `text`, with a comma unless it is the `first`; None if it may only be begun."""
    # A member is there with its colon, the end with its brace: without them, do not look for either.
    if ":" in text and (match := MEMBER.match(text)):
        fits = bool(match[1]) is not first and match.end() <= MAX_HELD
        return Header(decode_string(match[2]), match.end()) if fits else NoHeader()
    if "}" in text and (match := OBJECT_END.match(text)):
        return Header(None, match.end()) if match.end() <= MAX_HELD else NoHeader()
    # What is so long that waiting for the rest would cost more with each delta is none any more.
    return None if len(text) <= MAX_HELD and MEMBER_BEGUN.match(text) else NoHeader()


class LiveCall:
    """One call from behind the `{` on. `feed` appends what became known to `events`; `tells`: arguments, too.
    `in_sentence`: one whose name is a placeholder is broken.

    `in_string` says that more characters of the same string would only be reported as they are. `arguments` is
    what was reported of them, or would be, and before the name is known what will be. Once the call is `done`,
    `rest` is the text after the object.

    Up to so many `quotes` a header says nothing, if there are any to wait for: what there is of it is `held`.
    """

    __slots__ = (
        "_at",
        "_encoded",
        "_in_sentence",
        "_key",
        "_patience",
        "_scanner",
        "_seen",
        "_value",
        "arguments",
        "broken",
        "done",
        "extra",
        "held",
        "id",
        "in_string",
        "index",
        "name",
        "quotes",
        "rest",
        "tells",
    )

    def __init__(self, index: int, *, tells: bool = True, in_sentence: bool = False) -> None:
        self.index = index
        self._in_sentence = in_sentence
        self.tells = tells
        self.done = False
        self.broken = False
        self.in_string = False
        self.rest = ""
        self.name: str | None = None
        self.id: str | None = None
        self.arguments: list[str] = []
        self.extra: list[tuple[str, str]] = []
        self._at = _FIRST
        self.held = ""
        self.quotes = _NAMED_QUOTES
        self._patience = SHORT
        self._key = ""
        self._seen: set[str] = set()
        self._scanner: ValueScanner | None = None
        self._encoded: EncodedObject | None = None
        self._value: list[str] = []

    def feed(self, text: str, events: list[ParserEvent]) -> bool:
        """Read the text. False if the call is done or broken."""
        while text:
            if self._scanner is not None:
                text = self._scan(self._scanner, text, events)
                continue
            text = self.held + text
            # A cheap look first, as most deltas end nothing.
            if len(text) < self._patience and text.count('"') < self.quotes and not _URGENT.search(text):
                self.held = text
                return True
            self.held = ""
            text = self._header(text, events)
        return not (self.done or self.broken)

    def end(self, events: list[ParserEvent]) -> None:
        """No more text comes: look at what was only held."""
        text, self.held = self.held, ""
        # What was too little to be looked at is looked at now: it may be a fault, and then the block is read as a
        # whole.
        self._patience = 0
        self.feed(text, events)

    def _header(self, text: str, events: list[ParserEvent]) -> str:
        """Read up to the next value that is scanned, or to the end of the object."""
        if self._at is _FIRST:
            if self.quotes == _NAMED_QUOTES and len(text) < self._patience and text.startswith(_KEY_FIRST):
                self.quotes = _KEYED_QUOTES
                if text.count('"') < _KEYED_QUOTES and not _URGENT.search(text):
                    self.held = text
                    return ""
            if (named := _NAMED.match(text)) and named.end() <= MAX_HELD:
                self._seen.add(NAME)
                if named[1]:
                    self._seen.add(KEY)
                    self.extra.append((KEY, named[1]))
                return self._set_name(named[2], text[named.end() :], events)
        elif self._at is _IN_NAME:
            return self._read_name(text, events)
        elif (argued := _ARGUED.match(text)) and ARGUMENTS not in self._seen and argued.end() <= MAX_HELD:
            self._seen.add(ARGUMENTS)
            self._at, self._scanner, self.quotes = _IN_ARGUMENTS, ValueScanner(), 0
            return text[argued.end() :]
        return self._member(text)

    def _member(self, text: str) -> str:
        match read_header(text, first=self._at is _FIRST):
            case Header(None, end):
                # An object, but not yet a call in the strict shape: the arguments may have another name, or be left
                # out.
                done = self.name is not None and ARGUMENTS in self._seen
                return self._end(text[end:]) if done else self._break()
            case Header(str(key), end):
                # A key that stands twice, or `parameters` beside `arguments`: which of the two is meant is nobody's to
                # guess, and one of them may be told already. `read_block` decides, and may still refuse.
                if key in self._seen or is_reserved(key):
                    return self._break()
                self._seen.add(key)
                return self._value_of(key, text, end)
            case None:
                self.held = text
                return ""
            case _:
                return self._break()

    def _end(self, rest: str) -> str:
        # What was told of it stays told; `read_block` refuses the block.
        if ambiguity("".join(self.arguments)):
            return self._break()
        self.done, self.rest, self.quotes = True, rest, 0
        return ""

    def _value_of(self, key: str, text: str, pos: int) -> str:
        first = text[pos]
        # A name is told with its quote, so it never waits.
        self.quotes = 0
        if key == NAME:
            self._at = _IN_NAME
            return text[pos:] if first == '"' else self._break()
        if key == ARGUMENTS:
            if first == "{":
                self._at = _IN_ARGUMENTS
            elif first == '"':
                # As on OpenAI's own wire, where arguments are the text of an object. A quote does not yet say that
                # there is one in the string: `EncodedObject` does.
                self._at, self._encoded = _IN_ENCODED, EncodedObject()
            else:
                return self._break()
        else:
            self._at, self._key, self._value = _IN_VALUE, key, []
        self._scanner = ValueScanner()
        return text[pos:]

    def _read_name(self, text: str, events: list[ParserEvent]) -> str:
        match = _STRING.match(text)
        if match is None and len(text) <= MAX_HELD and _STRING_BEGUN.match(text):
            self.held = text
            return ""
        if match is None or match.end() > MAX_HELD:
            return self._break()
        return self._set_name(decode_string(match.group(1)), text[match.end() :], events)

    def _set_name(self, name: str, rest: str, events: list[ParserEvent]) -> str:
        # Not the name of a call: it only holds some, or stands for any.
        if name == PARALLEL or not name.strip() or (self._in_sentence and is_placeholder(name)):
            return self._break()
        self.name = name
        self._at, self.quotes = _IN_MEMBER, _MEMBER_QUOTES
        events.append(CallStarted(self.index, name, self.id, tuple(self.extra)))
        # They stood before the name, and nobody could be told of them without it.
        if self.arguments and self.tells:
            events.append("".join(self.arguments))
        return rest

    def _scan(self, scanner: ValueScanner, text: str, events: list[ParserEvent]) -> str:
        piece = scanner.feed(text)
        if self._at is _IN_VALUE:
            # Of no use to anybody before the call is whole, so it is kept and not told.
            self._value.append(piece)
        else:
            if self._encoded is not None:
                piece = self._encoded.feed(piece, final=scanner.done)
                if self._encoded.broken:
                    self.broken = True
            if piece:
                self.arguments.append(piece)
                if self.name is not None and self.tells:
                    events.append(piece)
        # What came before the fault was told, in this delta or in an earlier one, and stays so.
        if self.broken or scanner.broken:
            return self._break()
        if scanner.done:
            self._end_value()
            rest = scanner.rest
            # The usual end of a call is settled here, without the way through the patterns.
            if rest[:1] == "}" and self.name is not None and ARGUMENTS in self._seen:
                return self._end(rest[1:])
            return rest
        # Only here is a character told as it came: in an encoded object it has to be decoded, in other members it is
        # not told at all, and without a name it has to wait.
        self.in_string = self._at is _IN_ARGUMENTS and self.name is not None and scanner.in_string
        return ""

    def _end_value(self) -> None:
        if self._at is _IN_VALUE:
            value = "".join(self._value)
            if self._key in IDS and value[0] == '"':
                # `call_id` wins, wherever it stands: on OpenAI's wire it is what results refer to, and `id` is the
                # item's own.
                if self.id is None or self._key == IDS[0]:
                    self.id = decode_string(value[1:-1])
            else:
                self.extra.append((self._key, value))
        self._at, self.quotes = _IN_MEMBER, _MEMBER_QUOTES
        self._scanner = self._encoded = None
        self.in_string = False

    def _break(self) -> str:
        self.broken, self.in_string, self.quotes = True, False, 0
        return ""
