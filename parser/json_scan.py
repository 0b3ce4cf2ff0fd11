"""Follow one JSON value while its text arrives, strictly (RFC 8259), without building it.

Strategy: whatever has been released is the beginning of some well-formed value, so a later repair of
what follows can only extend it. Therefore a token is released when it is whole, a comma together with
what it separates, the quote that ends a value with what follows it, and nothing from the first fault on.
"""

from __future__ import annotations

import re
from enum import Enum, auto

from .beginnings import beginnings

# Levels. The readers behind this one are recursive: this deep they are far from where Python gives up.
MAX_DEPTH = 64
# Characters. A number, or the white space after a comma or a string, is held back until it is whole. What is longer
# than this breaks off, wherever the text was cut, so that holding back stays cheap.
MAX_HELD = 4096

# The white space of JSON (RFC 8259, section 2).
BLANKS = " \t\r\n"
_BLANK_OR_END = ("", *BLANKS)
SPACE = re.compile(f"[{BLANKS}]*")
_ESCAPE = r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})'
# Every character of a string that stands for itself, and every whole escape. Possessive, as there is nothing to go back
# for and a string may be as long as an answer.
STRING_RUN = re.compile(rf'[^"\\\x00-\x1f]*+(?:{_ESCAPE}[^"\\\x00-\x1f]*+)*+')
# All that is held back within a string: half an escape may yet be a fault, and nothing of a fault is released.
ESCAPE_BEGUN = re.compile(beginnings(_ESCAPE))
# Wider than a scalar, so that `01` or `truex` is one word that is wrong, and not a right one with something behind it
# that a later text would have to take back.
SCALAR_RUN = re.compile(r"[-+.0-9A-Za-z]+")
SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")


class _Expect(Enum):
    """What may come next, outside of strings.

    VALUE --"[{"--> FIRST_VALUE, FIRST_KEY
    FIRST_KEY, KEY --string--> COLON --":"--> VALUE
    VALUE, FIRST_VALUE --scalar, string, closer--> NEXT
    NEXT --","--> KEY or VALUE     NEXT --closer--> NEXT, or done when it was the outermost
    """

    VALUE = auto()
    FIRST_VALUE = auto()
    FIRST_KEY = auto()
    KEY = auto()
    COLON = auto()
    NEXT = auto()


# Looking a member up in its class is a Python call on 3.11, and this is the hot path.
_VALUE, _FIRST_VALUE, _FIRST_KEY, _KEY, _COLON, _NEXT = _Expect


