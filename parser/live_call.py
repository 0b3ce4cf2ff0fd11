"""Read one call while it is being written, as long as it has the taught form: members that are strings or words, its
name, its arguments as an object at the end, and the close tag.

    "key": "7qhvxmrtbz", "name": "read_note", "arguments": {"path": "a.md"}}</tool_call>

A block that leaves this form is broken here. It may still be a call: `read_block` decides that when the block is whole.
"""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from .beginnings import growing
from .body import MAX_TAIL_CHARS
from .call_shape import beside_call, id_of
from .events import CallStarted, ParserEvent
from .grammar import CLOSE_TAG, KEY
from .json_scan import BLANKS, MAX_HELD, SCALAR, STRING_RUN, ValueScanner
from .json_text import decode_string
from .members import ARGUMENTS, IDS, NAME, PARALLEL, RESERVED, folded_key
from .placeholders import is_placeholder

# Strategy: what was told cannot be taken back. So at the first thing that could have another reading this stops, and
# nothing is lost: the block has the text from its start, `read_block` reads all of it, and what it finds must go on
# from what was told here.

_WS = r"[ \t\r\n]*+"
_STRING = f'"{STRING_RUN.pattern}"'
_MEMBER = rf'(?!"(?:{NAME}|{ARGUMENTS})"){_STRING}{_WS}:{_WS}(?:{_STRING}|[-+.0-9A-Za-z]++)'
_PAIR = re.compile(rf'"({STRING_RUN.pattern})"{_WS}:{_WS}({_STRING}|[-+.0-9A-Za-z]++)')
_KEY_FIRST = re.compile(rf'"{KEY}"{_WS}:{_WS}{_STRING}{_WS}(?:,{_WS}(?:"\w*)?)?')
# Members that most calls have.
_TAUGHT = frozenset({KEY, "type", *IDS})
# Characters. What is shorter than this is only looked at where its part may be whole.
SHORT = 64


class Part(Struct, frozen=True):
    """What a call goes on with. It is not whole before there are `least` of `char`: most deltas end nothing, and to
    count takes a third of a pattern's time. If it is `urgent`, a brace or a `<` is looked at all the same: arguments
    may begin there, or the block may end, also by a tag that stands where none can.
    """

    whole: re.Pattern[str]
    begun: re.Pattern[str]
    char: str
    least: int
    urgent: bool = True


# Up to the end of the name, with the quotes of the name, or of a key as well.
_NAMED = Part(*growing(rf'(?P<members>(?:{_WS}{_MEMBER}{_WS},)*){_WS}"{NAME}"{_WS}:{_WS}(?P<name>{_STRING})'), '"', 4)
_KEYED = replace(_NAMED, least=8)
# From there up to the arguments. What waits before them is another member.
_ARGUED = Part(*growing(rf'{_WS},{_WS}"{ARGUMENTS}"{_WS}:{_WS}(?=\{{)'), '"', 3)
# And from the arguments to the end of the block.
_END = rf"[{BLANKS}]{{0,{MAX_HELD - 1}}}\}}[{BLANKS}]{{0,{MAX_TAIL_CHARS}}}{CLOSE_TAG}"
_CLOSED = Part(*growing(_END), ">", 1, urgent=False)
PARTS = (_NAMED, _ARGUED, _CLOSED)
# A call that left the form goes on with nothing that is read here.
BROKEN = Part(*growing("(?!)"), "", 1)


class LiveCall:
    """One call, and the end of its block, from behind the `{` on. `feed` appends what became known to `events`;
    `tells`: arguments, too.

    `started` and the characters from `begins` to `told_to` are what was reported, or would be, of the `size` that were
    read. What there is of the next `part` is `held`; in arguments, which the `scanner` reads, there is no part. `rest`
    is what `feed` gave.
    """

    __slots__ = (
        "begins",
        "held",
        "index",
        "part",
        "rest",
        "scanner",
        "size",
        "started",
        "tells",
        "told_to",
    )

    def __init__(self, index: int, *, tells: bool = True) -> None:
        self.index = index
        self.tells = tells
        self.started: CallStarted | None = None
        self.size = 1  # with its brace
        self.begins = self.told_to = 0
        self.held = ""
        self.part: Part | None = _NAMED
        self.rest: str | None = None
        self.scanner = ValueScanner()

    def feed(self, text: str, events: list[ParserEvent]) -> str | None:
        """What stands behind the block, once that is whole; nothing if it is `BROKEN`. None: more of it has to come."""
        self.size += len(text)
        scanner = self.scanner
        while text:
            if part := self.part:
                text = self._next(part, text, events)
                continue
            if piece := scanner.feed(text):
                self.told_to += len(piece)
                if self.tells:
                    events.append(piece)
            # What came before the fault was told, in this delta or in an earlier one, and stays so.
            if scanner.broken:
                return self._break()
            if scanner.done:
                self.part = _CLOSED
            text = scanner.rest
        return self.rest

    def _next(self, part: Part, text: str, events: list[ParserEvent]) -> str:
        """Read the part that comes next. Returns what stands behind it and is still to be read."""
        text, self.held = self.held + text, ""
        if part is _NAMED and _KEY_FIRST.fullmatch(text):
            self.part, self.held = _KEYED, text
            return ""
        found = part.whole.match(text)
        # What is so long that waiting for the rest would cost more with each delta is none any more.
        if found is None and len(text) <= MAX_HELD and part.begun.match(text):
            self.held = text
            return ""
        if found is None or found.end() > MAX_HELD:
            return self._break()
        text = text[found.end() :]
        if part is _CLOSED:
            self.rest = text
            return ""
        if part is _ARGUED:
            # What opens the arguments is told at once, so it never waits.
            self.part = None
            self.begins = self.told_to = self.size - len(text)
            return text
        self.started = self._start(found["members"], found["name"])
        if self.started is None:
            return self._break()
        events.append(self.started)
        self.part = _ARGUED
        return text

    def _start(self, written: str, name: str) -> CallStarted | None:
        """The event for it, if it leaves one reading."""
        members: list[tuple[str, str]] = []
        for escaped, value in _PAIR.findall(written) if written else ():
            key = decode_string(escaped)
            # A key that stands twice, or `parameters` beside `arguments`: which of the two is meant is nobody's to
            # guess. `read_block` decides, and may still refuse.
            if key in dict(members) or (key not in _TAUGHT and folded_key(key) in RESERVED):
                return None
            if value[0] != '"' and SCALAR.fullmatch(value) is None:
                return None
            members.append((key, value))
        name = decode_string(name[1:-1])
        # Not the name of a call: it only holds some, or stands for any.
        if name == PARALLEL or not name.strip() or is_placeholder(name):
            return None
        if not members:
            return CallStarted(self.index, name, None)
        return CallStarted(self.index, name, id_of(members), beside_call(members))

    def _break(self) -> str:
        self.part, self.rest = BROKEN, ""
        return self.rest
