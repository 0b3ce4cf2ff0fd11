"""Makes of a pattern a second one, which matches each beginning of its matches at the end of a text.

Text that may still become a tag is held back, so each pattern of a tag needs such a second one. Written by hand it
would say the same again in other words.
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

# Strategy: of `abc`, the text may end before `a`, or `a` stands there and it ends before `b`, and so on; within a
# repetition, after some whole rounds and the beginning of one more. Only the part of the syntax is known that is used.

_NOTHING = "(?!)"
_END = r"\Z"
_GROUP = re.compile(r"\((?:\?(?:P<(?P<name>\w+)>|P=(?P<reference>\w+)|(?P<look><?[=!])|:))?")
_ATOM = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\(?P<number>[1-9])|\\.|[^|()\[?*+]", re.DOTALL)
_TIMES = re.compile(r"(?:[*+?]|\{(?:\d*,)?(?P<most>\d*)\})(?P<kind>[+?]?)")


class _Part(Struct, frozen=True):
    """`whole` matches it; `begun` what it begins with, up to the end of the text, but not all of it."""

    whole: str
    begun: str


class _Reader:
    """Reads a pattern. What a reference refers to is taken for anything that its group matches."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self.pos = 0
        self._groups: dict[str, _Part] = {}
        self._count = 0

    def choice(self) -> _Part:
        parts = [self._sequence()]
        while self._pattern.startswith("|", self.pos):
            self.pos += 1
            parts.append(self._sequence())
        if len(parts) == 1:
            return parts[0]
        return _Part(f"(?:{'|'.join(part.whole for part in parts)})", f"(?:{'|'.join(part.begun for part in parts)})")

    def _sequence(self) -> _Part:
        parts: list[_Part] = []
        while self.pos < len(self._pattern) and self._pattern[self.pos] not in "|)":
            parts.append(self._times(self._one()))
        begun = _NOTHING
        for part in reversed(parts):
            begun = f"(?:{part.begun}|{part.whole}{begun})" if begun != _NOTHING else part.begun
        return _Part("".join(part.whole for part in parts), begun)

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        if found := pattern.match(self._pattern, self.pos):
            self.pos = found.end()
        return found

    def _one(self) -> _Part:
        if group := self._take(_GROUP):
            return self._group(group)
        atom = self._take(_ATOM)
        if atom is None:
            raise ValueError(f"no pattern: {self._pattern!r}")
        return self._groups[atom["number"]] if atom["number"] else _Part(atom[0], _END)

    def _group(self, group: re.Match[str]) -> _Part:
        if group[0] == "(" or group["name"]:
            self._count += 1
        number = str(self._count)
        inner = self.choice()
        if not self._pattern.startswith(")", self.pos):
            raise ValueError(f"no pattern: {self._pattern!r}")
        self.pos += 1
        if group["reference"]:
            return self._groups[group["reference"]]
        if look := group["look"]:
            return _Part(f"(?{look}{inner.whole})", inner.begun if look == "=" else _NOTHING)
        part = _Part(f"(?:{inner.whole})", inner.begun)
        if group[0] != "(?:":
            self._groups[number] = part
            if group["name"]:
                self._groups[group["name"]] = part
        return part

    def _times(self, part: _Part) -> _Part:
        times = self._take(_TIMES)
        if times is None:
            return part
        whole = part.whole + times[0]
        if times[0][0] == "?":
            return _Part(whole, part.begun)
        rounds = f"{{0,{int(times['most']) - 1}}}" if times["most"] else "*"
        return _Part(whole, f"(?:{part.whole}{rounds}{times['kind']}{part.begun})")


def beginnings(pattern: str) -> str:
    """The pattern of what may become a match of `pattern`, if more text comes; the empty text is one such beginning."""
    reader = _Reader(pattern)
    begun = reader.choice().begun
    if reader.pos < len(pattern):
        raise ValueError(f"no pattern: {pattern!r}")
    return begun


@cache
def growing(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """`pattern`, and that of its beginnings. A long one is asked for late: it would slow down the start."""
    return re.compile(pattern, flags), re.compile(beginnings(pattern), flags)
