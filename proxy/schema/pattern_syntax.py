"""Reads a regular expression of ECMA-262, as schemas have them, into a tree.

What Python writes in another way, and nobody means otherwise, is read as well: `(?P<name>`, a leading `(?i)`, `\\A` and
`\\Z`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial

# Characters of a pattern.
LONGEST = 1_000

# Groups in one another.
MAX_DEPTH = 50

# Characters of a range that is kept as a set; longer ones are compared with.
WRITTEN_OUT = 256

_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_DIGITS = frozenset("0123456789")
_LINE_ENDS = frozenset("\n\r\u2028\u2029")
_CONTROLS = {"t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "0": "\0"}
_COUNT = re.compile(r"\{(\d{1,9})(?:(,)(\d{1,9})?)?\}")
_NAME = re.compile(r"P?<([^\W\d]\w*)>")
_HEXADECIMAL = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}")
_LOW_SURROGATE = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_PROPERTY = re.compile(r"[pP]\{(?:(?:gc|General_Category)=)?(\w+)\}")

# General categories, in long and in short. Scripts and other properties are not in Python's tables.
_CATEGORIES = {
    "Letter": "L", "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll", "Mark": "M", "Number": "N",
    "Decimal_Number": "Nd", "Punctuation": "P", "Symbol": "S", "Separator": "Z", "Space_Separator": "Zs", "Other": "C",
}  # fmt: skip
_CATEGORY = re.compile(r"L[ulmot]?|M[nce]?|N[dlo]?|P[cdsefio]?|S[mcko]?|Z[slp]?|C[cfson]?")


class PatternUnusableError(Exception):
    """No regular expression, or one with something in it that takes more than linear time, or is too large."""


Test = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class OneOf:
    """A character that is one of these or passes a test, or that does not, when `negated`."""

    characters: frozenset[str]
    tests: tuple[Test, ...] = ()
    negated: bool = False

    def takes(self, character: str) -> bool:
        return (character in self.characters or any(test(character) for test in self.tests)) != self.negated


@dataclass(frozen=True, slots=True)
class InRow:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Either:
    forms: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    """`most` is None for any number. Whether it is greedy is of no matter to whether there is a match."""

    part: Node
    least: int
    most: int | None


class Place(Enum):
    START = auto()
    END = auto()
    BOUNDARY = auto()
    AHEAD = auto()
    BEHIND = auto()


@dataclass(frozen=True, slots=True)
class Assertion:
    """Something about a place between characters. `part` is what stands ahead or behind."""

    place: Place
    part: Node | None = None
    negated: bool = False


Node = OneOf | InRow | Either | Repeated | Assertion

_PLACES = {
    "^": Assertion(Place.START),
    "$": Assertion(Place.END),
    r"\A": Assertion(Place.START),
    r"\Z": Assertion(Place.END),
    r"\z": Assertion(Place.END),
    r"\b": Assertion(Place.BOUNDARY),
    r"\B": Assertion(Place.BOUNDARY, negated=True),
}
_LOOKS = {
    "?=": (Place.AHEAD, False),
    "?!": (Place.AHEAD, True),
    "?<=": (Place.BEHIND, False),
    "?<!": (Place.BEHIND, True),
}


def is_word(character: str) -> bool:
    return character in _WORD


def _is_space(character: str) -> bool:
    return character in "\t\n\v\f\r \ufeff" or unicodedata.category(character) in {"Zs", "Zl", "Zp"}


_CLASSES: dict[str, Test] = {"d": _DIGITS.__contains__, "w": is_word, "s": _is_space}


def _not(test: Test, character: str) -> bool:
    return not test(character)


def _in_any_case(test: Test, character: str) -> bool:
    forms = (character, character.lower(), character.upper())
    return any(test(form) for form in forms if len(form) == 1)


def _between(first: str, last: str, character: str) -> bool:
    return first <= character <= last


def _in_category(category: str, character: str) -> bool:
    return unicodedata.category(character).startswith(category)


def read_pattern(text: str) -> Node:
    """Raises `PatternUnusableError`."""
    if len(text) > LONGEST:
        raise PatternUnusableError
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._any_case = text.startswith("(?i)")
        self._text = text
        self._at = 4 if self._any_case else 0
        self._depth = 0

    def read(self) -> Node:
        node = self._either()
        if self._at < len(self._text):
            raise PatternUnusableError
        return node

    def _take(self, text: str) -> bool:
        found = self._text.startswith(text, self._at)
        if found:
            self._at += len(text)
        return found

    def _next(self) -> str:
        if self._at == len(self._text):
            raise PatternUnusableError
        self._at += 1
        return self._text[self._at - 1]

    def _matched(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        found = expression.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
        return found

    def _either(self) -> Node:
        forms = [self._in_row()]
        while self._take("|"):
            forms.append(self._in_row())
        return Either(tuple(forms)) if len(forms) > 1 else forms[0]

    def _in_row(self) -> Node:
        parts: list[Node] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            part = self._one()
            parts.append(part if isinstance(part, Assertion) else self._repeated(part))
        # An assertion in a group may be repeated, another may not.
        return InRow(tuple(parts)) if len(parts) != 1 or isinstance(parts[0], Assertion) else parts[0]

    def _repeated(self, part: Node) -> Node:
        if self._take("*"):
            counts: tuple[int, int | None] = (0, None)
        elif self._take("+"):
            counts = (1, None)
        elif self._take("?"):
            counts = (0, 1)
        elif (found := self._matched(_COUNT)) is not None:
            least, comma, most = found.groups()
            counts = (int(least), int(most) if most else None if comma else int(least))
            if counts[1] is not None and counts[1] < counts[0]:
                raise PatternUnusableError
        else:
            return part
        self._take("?")
        return Repeated(part, *counts)

    def _one(self) -> Node:
        for written, place in _PLACES.items():
            if self._take(written):
                return place
        match self._next():
            case "(":
                return self._group()
            case "[":
                return self._class()
            case ".":
                return OneOf(_LINE_ENDS, negated=True)
            case "*" | "+" | "?":
                raise PatternUnusableError
            case "{" if _COUNT.match(self._text, self._at - 1):
                raise PatternUnusableError
            case "\\":
                return self._one_of([self._escape()])
            case character:
                return self._one_of([character])

    def _group(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise PatternUnusableError
        look = next((look for written, look in _LOOKS.items() if self._take(written)), None)
        if look is None and self._take("?") and not self._take(":") and self._matched(_NAME) is None:
            raise PatternUnusableError
        inner = self._either()
        if not self._take(")"):
            raise PatternUnusableError
        self._depth -= 1
        return inner if look is None else Assertion(look[0], inner, look[1])

    def _class(self) -> Node:
        negated = self._take("^")
        members: list[str | Test] = []
        while not self._take("]"):
            first = self._member()
            if not self._text.startswith("-", self._at) or self._text.startswith("-]", self._at):
                members.append(first)
                continue
            self._at += 1
            last = self._member()
            if not isinstance(first, str) or not isinstance(last, str):  # as in [\w-.], where the hyphen is itself
                members += [first, "-", last]
            elif first > last:
                raise PatternUnusableError
            elif ord(last) - ord(first) < WRITTEN_OUT:
                members += map(chr, range(ord(first), ord(last) + 1))
            else:
                members.append(partial(_between, first, last))
        return self._one_of(members, negated=negated)

    def _one_of(self, members: Sequence[str | Test], *, negated: bool = False) -> OneOf:
        characters = {each for each in members if isinstance(each, str)}
        tests = [each for each in members if not isinstance(each, str)]
        if self._any_case:
            characters |= {other for each in characters for other in (each.lower(), each.upper())}
            tests = [partial(_in_any_case, test) for test in tests]
        return OneOf(frozenset(characters), tuple(tests), negated)

    def _member(self) -> str | Test:
        character = self._next()
        if character != "\\":
            return character
        return "\b" if self._take("b") else self._escape()

    def _escape(self) -> str | Test:
        if (found := self._matched(_HEXADECIMAL)) is not None:
            return self._character(int(next(filter(None, found.groups())), 16))
        if (found := self._matched(_PROPERTY)) is not None:
            category = _CATEGORIES.get(found[1], found[1])
            if _CATEGORY.fullmatch(category) is None:
                raise PatternUnusableError
            test: Test = partial(_in_category, category)
            return partial(_not, test) if found[0].startswith("P") else test
        character = self._next()
        if character.lower() in _CLASSES:
            test = _CLASSES[character.lower()]
            return test if character.islower() else partial(_not, test)
        if character == "c" and (letter := self._next()) in _WORD and letter.isalpha():
            return chr(ord(letter) % 32)
        if character in _CONTROLS and not (character == "0" and self._text[self._at : self._at + 1].isdigit()):
            return _CONTROLS[character]
        if character.isalnum():  # a reference to a group, or what is another thing elsewhere
            raise PatternUnusableError
        return character

    def _character(self, code: int) -> str:
        """Two halves of a pair are one character."""
        if 0xD800 <= code < 0xDC00 and (low := self._matched(_LOW_SURROGATE)) is not None:
            code = 0x10000 + (code - 0xD800) * 0x400 + int(low[1], 16) - 0xDC00
        if 0xD800 <= code < 0xE000 or code > 0x10FFFF:
            raise PatternUnusableError
        return chr(code)
