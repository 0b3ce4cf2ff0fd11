"""Which recorded turn answers a turn. What the client asked decides, never the words of the prompt around it.

A fixture asks with the newest user message and the names of the tools called since:

    "ask": {"last_user": "What did I plant?", "after_tools": ["search_notes"]}

It fits a turn if the turn's newest user message is this text, with or without more lines behind it, and exactly these
tools were called since, in this order. White space, call ids, arguments, results and earlier messages do not count. Nor
does it count how the conversation came to the thread: in one text, as injected items, or over several turns. A
placeholder in the text, such as `[redacted]`, stands for any text. If several fixtures fit, the first difference in
this list decides:

    the newest text is the user's, not the proxy's own    more lines of the user message
    no placeholder was needed                             the same model
    tools offered or not                                  the same conversation as a whole
    the same number of lines that the proxy added         more messages at the end that are the same

Fixtures that are still equal are played in the order of their names.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TypeAlias, TypeVar

from msgspec import Struct

from .conversation import Asking, Conversation, ThreadMessage, common_end, folded_lines, read_conversation
from .placeholders import stands_for

# Characters of a text that an explanation shows from the first difference on; half as many before it.
_SHOWN = 40

# A model of this name is answered by the fixture that is named behind it, and by no other.
BY_NAME = "fixture:"

# How every sentence begins that says that nothing fits.
NOTHING_FITS = "No fixture answers this turn"

_Rank: TypeAlias = tuple[bool, int, int, bool, bool, bool, bool, bool, int]
_Key = TypeVar("_Key")


class Seen(Struct, frozen=True, dict=True):
    """A turn: all messages of its thread, its own input among them, and what is known beside it. None: it is not."""

    messages: tuple[ThreadMessage, ...]
    model: str | None = None
    with_tools: bool | None = None

    @cached_property
    def conversation(self) -> Conversation:
        return read_conversation(self.messages)


class Ask(Struct, frozen=True, dict=True):
    """What a recorded turn answers; `seen` is that turn, None when it was written by hand."""

    last_user: str
    after_tools: tuple[str, ...] = ()
    model: str | None = None
    with_tools: bool | None = None
    seen: Seen | None = None

    @cached_property
    def lines(self) -> list[str]:
        """The wanted lines, see `folded_lines`."""
        return folded_lines(self.last_user)


def asked_by(seen: Seen) -> Ask:
    """The ask of a recorded turn that says nothing else."""
    asking = seen.conversation.askings[0]
    return Ask(asking.last_user, asking.after_tools, seen.model, seen.with_tools, seen)


def fits(ask: Ask, seen: Seen) -> bool:
    return any(True for _ in _fitting(ask, seen))


def _fitting(ask: Ask, seen: Seen) -> Iterator[tuple[int, Asking]]:
    """Those of what may be asked that `ask` fits, numbered, the likeliest first."""
    for number, asking in enumerate(seen.conversation.askings):
        if asking.after_tools == ask.after_tools and (
            _word_for_word(ask, asking) or stands_for("\n".join(ask.lines), "\n".join(asking.lines))
        ):
            yield number, asking


def _word_for_word(ask: Ask, asking: Asking) -> bool:
    return asking.lines[: len(ask.lines)] == ask.lines


def _rank(ask: Ask, seen: Seen, number: int, asking: Asking) -> _Rank:
    return (
        bool(ask.lines),
        -number,
        len(ask.lines),
        _word_for_word(ask, asking),
        ask.model == seen.model,
        ask.with_tools is None or ask.with_tools == seen.with_tools,
        *_likeness(ask, seen, asking),
    )


def _likeness(ask: Ask, seen: Seen, asking: Asking) -> tuple[bool, bool, int]:
    """How like the turn is to the recorded one: as a whole, in the lines of the proxy's own, and from the end on."""
    own = seen.conversation.own_lines(asking, len(ask.lines))
    if (recorded := ask.seen) is None:
        return False, own == 0, 0
    _, then = next(_fitting(ask, recorded), (0, recorded.conversation.askings[0]))
    one, other = recorded.conversation, seen.conversation
    return (
        one.comparable == other.comparable,
        one.own_lines(then, len(ask.lines)) == own,
        common_end(one.exchange(then), other.exchange(asking)),
    )


def choose(asks: Mapping[_Key, Ask], seen: Seen) -> tuple[_Key, ...]:
    """The keys of the asks that fit best and equally well, in their order; none if nothing fits."""
    found = {key: [_rank(ask, seen, *fitting) for fitting in _fitting(ask, seen)] for key, ask in asks.items()}
    ranks = {key: max(each) for key, each in found.items() if each}
    best = max(ranks.values(), default=None)
    return tuple(key for key, rank in ranks.items() if rank == best)


def explain(asks: Mapping[str, Ask], seen: Seen) -> str:
    """One sentence on why nothing fits: the nearest fixture and where it first differs."""
    if not asks:
        return f"{NOTHING_FITS}: none has the name of the model {_around(seen.model or '', 0)}."
    # With as little as may be taken for the proxy's own, and with as much.
    first, *more = seen.conversation.askings
    askings = (first, *more[-1:])
    pairs = [(name, *_compared(ask, asking)) for name, ask in sorted(asks.items()) for asking in askings]
    nearest, wanted, shown = max(pairs, key=lambda pair: _shared_words(*pair[1:]))
    shorter = min(len(wanted), len(shown))
    at = next((index for index in range(shorter) if wanted[index] != shown[index]), shorter)
    return (
        f"{NOTHING_FITS}. The nearest is {nearest}: at character {at + 1} it has "
        f"{_around(wanted, at)} where the turn has {_around(shown, at)}."
    )


def _compared(ask: Ask, asking: Asking) -> tuple[str, str]:
    """What the ask wants and what the turn has, as two texts that can be laid side by side."""
    wanted, lines = ask.lines, asking.lines
    # What follows the wanted lines may differ: only the calls count there.
    shown = wanted if lines[: len(wanted)] == wanted else lines
    return (
        f"{' '.join(wanted)} {_after(ask.after_tools)}",
        f"{' '.join(shown)} {_after(asking.after_tools)}",
    )


def _after(names: tuple[str, ...]) -> str:
    return f"(after {', '.join(names)})" if names else "(before any call)"


def _shared_words(wanted: str, shown: str) -> float:
    # Words, and only how many are shared: a prompt may be a megabyte long.
    return difflib.SequenceMatcher(None, wanted.split(), shown.split(), autojunk=False).quick_ratio()


def _around(text: str, at: int) -> str:
    start, end = max(0, at - _SHOWN // 2), at + _SHOWN
    cut = text[start:end]
    return json.dumps(f"{'...' if start else ''}{cut}{'...' if end < len(text) else ''}", ensure_ascii=False)
