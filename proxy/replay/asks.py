"""Which recorded turn answers a turn: by what the client asked, never by the words of the prompt around it.

A fixture asks with the newest user message and the names of the tools called since:

    "ask": {"last_user": "What did I plant?", "after_tools": ["search_notes"]}

It fits a turn when that turn's newest user message is this text, or this text and more lines behind it,
and exactly these tools were called since, in this order. White space does not count, nor do call ids,
arguments, results and what was said before. These decide only between fixtures that fit; the first
difference in this list does:

    more lines of the user message     the same model     tools offered or not
    the same text of the whole prompt  the same number of lines that the proxy added
    more messages at the end that are the same

What is still equal is played in the order of the names.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, TypeVar

from .conversation import Conversation, closing_lines, common_end, folded, folded_lines, read_conversation

# Characters of a text that an explanation shows from the first difference on; half as many before it.
_SHOWN = 40

# A model of this name is answered by the fixture that is named behind it, and by no other.
BY_NAME = "fixture:"

_Rank: TypeAlias = tuple[int, bool, bool, bool, bool, int]
_Key = TypeVar("_Key")


@dataclass(frozen=True)
class Seen:
    """A turn: the text of its input, and what is known beside it. None: it is not known."""

    text: str
    model: str | None = None
    with_tools: bool | None = None

    @cached_property
    def conversation(self) -> Conversation:
        return read_conversation(self.text)


@dataclass(frozen=True, slots=True)
class Ask:
    """What a recorded turn answers; `seen` is that turn, None when it was written by hand."""

    last_user: str
    after_tools: tuple[str, ...] = ()
    model: str | None = None
    with_tools: bool | None = None
    seen: Seen | None = None


def asked_by(seen: Seen) -> Ask:
    """The ask of a recorded turn that says nothing else."""
    return Ask(seen.conversation.last_user, seen.conversation.after_tools, seen.model, seen.with_tools, seen)


def fits(ask: Ask, seen: Seen) -> bool:
    wanted = folded_lines(ask.last_user)
    lines = folded_lines(seen.conversation.last_user)
    return lines[: len(wanted)] == wanted and seen.conversation.after_tools == ask.after_tools


def _rank(ask: Ask, seen: Seen) -> _Rank:
    recorded = ask.seen
    closing = closing_lines(seen.conversation, seen.text, ask.last_user)
    return (
        len(folded_lines(ask.last_user)),
        ask.model == seen.model,
        ask.with_tools is None or ask.with_tools == seen.with_tools,
        recorded is not None and folded(recorded.text) == folded(seen.text),
        closing == (closing_lines(recorded.conversation, recorded.text, ask.last_user) if recorded else 0),
        common_end(recorded.conversation, seen.conversation) if recorded else 0,
    )


def choose(asks: Mapping[_Key, Ask], seen: Seen) -> tuple[_Key, ...]:
    """The keys of the asks that fit best and equally well, in their order; none if nothing fits."""
    ranks = {key: _rank(ask, seen) for key, ask in asks.items() if fits(ask, seen)}
    best = max(ranks.values(), default=None)
    return tuple(key for key, rank in ranks.items() if rank == best)


def explain(asks: Mapping[str, Ask], seen: Seen) -> str:
    """One sentence on why nothing fits: the nearest fixture and where it first differs."""
    if not asks:
        return "No fixture answers this turn: there is none."
    pairs = {name: _compared(ask, seen.conversation) for name, ask in sorted(asks.items())}
    nearest = max(pairs, key=lambda name: _likeness(*pairs[name]))
    wanted, shown = pairs[nearest]
    shorter = min(len(wanted), len(shown))
    at = next((index for index in range(shorter) if wanted[index] != shown[index]), shorter)
    return (
        f"No fixture answers this turn. The nearest is {nearest}: at character {at} it has "
        f"{_around(wanted, at)} where the turn has {_around(shown, at)}."
    )


def _compared(ask: Ask, conversation: Conversation) -> tuple[str, str]:
    """What the ask wants and what the turn has, as two texts that can be laid side by side."""
    wanted, lines = folded_lines(ask.last_user), folded_lines(conversation.last_user)
    # What follows the wanted lines may differ: only the calls count there.
    shown = wanted if lines[: len(wanted)] == wanted else lines
    return (
        f"{' '.join(wanted)} {_after(ask.after_tools)}",
        f"{' '.join(shown)} {_after(conversation.after_tools)}",
    )


def _after(names: tuple[str, ...]) -> str:
    return f"(after {', '.join(names)})" if names else "(before any call)"


def _likeness(wanted: str, shown: str) -> float:
    # Words, and only how many are shared: a prompt may be a megabyte long.
    return difflib.SequenceMatcher(None, wanted.split(), shown.split(), autojunk=False).quick_ratio()


def _around(text: str, at: int) -> str:
    start, end = max(0, at - _SHOWN // 2), at + _SHOWN
    cut = text[start:end]
    return json.dumps(f"{'...' if start else ''}{cut}{'...' if end < len(text) else ''}", ensure_ascii=False)
