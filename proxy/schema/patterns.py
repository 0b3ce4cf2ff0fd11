"""Whether a pattern is found in a text, by RE2, whose work grows with pattern and text and never explodes.

Patterns are those of ECMA-262, which RE2 writes a little differently. RE2 has no lookahead, lookbehind or
backreferences, so a pattern with these cannot be used. The exception is lookahead right behind a leading `^`, as in
rules for passwords and in zod's for mail addresses. It is a condition on the whole text, and is tried as a pattern of
its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Protocol

import re2
from msgspec import Struct

from .check_budget import CheckBudget, SchemaUnusable

# Characters of a pattern.
LONGEST = 1_000

# Bytes that a compiled pattern may take. It has up to 140,000 instructions then, and is compiled in up to 50 ms.
MOST_MEMORY = 2 * 2**20

# Instructions that are compiled for a step.
COMPILED_A_STEP = 4

# Bytes of a text that are read for a step, and bytes times instructions: most patterns read a byte in 10 ns, one that
# leads to ever new states in up to 0.7 us, and in 6 ns more for each instruction.
READ_A_STEP = 2
WORK_A_STEP = 512

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = MOST_MEMORY

# An escape, a class, or any other character. Within a class a bracket opens none.
_ESCAPE = (
    r"\\u\{[0-9a-fA-F]{1,6}\}|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}"
    r"|\\x[0-9a-fA-F]{2}|\\[pP]\{[^}]*\}|\\c[a-zA-Z]|\\."
)
_TOKEN = re.compile(rf"{_ESCAPE}|\[\^?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_TOKEN_IN_CLASS = re.compile(rf"{_ESCAPE}|.", re.DOTALL)

# The inside of a class.
_SPACE = r"\t\n\v\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}"

# What means something else in RE2, or nothing, outside and inside of a class.
_OUTSIDE = {".": r"[^\n\r\x{2028}\x{2029}]", r"\s": f"[{_SPACE}]", r"\S": f"[^{_SPACE}]", r"\Z": r"\z", r"\0": r"\x00"}
_IN_CLASS = {"[": r"\[", r"\s": _SPACE, r"\b": r"\x08", r"\0": r"\x00"}
# What means something in RE2 only.
_FOREIGN = frozenset({r"\C", r"\E", r"\Q"})
_EMPTY = {"[]": r"[^\x00-\x{10FFFF}]", "[^]": r"[\x00-\x{10FFFF}]"}

_PROPERTY = re.compile(r"\\([pP])\{(?:(?:gc|General_Category|sc|Script|scx|Script_Extensions)=)?(\w+)\}")
# Categories, which RE2 knows by their short names only.
_CATEGORIES = {
    "Letter": "L", "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll", "Mark": "M", "Number": "N",
    "Decimal_Number": "Nd", "Punctuation": "P", "Symbol": "S", "Separator": "Z", "Space_Separator": "Zs",
    "Other": "C", "Control": "Cc",
}  # fmt: skip


class _Compiled(Protocol):
    """What RE2 makes of a pattern."""

    programsize: int
    """Its instructions."""

    def search(self, text: bytes) -> object: ...


class _Condition(Struct, frozen=True):
    """A pattern that must be found, or must not be."""

    compiled: _Compiled
    wanted: bool


def usable(pattern: str, budget: CheckBudget) -> bool:
    """Whether texts can be held against `pattern`. Raises `SchemaUnusable` when to look costs too much."""
    conditions = _conditions(pattern)
    if conditions is None:
        return False
    budget.spend(_price(conditions))
    return True


def _price(conditions: Sequence[_Condition]) -> int:
    return sum(condition.compiled.programsize for condition in conditions) // COMPILED_A_STEP


class Patterns:
    """Those of one check, which pays for each of them once, whatever is still known of earlier checks."""

    def __init__(self, budget: CheckBudget) -> None:
        self._budget = budget
        self._known: dict[str, tuple[_Condition, ...]] = {}

    def found(self, pattern: str, text: str) -> bool:
        """Whether `pattern` is found in `text`. Raises `SchemaUnusable`."""
        conditions = self._known.get(pattern)
        if conditions is None:
            conditions = self._known[pattern] = self._compiled(pattern)
        # Half of a surrogate pair is no character that a pattern could mean.
        data = text.encode("utf-8", "replace")
        for condition in conditions:
            size = len(data)
            self._budget.spend(1 + size // READ_A_STEP + size * condition.compiled.programsize // WORK_A_STEP)
            if (condition.compiled.search(data) is not None) is not condition.wanted:
                return False
        return True

    def _compiled(self, pattern: str) -> tuple[_Condition, ...]:
        conditions = _conditions(pattern)
        if conditions is None:
            raise SchemaUnusable("a pattern cannot be used")
        self._budget.spend(_price(conditions))
        return conditions


@lru_cache(maxsize=256)
def _conditions(pattern: str) -> tuple[_Condition, ...] | None:
    # Before it is read: a row of brackets that open nothing is read in quadratic time.
    if len(pattern) > LONGEST:
        return None
    tokens = _TOKEN.findall(pattern)
    if not _FOREIGN.isdisjoint(tokens):
        return None
    try:
        return tuple(
            _Condition(re2.compile("".join(map(_outside, part)), _OPTIONS), wanted) for part, wanted in _parts(tokens)
        )
    except (re2.error, UnicodeEncodeError):
        return None


def _parts(tokens: Sequence[str]) -> Iterator[tuple[Sequence[str], bool]]:
    """The patterns that `tokens` stand for, each with whether it must be found."""
    looks: list[tuple[Sequence[str], bool]] = []
    rest = tokens[1:]
    while tokens[:1] == ["^"] and rest[:3] in (["(", "?", "="], ["(", "?", "!"]):
        end = _closing(rest)
        # Nobody means one that is repeated: RE2 refuses it.
        if rest[end + 1 : end + 2] in (["?"], ["*"], ["+"], ["{"]):
            break
        looks.append((["^", "(", "?", ":", *rest[3:end], ")"], rest[2] == "="))
        rest = rest[end + 1 :]
    if not looks or _has_alternatives(rest):
        # Of several alternatives only the first stands behind the `^` and what it is to look for.
        yield tokens, True
        return
    yield from looks
    yield ["^", *rest], True


def _depths(tokens: Sequence[str]) -> Iterator[int]:
    """How many groups are open behind each token."""
    depth = 0
    for each in tokens:
        depth += (each == "(") - (each == ")")
        yield depth


def _closing(tokens: Sequence[str]) -> int:
    """Where the group ends that `tokens` begin with, or their number."""
    return next((index for index, depth in enumerate(_depths(tokens)) if depth == 0), len(tokens))


def _has_alternatives(tokens: Sequence[str]) -> bool:
    return any(each == "|" and depth <= 0 for each, depth in zip(tokens, _depths(tokens), strict=True))


def _outside(token: str) -> str:
    """A token as RE2 has it."""
    if token in _EMPTY:
        return _EMPTY[token]
    if token.startswith("[") and token.endswith("]"):
        negated = "^" if token[1] == "^" else ""
        inside = _TOKEN_IN_CLASS.findall(token[1 + len(negated) : -1])
        return f"[{negated}{''.join(_IN_CLASS.get(each) or _escape(each) for each in inside)}]"
    return _OUTSIDE.get(token) or _escape(token)


def _escape(token: str) -> str:
    """An escape, or a character that is none, as RE2 has it."""
    if not token.startswith("\\") or len(token) == 1:
        return token
    letter, rest = token[1], token[2:]
    if letter == "u" and rest:
        high, _, low = rest.strip("{}").partition("\\u")
        code = 0x10000 + (int(high, 16) - 0xD800 << 10) + int(low, 16) - 0xDC00 if low else int(high, 16)
        return rf"\x{{{code:x}}}"
    if letter == "c" and rest:
        return rf"\x{ord(rest) % 32:02x}"
    if named := _PROPERTY.fullmatch(token):
        return rf"\{named[1]}{{{_CATEGORIES.get(named[2], named[2])}}}"
    # A character that needs no escape is itself; a letter or digit means something, if not to RE2.
    return letter if not letter.isascii() and not rest else token