class ValueScanner:
    """Scans one value. `feed` takes the next text and returns what of all text so far is now released.

    Once it is `done` or `broken`, `rest` is the text that was not released: what follows the value, or
    what starts with the token that broke it. `in_string` says that the last text was nothing but plain
    characters of a string: more of them would be released as they are.
    """

    __slots__ = ("_closers", "_expect", "_held", "_in_string", "broken", "done", "in_string", "rest")

    def __init__(self) -> None:
        self.done = False
        self.broken = False
        self.in_string = False
        self.rest = ""
        self._in_string = False
        self._closers: list[str] = []
        self._expect = _VALUE
        self._held = ""

    def feed(self, text: str) -> str:
        if self._held:
            text, self._held = self._held + text, ""
        # Nearly every delta is the middle of a string. `isprintable` is stricter than JSON, which has U+007F stand for
        # itself: what it refuses only takes the longer way.
        elif self._in_string and '"' not in text and "\\" not in text and text.isprintable():
            self.in_string = True
            return text
        self.in_string = False
        pos, end = 0, len(text)
        while pos < end:
            if self._in_string:
                pos, stop = self._string(text, pos)
            elif text[pos] in BLANKS:
                pos, stop = after_space(text, pos), False
            else:
                pos, stop = self._token(text, pos)
            if stop:
                if self.done or self.broken:
                    self.rest = text[pos:]
                else:
                    self._held = text[pos:]
                return text[:pos]
        return text

    # Each of these gives where to go on, and whether to stop there: held, done or broken.

    def _string(self, text: str, pos: int) -> tuple[int, bool]:
        if text[pos] != '"':
            # Asked here and not by a function, as it is asked for every string.
            pos = run.end() if (run := STRING_RUN.match(text, pos)) else pos
            if pos == len(text):
                return pos, False
        if text[pos] == '"':
            return self._quote(text, pos)
        if ESCAPE_BEGUN.match(text, pos):
            return pos, True
        return self._break(pos)

    def _quote(self, text: str, pos: int) -> tuple[int, bool]:
        """Pass the quote that ends a string. In a container only what follows shows that it does."""
        # The quote of a key is released at once: no repair reads a key with a quote in it, so none can take it back.
        if self._expect is _KEY or self._expect is _FIRST_KEY:
            # The usual spelling of what comes next saves three more steps.
            if text.startswith('": "', pos):
                self._expect = _VALUE
                return pos + 4, False
            self._in_string = False
            self._expect = _COLON
            return pos + 1, False
        if self._closers:
            if text.startswith('"}', pos) and self._closers[-1] == "}":
                self._in_string = False
                return self._close(pos + 1)
            after = pos + 1
            if text[after : after + 1] in _BLANK_OR_END:
                after = after_space(text, after)
                if after - pos > MAX_HELD:
                    return self._break(pos)
                if after == len(text):
                    return pos, True
            # A quote in a string that is not escaped. `relaxed_json` may read the string as a longer one, which would
            # take back the end that was told.
            if text[after] != "," and text[after] != self._closers[-1]:
                return self._break(pos)
        self._in_string = False
        return self._end_value(pos + 1)

    def _token(self, text: str, pos: int) -> tuple[int, bool]:
        char = text[pos]
        expect = self._expect
        if expect is _VALUE or expect is _FIRST_VALUE:
            return self._value(text, pos, char)
        if expect is _NEXT:
            if char == ",":
                return self._comma(text, pos)
            if char == self._closers[-1]:
                return self._close(pos)
        elif expect is _COLON:
            if char == ":":
                self._expect = _VALUE
                return pos + 1, False
        elif char == '"':
            self._in_string = True
            return pos + 1, False
        elif char == "}" and expect is _FIRST_KEY:
            return self._close(pos)
        return self._break(pos)

    def _value(self, text: str, pos: int, char: str) -> tuple[int, bool]:
        if char == '"':
            self._in_string = True
            return pos + 1, False
        if char == "{":
            if text.startswith('{"', pos) and len(self._closers) < MAX_DEPTH:
                self._closers.append("}")
                self._expect, self._in_string = _KEY, True
                return pos + 2, False
            return self._open("}", _FIRST_KEY, pos)
        if char == "[":
            return self._open("]", _FIRST_VALUE, pos)
        if char == "]" and self._expect is _FIRST_VALUE:
            return self._close(pos)
        # Everything else is a word, or a fault at its first character.
        return self._scalar(text, pos)

    def _open(self, closer: str, expect: _Expect, pos: int) -> tuple[int, bool]:
        if len(self._closers) == MAX_DEPTH:
            return self._break(pos)
        self._closers.append(closer)
        self._expect = expect
        return pos + 1, False

    def _close(self, pos: int) -> tuple[int, bool]:
        self._closers.pop()
        return self._end_value(pos + 1)

    def _end_value(self, pos: int) -> tuple[int, bool]:
        self._expect = _NEXT
        self.done = not self._closers
        return pos, self.done

    def _scalar(self, text: str, pos: int) -> tuple[int, bool]:
        run = SCALAR_RUN.match(text, pos)
        if run is None or run.end() - pos > MAX_HELD:
            return self._break(pos)
        # `1` may become `12`, and `nul` may become `null`.
        if run.end() == len(text):
            return pos, True
        if SCALAR.fullmatch(run.group()) is None:
            return self._break(pos)
        return self._end_value(run.end())

    def _comma(self, text: str, pos: int) -> tuple[int, bool]:
        """Pass a comma only together with the token after it, which a comma cannot do without."""
        # `[1, 2,]` is repaired by leaving the last comma out: had it been told, that would be another text.
        after = after_space(text, pos + 1)
        if after - pos > MAX_HELD:
            return self._break(pos)
        if after == len(text):
            return pos, True
        self._expect = _KEY if self._closers[-1] == "}" else _VALUE
        after, stop = self._token(text, after)
        if not stop:
            return after, False
        # Held or broken with what follows it: the comma was not passed, and before it the next item still is to come.
        self._expect = _NEXT
        return pos, True

    def _break(self, pos: int) -> tuple[int, bool]:
        self.broken = True
        return pos, True


def end_of_value(text: str, pos: int) -> int | None:
    """Where the well-formed value ends that begins at `pos`, if one does. What follows the first fault is not read."""
    scanner = ValueScanner()
    # The decoder of the standard library reads all in front of a fault to tell its line.
    while pos < len(text) and not scanner.broken:
        scanner.feed(text[pos : pos + MAX_HELD])
        pos += MAX_HELD
        if scanner.done:
            return min(pos, len(text)) - len(scanner.rest)
    return None


def after_space(text: str, pos: int) -> int:
    """Where the white space that may stand at `pos` ends."""
    match = SPACE.match(text, pos)
    return pos if match is None else match.end()
