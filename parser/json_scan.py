"""Follow one JSON value while its text arrives, strictly (RFC 8259), without building it.

Strategy: whatever has been released is the beginning of some well-formed value, so a later repair of the rest can only
extend it. So a token is released when it is whole, a comma together with the value behind it, and the quote that ends a
value together with what follows. Nothing is released from the first fault on.
"""

from __future__ import annotations

import re

from .beginnings import beginnings

# Levels. The readers behind this one are recursive: this deep they are far from where Python gives up.
MAX_DEPTH = 64
# Characters. A number, or the white space after a comma or a string, is held back until it is whole. What is longer
# than this breaks off, wherever the text was cut, so that holding back stays cheap.
MAX_HELD = 4096

# The white space of JSON (RFC 8259, section 2).
BLANKS = " \t\r\n"
SPACE = re.compile(f"[{BLANKS}]*")
ESCAPE = r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})'
# Every character of a string that stands for itself, and every whole escape. Possessive, as there is nothing to go back
# for and a string may be as long as an answer.
STRING_RUN = re.compile(rf'[^"\\\x00-\x1f]*+(?:{ESCAPE}[^"\\\x00-\x1f]*+)*')
# All that is held back within a string: half an escape may yet be a fault, and nothing of a fault is released.
ESCAPE_BEGUN = re.compile(beginnings(ESCAPE))
SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")
_HELD_SPACE = f"[{BLANKS}]{{0,{MAX_HELD - 1}}}"
# Wider than a scalar, so that `01` or `truex` is one word that is wrong, and not a right one with something behind it
# that a later text would have to take back.
_WORD = "[-+.0-9A-Za-z]"
# What a value begins with. `1` may become `12`, and `nul` may become `null`.
_VALUE_TOKEN = (
    rf'(?P<keyed>\{{")|(?P<object>\{{)|(?P<array>\[)|(?P<string>")'
    rf"|(?!{_WORD}{{{MAX_HELD + 1}}})(?P<scalar>(?:{SCALAR.pattern})(?=[^-+.0-9A-Za-z]))"
)
_WORD_BEGUN = rf"{_WORD}{{1,{MAX_HELD}}}\Z"


class _State:
    """What may come next: white space, or more of a string, and a token; `begun` is what of it is held back."""

    __slots__ = ("begun", "in_string", "released")

    def __init__(self, tokens: str, begun: str = "(?!)", *, in_string: bool = False) -> None:
        # It always matches: nothing at all, where a fault stands or the beginning of a token.
        self.released = re.compile(f"{STRING_RUN.pattern if in_string else SPACE.pattern}(?:{tokens}|)")
        self.begun = re.compile(f"{ESCAPE_BEGUN.pattern}|{begun}" if in_string else begun)
        self.in_string = in_string


# The quote of a key is released at once: no repair reads a key with a quote in it, so none can take it back.
_KEY = _State(rf'(?P<string>":[{BLANKS}]*")|(?P<colon>":)|(?P<key_end>")', in_string=True)
_FIRST_KEY = _State(r'(?P<key>")|(?P<close>\})')
_COLON = _State("(?P<colon>:)")
_VALUE = _State(_VALUE_TOKEN, _WORD_BEGUN)
_FIRST_VALUE = _State(rf"{_VALUE_TOKEN}|(?P<close>\])", _WORD_BEGUN)
# By what closes the container. A quote in a string that is not escaped ends it for the eye: `relaxed_json` may read the
# string as a longer one, which would take back the end that was told. So only what follows shows that it does.
_STRING = {
    "": _State('(?P<end>")', in_string=True),
    **{
        closer: _State(
            rf'(?P<close>"{_HELD_SPACE}\{closer})|(?P<end>"(?={_HELD_SPACE},))', rf'"{_HELD_SPACE}\Z', in_string=True
        )
        for closer in "}]"
    },
}
# A comma is passed only together with the token after it, which a comma cannot do without: `[1, 2,]` is repaired by
# leaving the last comma out, and had it been told, that would be another text.
_NEXT = {
    "}": _State(rf'(?P<close>\}})|,{_HELD_SPACE}(?P<key>")', rf",{_HELD_SPACE}\Z"),
    "]": _State(rf"(?P<close>\])|,{_HELD_SPACE}(?:{_VALUE_TOKEN})", rf",{_HELD_SPACE}(?:{_WORD}{{1,{MAX_HELD}}})?\Z"),
}


_OPENED = {"keyed": ("}", _KEY), "object": ("}", _FIRST_KEY), "array": ("]", _FIRST_VALUE)}
_BEHIND = {"key": _KEY, "key_end": _COLON, "colon": _VALUE}


class ValueScanner:
    """Scans one value. `feed` takes the next text and returns what of all text so far is now released.

    Once it is `done` or `broken`, `rest` is the text that was not released: what follows the value, or
    what starts with the token that broke it. `in_string` says that the last text was nothing but plain
    characters of a string: more of them would be released as they are.
    """

    __slots__ = ("_closers", "_held", "_state", "broken", "done", "in_string", "rest")

    def __init__(self) -> None:
        self.done = False
        self.broken = False
        self.in_string = False
        self.rest = ""
        self._closers: list[str] = []
        self._state = _VALUE
        self._held = ""

    def feed(self, text: str) -> str:
        if self._held:
            text, self._held = self._held + text, ""
        # Nearly every delta is the middle of a string. `isprintable` is stricter than JSON, which has U+007F stand for
        # itself: what it refuses only takes the longer way.
        elif self._state.in_string and '"' not in text and "\\" not in text and text.isprintable():
            self.in_string = True
            return text
        self.in_string = False
        pos, end = 0, len(text)
        while pos < end:
            found = self._state.released.match(text, pos)
            start, pos = pos, found.end() if found else pos
            if found is None or pos == start:
                if self._state.begun.match(text, pos):
                    self._held = text[pos:]
                    return text[:pos]
                self.broken = True
            elif kind := found.lastgroup:
                if state := _BEHIND.get(kind):
                    self._state = state
                elif not self._pass(kind):
                    pos, self.broken = after_space(text, start), True
            if self.done or self.broken:
                self.rest = text[pos:]
                return text[:pos]
        return text

    def _pass(self, kind: str) -> bool:
        """Go on behind a token that opens or ends something. False if that would be nested too deep."""
        closers = self._closers
        if kind == "string":
            self._state = _STRING[closers[-1] if closers else ""]
        elif opened := _OPENED.get(kind):
            if len(closers) == MAX_DEPTH:
                return False
            closer, self._state = opened
            closers.append(closer)
        else:
            # A value has ended.
            if kind == "close":
                closers.pop()
            self.done = not closers
            if closers:
                self._state = _NEXT[closers[-1]]
        return True


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
