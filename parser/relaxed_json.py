"""Write nearly-JSON as JSON: the text is copied, and only what has one reading is corrected.

Well-formed text comes back character for character, and so does the well-formed part of any other,
which is what lets a repaired call continue one that was reported while it was being written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .grammar import CLOSE, OPEN
from .json_scan import MAX_DEPTH, SCALAR, SCALAR_RUN, SPACE, STRING_RUN, after_space
from .rules import Rule

_WS = SPACE.pattern
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$-]*")
_KEY_AHEAD = re.compile(rf'(?:"(?:[^"\\]++|\\[\s\S])*+"|[A-Za-z_$][\w$-]*|\'[^\'\\\n]*\'){_WS}:')
_PYTHON_LITERALS = {"True": "true", "False": "false", "None": "null"}
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
# Quotes beside these may be the ends of strings after all.
_STRUCTURE = re.compile(r'"[ \t\r\n]*[:{\[]|[,{\[:][ \t\r\n]*"')
_DRIVE = re.compile(r"[A-Za-z]:\\")
_ESCAPED_LETTER = re.compile(r"(?<!\\)(?:\\\\)*\\[bfnrtu]")

# What shows that a quote ends its string, by where the string stands. In well-formed text it always does.
_ENDS_KEY = re.compile(rf"{_WS}:")
_ENDS_MEMBER = re.compile(
    rf"{_WS}(?:[}}\]]|\Z|//|/\*|{_KEY_AHEAD.pattern}|,{_WS}(?:[}}\]]|\Z|//|/\*|{_KEY_AHEAD.pattern}))"
)
_ENDS_ELEMENT = re.compile(
    rf"{_WS}(?:[}}\]]|\Z|//|/\*|,{_WS}(?:[\"'\[{{}}\]\-0-9]|\Z|//|/\*|(?:true|false|null|True|False|None)\b))"
)
_OBJECT_IN_QUOTES = re.compile(rf'"\{{{_WS}"{STRING_RUN.pattern}"{_WS}:')
_ENDS_ANYWHERE = re.compile("")


class UnreadableError(Exception):
    """The text has no reading, or more than one. The message is the reason."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """One value as strict JSON text, where it ended, and the rules that were used in order."""

    text: str
    end: int
    rules: tuple[Rule, ...]


def rewrite(text: str, pos: int = 0, *, closed: bool = True) -> Rewritten:
    """The JSON value that starts at `pos`. `closed` says that the text ends where its author ended it.

    Raises UnreadableError.
    """
    writer = _Writer(text, pos, closed=closed)
    writer.value(_ENDS_ANYWHERE)
    return Rewritten("".join(writer.out), writer.pos, tuple(writer.rules))


class _Writer:
    def __init__(self, text: str, pos: int, *, closed: bool) -> None:
        self.text = text
        self.pos = pos
        self.closed = closed
        self.out: list[str] = []
        self.rules: dict[Rule, None] = {}
        self.depth = 0

    def _use(self, rule: Rule) -> None:
        self.rules[rule] = None

    def _peek(self) -> str:
        return self.text[self.pos : self.pos + 1]

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.pos)
        if match is None:
            return ""
        self.pos = match.end()
        return match.group()

    def _blank(self) -> None:
        while True:
            self.out.append(self._take(SPACE))
            if self._peek() != "/" or not self._take(_COMMENT):
                return
            self._use(Rule.COMMENTS)

    def value(self, ends: re.Pattern[str]) -> None:
        self._blank()
        char = self._peek()
        if char == "{":
            self._object()
        elif char == "[":
            self._container("]", self._element)
        elif char == '"':
            self._string(ends)
        elif char == "'":
            self._single_quoted(ends)
        else:
            self._scalar()

    def _scalar(self) -> None:
        run = self._take(SCALAR_RUN)
        if not run:
            raise UnreadableError(
                f"{self._peek()!r} where a value should be" if self._peek() else "the JSON is cut off"
            )
        if run in _PYTHON_LITERALS:
            self._use(Rule.PYTHON_LITERALS)
            run = _PYTHON_LITERALS[run]
        elif SCALAR.fullmatch(run) is None:
            raise UnreadableError(f"{run[:40]!r} is no JSON value")
        self.out.append(run)

    def _object(self) -> None:
        if self.text.startswith("{", after_space(self.text, self.pos + 1)):
            self._deeper()
            self.pos += 1
            self._blank()
            self._use(Rule.DOUBLED_BRACES)
            self._object()
            self._blank()
            if self._peek() != "}":
                raise UnreadableError("an object where a key should be")
            self.pos += 1
            self.depth -= 1
            return
        self._container("}", self._member)

    def _container(self, closer: str, item: Callable[[], None]) -> None:
        """An object or array, from its opener on."""
        self._deeper()
        self.out.append(self._peek())
        self.pos += 1
        self._blank()
        if self._peek() != closer:
            item()
            self._blank()
            while self._comma(closer):
                item()
                self._blank()
        if self._peek() == closer:
            self.pos += 1
        elif self._peek():
            raise UnreadableError(f"{self._peek()!r} where a comma or {closer!r} should be")
        elif self.closed:
            self._use(Rule.MISSING_CLOSERS)
        else:
            raise UnreadableError("the JSON is cut off")
        self.out.append(closer)
        self.depth -= 1

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadableError("nested too deep")

    def _comma(self, closer: str) -> bool:
        """Pass the comma before a next item; False if there is no next item."""
        if self._peek() != ",":
            if closer == "}" and _KEY_AHEAD.match(self.text, self.pos):
                self._use(Rule.MISSING_COMMA)
                self.out.append(", ")
                return True
            return False
        self.pos += 1
        comma = len(self.out)
        self.out.append(",")
        self._blank()
        if self._peek() != closer:
            return True
        self._use(Rule.TRAILING_COMMA)
        self.out[comma] = ""
        return False

    def _element(self) -> None:
        self.value(_ENDS_ELEMENT)

    def _member(self) -> None:
        char = self._peek()
        if char == '"':
            self._string(_ENDS_KEY)
        elif char == "'":
            self._single_quoted(_ENDS_KEY)
        elif key := self._take(_IDENTIFIER):
            self._use(Rule.UNQUOTED_KEYS)
            self.out.append(f'"{key}"')
        else:
            raise UnreadableError(f"{char!r} where a key should be" if char else "the JSON is cut off")
        self._blank()
        if self._peek() != ":":
            raise UnreadableError("a key without a colon" if self._peek() else "the JSON is cut off")
        self.pos += 1
        self.out.append(":")
        self._blank()
        if not (self.depth == 1 and _OBJECT_IN_QUOTES.match(self.text, self.pos) and self._object_in_quotes()):
            self.value(_ENDS_MEMBER)

    def _object_in_quotes(self) -> bool:
        """The arguments of a call as an object in quotes, none of its own quotes escaped."""
        inner = _Writer(self.text, self.pos + 1, closed=False)
        try:
            inner.value(_ENDS_ANYWHERE)
        except UnreadableError:
            return False
        if not self.text.startswith('"', inner.pos) or not _ENDS_MEMBER.match(self.text, inner.pos + 1):
            return False
        self._use(Rule.UNESCAPED_OBJECT)
        self.rules |= inner.rules
        self.out += inner.out
        self.pos = inner.pos + 1
        return True

    def _string(self, ends: re.Pattern[str]) -> None:
        start = self.pos
        self.pos += 1
        self.out.append('"')
        inner_quotes = 0
        bad_escapes = False
        while True:
            self.out.append(self._take(STRING_RUN))
            char = self._peek()
            if not char:
                raise UnreadableError("a string does not end")
            if char == '"':
                if ends.match(self.text, self.pos + 1):
                    break
                if ends is _ENDS_KEY:
                    raise UnreadableError("a key without a colon")
                inner_quotes += 1
                self.out.append('\\"')
            elif char == "\\":
                bad_escapes = True
                self.out.append("\\\\")
            else:
                self._use(Rule.CONTROL_CHARACTERS)
                self.out.append(_ESCAPES.get(char) or f"\\u{ord(char):04x}")
            self.pos += 1
        self.pos += 1
        self.out.append('"')
        if inner_quotes:
            self._check_inner_quotes(start, inner_quotes)
        if bad_escapes:
            self._check_escapes(start)

    def _check_inner_quotes(self, start: int, count: int) -> None:
        written = self.text[start : self.pos]
        if count % 2 or _STRUCTURE.search(written[1:-1]) or OPEN.search(written) or CLOSE.search(written):
            raise UnreadableError("a quote inside a string is not escaped")
        self._use(Rule.INNER_QUOTES)

    def _check_escapes(self, start: int) -> None:
        """Doubling the backslash of `C:\\dir\\new` would keep the line break in it: that is a guess."""
        written = self.text[start : self.pos]
        if _DRIVE.search(written) and _ESCAPED_LETTER.search(written):
            raise UnreadableError("backslashes in a path are not escaped")
        self._use(Rule.INVALID_ESCAPES)

    def _single_quoted(self, ends: re.Pattern[str]) -> None:
        self._use(Rule.SINGLE_QUOTES)
        start = self.pos
        end = self.text.find("'", start + 1)
        while end >= 0 and _backslashes_before(self.text, end) % 2:
            end = self.text.find("'", end + 1)
        if end < 0 or not ends.match(self.text, end + 1):
            raise UnreadableError("a string in single quotes does not end")
        if OPEN.search(self.text, start, end) or CLOSE.search(self.text, start, end):
            raise UnreadableError("a tag in single quotes")
        inner = re.sub(r'\\.|"', _double_quoted, self.text[start + 1 : end], flags=re.DOTALL)
        strict = _Writer(f'"{inner}"', 0, closed=self.closed)
        strict.value(_ENDS_ANYWHERE)
        self.rules |= strict.rules
        self.out += strict.out
        self.pos = end + 1


def _double_quoted(match: re.Match[str]) -> str:
    return {'"': '\\"', "\\'": "'"}.get(match.group(), match.group())


def _backslashes_before(text: str, at: int) -> int:
    start = at
    while text[start - 1] == "\\":
        start -= 1
    return at - start
