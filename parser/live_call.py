"""Read one call while it is being written, as long as it has the taught form: members that are strings or words, its
name, and its arguments as an object, which end it.

    "key": "7qhvxmrtbz", "name": "read_note", "arguments": {"path": "a.md"}

A block that leaves this form is broken here, which says nothing about whether it is a call: `read_block` decides that
when all of it is there.
"""

from __future__ import annotations

import re

from .beginnings import beginnings
from .call_shape import beside_call, id_of
from .events import CallStarted, ParserEvent
from .grammar import KEY
from .json_scan import BLANKS, MAX_HELD, SCALAR, STRING_RUN, ValueScanner
from .json_text import ambiguity, decode_string
from .members import ARGUMENTS, IDS, NAME, PARALLEL, is_reserved
from .placeholders import is_placeholder

# Strategy: what was told cannot be taken back. So at the first thing that could have another reading this stops, and
# nothing is lost: the block has the text from its start, `read_block` reads all of it, and what it finds must go on
# from what was told here.

_WS = r"[ \t\r\n]*+"
_STRING = f'"{STRING_RUN.pattern}"'
_MEMBER = rf'(?!"(?:{NAME}|{ARGUMENTS})"){_STRING}{_WS}:{_WS}(?:{_STRING}|[-+.0-9A-Za-z]++)'
# What stands up to the end of the name, and from there up to the arguments.
_NAMED = rf'(?P<members>(?:{_WS}{_MEMBER}{_WS},)*+){_WS}"{NAME}"{_WS}:{_WS}(?P<name>{_STRING})'
_ARGUED = rf'{_WS},{_WS}"{ARGUMENTS}"{_WS}:{_WS}(?=\{{)'
_PARTS = [(re.compile(part), re.compile(beginnings(part))) for part in (_NAMED, _ARGUED)]
_PAIR = re.compile(rf'"({STRING_RUN.pattern})"{_WS}:{_WS}({_STRING}|[-+.0-9A-Za-z]++)')
_KEY_FIRST = f'"{KEY}"'
# Members that most calls have, and those that would stand twice if they were written with an escape.
_TAUGHT = frozenset({KEY, "type", *IDS})
_OURS = (NAME, ARGUMENTS)
# Characters. What is shorter than this is only looked at when it holds the quotes that are waited for: those of a name,
# those of a key and a name, or those of another key and the one that opens its value.
SHORT = 64
_NAMED_QUOTES, _KEYED_QUOTES, _OTHER_QUOTES = 4, 8, 3
# What is looked at in full all the same: where arguments begin, and where the block may end, which is also the `<` of a
# tag that stands where none can.
_URGENT = re.compile("[{}<]")


class LiveCall:
    """One call from behind the `{` on. `feed` appends what became known to `events`; `tells`: arguments, too.
    `in_sentence`: one whose name is a placeholder is broken.

    `in_string` says that more characters of the same string would only be reported as they are. `started` and
    `arguments` are what was reported, or would be.

    Up to so many `quotes` a part says nothing, if there are any to wait for: what there is of it is `held`.
    """

    __slots__ = (
        "_in_sentence",
        "_scanner",
        "arguments",
        "broken",
        "held",
        "in_string",
        "index",
        "quotes",
        "started",
        "tells",
    )

    def __init__(self, index: int, *, tells: bool = True, in_sentence: bool = False) -> None:
        self.index = index
        self.tells = tells
        self._in_sentence = in_sentence
        self.started: CallStarted | None = None
        self.arguments: list[str] = []
        self.broken = False
        self.in_string = False
        self.held = ""
        self.quotes = _NAMED_QUOTES
        self._scanner: ValueScanner | None = None

    def feed(self, text: str, events: list[ParserEvent]) -> str | None:
        """What stands behind the call, once it is whole. Else None: it is `broken`, or more of it has to come."""
        while text and not self.broken:
            if (scanner := self._scanner) is not None:
                return self._end(self.held + text) if scanner.done else self._scan(scanner, text, events)
            text = self.held + text
            # A cheap look first, as most deltas end nothing.
            if len(text) < SHORT and text.count('"') < self.quotes and not _URGENT.search(text):
                self.held = text
                return None
            self.held = ""
            text = self._next(text, events)
        return None

    def end(self, events: list[ParserEvent]) -> None:
        """No more text comes: look at what was only held."""
        # It may be a fault, and then the block is read as a whole.
        for _ in _PARTS:
            text, self.held, self.quotes = self.held, "", 0
            self.feed(text, events)

    def _next(self, text: str, events: list[ParserEvent]) -> str:
        """Read the part that comes next. Returns what stands behind it."""
        if self.quotes == _NAMED_QUOTES and len(text) < SHORT and text.startswith(_KEY_FIRST):
            self.quotes = _KEYED_QUOTES
            if text.count('"') < _KEYED_QUOTES and not _URGENT.search(text):
                self.held = text
                return ""
        whole, begun = _PARTS[self.started is not None]
        found = whole.match(text)
        # What is so long that waiting for the rest would cost more with each delta is none any more.
        if found is None and len(text) <= MAX_HELD and begun.match(text):
            self.held = text
            return ""
        if found is None or found.end() > MAX_HELD:
            return self._break()
        if self.started is None:
            self.started = self._start(found["members"], found["name"])
            if self.started is None:
                return self._break()
            events.append(self.started)
            self.quotes = _OTHER_QUOTES
        else:
            # What opens the arguments is told at once, so it never waits.
            self.quotes = 0
            self._scanner = ValueScanner()
        return text[found.end() :]

    def _start(self, written: str, name: str) -> CallStarted | None:
        """The event for it, if it leaves one reading."""
        members: list[tuple[str, str]] = []
        for escaped, value in _PAIR.findall(written) if written else ():
            key = decode_string(escaped)
            # A key that stands twice, or `parameters` beside `arguments`: which of the two is meant is nobody's to
            # guess. `read_block` decides, and may still refuse.
            if key in dict(members) or (key not in _TAUGHT and (key in _OURS or is_reserved(key))):
                return None
            if value[0] != '"' and SCALAR.fullmatch(value) is None:
                return None
            members.append((key, value))
        name = decode_string(name[1:-1])
        # Not the name of a call: it only holds some, or stands for any.
        if name == PARALLEL or not name.strip() or (self._in_sentence and is_placeholder(name)):
            return None
        if not members:
            return CallStarted(self.index, name, None)
        return CallStarted(self.index, name, id_of(members), beside_call(members))

    def _scan(self, scanner: ValueScanner, text: str, events: list[ParserEvent]) -> str | None:
        piece = scanner.feed(text)
        if piece:
            self.arguments.append(piece)
            if self.tells:
                events.append(piece)
        # What came before the fault was told, in this delta or in an earlier one, and stays so.
        if scanner.broken:
            self._break()
        elif scanner.done:
            self.in_string = False
            return self._end(scanner.rest)
        else:
            self.in_string = scanner.in_string
        return None

    def _end(self, text: str) -> str | None:
        """`text` follows the arguments. Returns what stands behind the brace of the call."""
        rest = text.lstrip(BLANKS)
        if not rest and len(text) < MAX_HELD:
            self.held = text
        # What was told of arguments with two readings stays told; `read_block` refuses the block.
        elif rest[:1] == "}" and len(text) - len(rest) < MAX_HELD and not ambiguity("".join(self.arguments)):
            return rest[1:]
        else:
            self._break()
        return None

    def _break(self) -> str:
        self.broken, self.in_string, self.quotes = True, False, 0
        return ""
