"""Which fixture answers a turn: by the conversation that it shows, never by the tool prompt around it.

A fixture asks in one of two ways. `Verbatim` is the text of a recorded turn's input. `Described` is
for fixtures written by hand, which should not break when the prompt is worded anew:

    "ask": {"last_user": "What did I plant?", "after_tools": ["search_notes"]}

fits when the newest user turn begins with that text (what the proxy appends to it does not count) and
the calls made since have exactly these names, in this order (left out: none yet).

Of a conversation with headers only what begins with the first header is compared, and of `[tool:call_x]`
only `[tool]`: the introduction is the prompt's, and call ids differ between runs.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

_HEADER = re.compile(r"^\[(?:user\]|assistant\]|tool:)", re.MULTILINE)
_RESULT_HEADER = re.compile(r"^\[tool:[^\]\s]*\]", re.MULTILINE)
_USER_HEADER = re.compile(r"^\[user\]", re.MULTILINE)
_CALL = re.compile(r'<tool_call>\s*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")')

# How many characters of a text an explanation shows, on either side of the first difference.
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Verbatim:
    text: str


@dataclass(frozen=True, slots=True)
class Described:
    last_user: str
    after_tools: tuple[str, ...] = ()


Ask = Verbatim | Described


class Fit(IntEnum):
    """How well an ask fits a conversation; more is better."""

    NONE = 0
    DESCRIBED = 1
    FOLDED = 2
    EXACT = 3


def folded(text: str) -> str:
    """`text` with every run of white space as one blank."""
    return " ".join(text.split())


def comparable(conversation: str) -> str:
    """A rendered conversation without its introduction and its call ids."""
    first = _HEADER.search(conversation)
    return _RESULT_HEADER.sub("[tool]", conversation[first.start() :] if first else conversation)


def described(conversation: str) -> Described:
    """The newest user turn of a rendered conversation with all that follows it, and the calls made since."""
    newest = _USER_HEADER.split(conversation)[-1]
    return Described(folded(newest), tuple(json.loads(name, strict=False) for name in _CALL.findall(newest)))


def fit(ask: Ask, conversation: str) -> Fit:
    match ask:
        case Verbatim(text):
            asked, seen = comparable(text), comparable(conversation)
            if asked == seen:
                return Fit.EXACT
            return Fit.FOLDED if folded(asked) == folded(seen) else Fit.NONE
        case Described(last_user, after_tools):
            turn = described(conversation)
            fits = turn.after_tools == after_tools and turn.last_user.startswith(folded(last_user))
            return Fit.DESCRIBED if fits else Fit.NONE


def choose(asks: Mapping[str, Ask], conversation: str) -> tuple[str, ...]:
    """The names of the fixtures that fit best and equally well, sorted; none if nothing fits."""
    fits = {name: fit(ask, conversation) for name, ask in asks.items()}
    best = max(fits.values(), default=Fit.NONE)
    return tuple(sorted(name for name in fits if fits[name] is best)) if best else ()


def _compared(ask: Ask, conversation: str) -> tuple[str, str]:
    """What the ask wants and what the turn has, as two texts that can be laid side by side."""
    match ask:
        case Verbatim(text):
            return folded(comparable(text)), folded(comparable(conversation))
        case Described(last_user, after_tools):
            wanted, turn = folded(last_user), described(conversation)
            # What follows the wanted text may differ: only the calls count there.
            seen = turn.last_user
            seen = wanted if seen.startswith(wanted) else seen
            return f"{wanted} {_after(after_tools)}", f"{seen} {_after(turn.after_tools)}"


def _after(names: tuple[str, ...]) -> str:
    return f"(after {', '.join(names)})" if names else "(before any call)"


def explain(asks: Mapping[str, Ask], conversation: str) -> str:
    """One sentence on why nothing fits: the nearest fixture and where it first differs."""
    if not asks:
        return "No fixture answers this turn: there is none."
    pairs = {name: _compared(ask, conversation) for name, ask in sorted(asks.items())}
    nearest = max(pairs, key=lambda name: _likeness(*pairs[name]))
    wanted, seen = pairs[nearest]
    shorter = min(len(wanted), len(seen))
    at = next((index for index in range(shorter) if wanted[index] != seen[index]), shorter)
    return (
        f"No fixture answers this turn. The nearest is {nearest}: at character {at} it has "
        f"{_around(wanted, at)} where the turn has {_around(seen, at)}."
    )


def _likeness(wanted: str, seen: str) -> float:
    # Words, and only how many are shared: a prompt may be a megabyte long.
    return difflib.SequenceMatcher(None, wanted.split(), seen.split(), autojunk=False).quick_ratio()


def _around(text: str, at: int) -> str:
    start, end = max(0, at - _SHOWN // 2), at + _SHOWN
    cut = text[start:end]
    return json.dumps(f"{'...' if start else ''}{cut}{'...' if end < len(text) else ''}", ensure_ascii=False)
