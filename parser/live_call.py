"""Read one call while it is being written, as long as it has the taught form: its name and other members that are
strings or words, then its arguments as an object, then such members again.

    "key": "7qhvxmrtbz", "name": "read_note", "arguments": {"path": "a.md"}, "id": "c1"}

A block that leaves this form is broken here, which says nothing about whether it is a call: `read_block` decides that
when all of it is there.
"""

from __future__ import annotations

import re

from .beginnings import beginnings
from .events import CallStarted, ParserEvent
from .grammar import KEY
from .json_scan import MAX_HELD, SCALAR, STRING_RUN, ValueScanner
from .json_text import ambiguity, decode_string
from .members import ARGUMENTS, IDS, NAME, PARALLEL, is_reserved
from .placeholders import is_placeholder

# Strategy: what was told cannot be taken back. So at the first thing that could have another reading this stops, and
# nothing is lost: the block has the text from its start, `read_block` reads all of it, and what it finds must go on
# from what was told here.

_WS = r"[ \t\r\n]*+"
_COMMA = f"{_WS},{_WS}"
_STRING = f'"{STRING_RUN.pattern}"'
_MEMBER = rf'(?!"(?:{NAME}|{ARGUMENTS})"){_STRING}{_WS}:{_WS}(?:{_STRING}|[-+.0-9A-Za-z]++)'
# What stands up to the end of the name, from there up to the arguments, and behind them.
_NAMED = rf'(?P<members>(?:{_WS}{_MEMBER}{_WS},)*+){_WS}"{NAME}"{_WS}:{_WS}(?P<name>{_STRING})'
_ARGUED = rf'(?P<members>(?:{_COMMA}{_MEMBER})*+){_COMMA}"{ARGUMENTS}"{_WS}:{_WS}(?=\{{)'
_ENDED = rf"(?P<members>(?:{_COMMA}{_MEMBER})*+){_WS}}}"
_PARTS = [(re.compile(part), re.compile(beginnings(part))) for part in (_NAMED, _ARGUED, _ENDED)]
_PAIR = re.compile(rf'"({STRING_RUN.pattern})"{_WS}:{_WS}({_STRING}|[-+.0-9A-Za-z]++)')
_KEY_FIRST = f'"{KEY}"'
# Members that most calls have, and those that would stand twice if they were written with an escape.
_TAUGHT = frozenset({KEY, "type", *IDS})
_OURS = (NAME, ARGUMENTS)
# Characters. What is shorter than this is only looked at when it holds the quotes that are waited for: those of a name,
# those of a key and a name, or those of a member and the one that opens its value.
SHORT = 64
_NAMED_QUOTES, _KEYED_QUOTES, _MEMBER_QUOTES = 4, 8, 3
# What is looked at in full all the same: where arguments begin, and where the block may end, which is also the `<` of a
# tag that stands where none can.
_URGENT = re.compile("[{}<]")


class LiveCall:
    """One call from behind the `{` on. `feed` appends what became known to `events`; `tells`: arguments, too.
    `in_sentence`: one whose name is a placeholder is broken.

    `in_string` says that more characters of the same string would only be reported as they are. `arguments` is
    what was reported of them, or would be. Once the call is `done`, `rest` is the text after the object.

    Up to so many `quotes` a part says nothing, if there are any to wait for: what there is of it is `held`.
    """

    __slots__ = (
        "_in_sentence",
        "_part",
        "_patience",
        "_scanner",
        "_seen",
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
        self.held = ""
        self.quotes = _NAMED_QUOTES
        self._patience = SHORT
        self._part = 0  # which of `_PARTS` comes next
        self._seen: set[str] = set()  # keys
        self._scanner: ValueScanner | None = None

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
            text = self._next(text, events)
        return not (self.done or self.broken)

    def end(self, events: list[ParserEvent]) -> None:
        """No more text comes: look at what was only held."""
        text, self.held = self.held, ""
        # What was too little to be looked at is looked at now: it may be a fault, and then the block is read as a
        # whole.
        self._patience = 0
        self.feed(text, events)

    def _next(self, text: str, events: list[ParserEvent]) -> str:
        """Read the part that comes next. Returns what stands behind it."""
        part = self._part
        if part == 0 and self.quotes == _NAMED_QUOTES and len(text) < self._patience and text.startswith(_KEY_FIRST):
            self.quotes = _KEYED_QUOTES
            if text.count('"') < _KEYED_QUOTES and not _URGENT.search(text):
                self.held = text
                return ""
        whole, begun = _PARTS[part]
        found = whole.match(text)
        # What is so long that waiting for the rest would cost more with each delta is none any more.
        if found is None and len(text) <= MAX_HELD and begun.match(text):
            self.held = text
            return ""
        if found is None or found.end() > MAX_HELD or not (found["members"] == "" or self._take(found["members"])):
            return self._break()
        self._part = part + 1
        rest = text[found.end() :]
        if part == 0:
            name = found["name"][1:-1]
            return self._set_name(decode_string(name) if "\\" in name else name, rest, events)
        # What opens the arguments is told at once, so it never waits.
        self.quotes = 0
        if part == 1:
            self._scanner = ValueScanner()
            return rest
        return self._end(rest)

    def _take(self, members: str) -> bool:
        """Keep what is neither name nor arguments. Whether it leaves one reading."""
        for written, value in _PAIR.findall(members):
            key = decode_string(written) if "\\" in written else written
            # A key that stands twice, or `parameters` beside `arguments`: which of the two is meant is nobody's to
            # guess, and one of them may be told already. `read_block` decides, and may still refuse.
            if key in self._seen or (key not in _TAUGHT and (key in _OURS or is_reserved(key))):
                return False
            self._seen.add(key)
            if value[0] != '"' and SCALAR.fullmatch(value) is None:
                return False
            if key not in IDS or value[0] != '"':
                self.extra.append((key, value))
            # `call_id` wins, wherever it stands: on OpenAI's wire it is what results refer to, and `id` is the item's
            # own.
            elif self.id is None or key == IDS[0]:
                self.id = decode_string(value[1:-1])
        return True

    def _set_name(self, name: str, rest: str, events: list[ParserEvent]) -> str:
        # Not the name of a call: it only holds some, or stands for any.
        if name == PARALLEL or not name.strip() or (self._in_sentence and is_placeholder(name)):
            return self._break()
        self.name = name
        self.quotes = _MEMBER_QUOTES
        events.append(CallStarted(self.index, name, self.id, tuple(self.extra)))
        return rest

    def _scan(self, scanner: ValueScanner, text: str, events: list[ParserEvent]) -> str:
        piece = scanner.feed(text)
        if piece:
            self.arguments.append(piece)
            if self.tells:
                events.append(piece)
        # What came before the fault was told, in this delta or in an earlier one, and stays so.
        if scanner.broken:
            return self._break()
        if not scanner.done:
            self.in_string = scanner.in_string
            return ""
        self._scanner, self.in_string, self.quotes = None, False, _MEMBER_QUOTES
        # The usual end of a call is settled here, without the way through the patterns.
        return self._end(scanner.rest[1:]) if scanner.rest[:1] == "}" else scanner.rest

    def _end(self, rest: str) -> str:
        # What was told of it stays told; `read_block` refuses the block.
        if ambiguity("".join(self.arguments)):
            return self._break()
        self.done, self.rest, self.quotes = True, rest, 0
        return ""

    def _break(self) -> str:
        self.broken, self.in_string, self.quotes = True, False, 0
        return ""
