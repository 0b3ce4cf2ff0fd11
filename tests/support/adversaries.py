"""Texts on which a regular expression takes longest: made from its own syntax, and from what breaks most of them.

Whatever a pattern may repeat is repeated, behind what has to stand in front of it and before what cannot follow; and
what it begins with is begun again and again. A search that is more than linear in one of these goes back over the
same characters from each place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

# What no pattern expects in the middle.
BREAKING = "\x01"
# Repeated alone, whatever the pattern.
COMMON = (
    "a", "A", "0", " ", "\t", "\n", "_", "-", ".", "/", "\\", '"', "'", "`", "<", "{", "[", "(", "&", "%", "=", ",",
    ":", "\u200b", "\u00e9", "a-", "a.", "a b", "a_", '\\"', "\\\\n", '""', "{}", "&amp;", "%25", "<\\", "<tool_call ",
    "</tool_call", "\n ", " \n", "> ", "=\n", "x://", "a@", "1,",
)  # fmt: skip
# Repetitions of at most so often are bounded by the pattern itself.
BOUNDED = 64


@dataclass(frozen=True, slots=True)
class Adversary:
    """`head`, then `body` again and again, then `tail`."""

    head: str
    body: str
    tail: str

    def text(self, length: int) -> str:
        return self.head + self.body * max(1, length // len(self.body)) + self.tail


def adversaries(pattern: re.Pattern[Any]) -> Iterator[Adversary]:
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    # The flags of a pattern hold those that stand in it.
    tree = _parser.parse(source, pattern.flags & ~re.UNICODE)
    seen = {Adversary("", body, BREAKING) for body in COMMON}
    for head, body, rest in _repetitions(tree, "", ""):
        for tail in (BREAKING, rest[:-1] + BREAKING, ""):
            seen.add(Adversary(head, body, tail))
        seen.add(Adversary("", head + body, BREAKING))
        seen.add(Adversary("", head + body * 3 + rest[:-1] + BREAKING, ""))
        if head:
            seen.add(Adversary("", head, body + BREAKING))
    whole = _sample(tree)
    if len(whole) > 1:
        seen |= {Adversary("", whole[:-1], BREAKING), Adversary("", whole[:1], BREAKING)}
    yield from sorted(seen, key=repr)


def _repetitions(tree: Any, head: str, rest: str) -> Iterator[tuple[str, str, str]]:
    """What may be repeated without a bound: what stands before it, one round, and what stands behind it."""
    items = list(tree)
    for index, (kind, value) in enumerate(items):
        before = head + "".join(map(_sample_of, items[:index]))
        behind = "".join(map(_sample_of, items[index + 1 :])) + rest
        match kind:
            case sre.MAX_REPEAT | sre.MIN_REPEAT | sre.POSSESSIVE_REPEAT:
                _, most, inside = value
                if most is sre.MAXREPEAT or most > BOUNDED:
                    for body in _variants(inside):
                        yield before, body, behind
                yield from _repetitions(inside, before, behind)
            case sre.SUBPATTERN:
                yield from _repetitions(value[-1], before, behind)
            case sre.ATOMIC_GROUP:
                yield from _repetitions(value, before, behind)
            case sre.BRANCH:
                for branch in value[1]:
                    yield from _repetitions(branch, before, behind)
            case sre.ASSERT | sre.ASSERT_NOT:
                yield from _repetitions(value[1], before, behind)
            case _:
                pass


def _variants(tree: Any) -> set[str]:
    """Some texts that one round of a repetition takes."""
    found = {_sample(tree)}
    match list(tree):
        case [(sre.IN, members)]:
            found |= set(_characters(members))
        case [(sre.BRANCH, (_, branches))] | [(sre.SUBPATTERN, (*_, [(sre.BRANCH, (_, branches))]))]:
            found |= {_sample(branch) for branch in branches}
        case _:
            pass
    return found - {""}


def _characters(members: Any) -> list[str]:
    """A few characters of a set."""
    test = re.compile(_written(members), re.DOTALL)
    likely = "a0_- \t\n./\\\"'<{[(:=%&,é\u200b"
    found = [character for character in likely if test.match(character)]
    return found[:4] or [next((chr(code) for code in range(0x3000) if test.match(chr(code))), "a")]


def _written(members: Any) -> str:
    text = ""
    for kind, value in members:
        match kind:
            case sre.NEGATE:
                text += "^"
            case sre.LITERAL:
                text += re.escape(chr(value))
            case sre.RANGE:
                text += f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
            case sre.CATEGORY:
                text += _CATEGORIES[value]
            case _:
                raise AssertionError(kind)
    return f"[{text}]"


_CATEGORIES = {
    sre.CATEGORY_DIGIT: r"\d",
    sre.CATEGORY_NOT_DIGIT: r"\D",
    sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S",
    sre.CATEGORY_WORD: r"\w",
    sre.CATEGORY_NOT_WORD: r"\W",
}


def _sample(tree: Any) -> str:
    """A short text that `tree` takes, but for what stands around it."""
    pieces: list[str] = [_sample_of(item) for item in tree]
    return "".join(pieces)


def _sample_of(item: Any) -> str:
    kind, value = item
    samples: dict[Any, Callable[[], str]] = {
        sre.LITERAL: lambda: chr(value),
        sre.NOT_LITERAL: lambda: "a" if value != ord("a") else "b",
        sre.ANY: lambda: "a",
        sre.IN: lambda: _characters(value)[0],
        sre.BRANCH: lambda: _sample(value[1][0]),
        sre.SUBPATTERN: lambda: _sample(value[-1]),
        sre.ATOMIC_GROUP: lambda: _sample(value),
    }
    if kind in samples:
        return samples[kind]()
    if kind in {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT}:
        least: int = value[0]
        return _sample(value[2]) * min(max(least, 1), BOUNDED)
    return ""
