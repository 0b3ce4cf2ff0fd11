"""Calls that a text holds as JSON without tags: no blocks, but a model may make some of them.

A small model did, with tags and with the key, of the note that it was to show (measured,
docs/reference/reliability.md).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from parser import CLOSE_TAG, OPEN_TAG
from parser.members import (
    ARGUMENTS_ALIASES,
    LATE_ARGUMENTS_ALIASES,
    LATE_NAME_ALIASES,
    NAME_ALIASES,
    folded_key,
)

from .budget import ReadingBudget
from .lines import line_forms

# Strategy: JSON with a name in it is everywhere, so what is looked for is the rarer member, and the object around it.
# Other notations, as `read_note(path="a.md")`, are not read: hints how to go on are written like that.

_NAMES = NAME_ALIASES | LATE_NAME_ALIASES
_ARGUMENTS = ARGUMENTS_ALIASES | LATE_ARGUMENTS_ALIASES
# Each of these, in any spelling, holds one of those.
_ROOTS = ("argument", "param", "args", "input")
_MEMBER = re.compile(r'"([A-Za-z_-]{4,24})"[ \t\n\r]*+:')
_WORD = re.compile(r"[^\W_]+")
# Objects that may have begun in front of the member, the innermost first: those beside it end before it.
_BEGUN = 4
# Characters of an object that are read at first, and how many times as many when it goes on: what is no JSON tells so
# early, and `json` looks for the line of each fault, from the beginning of the text that it was given.
_WINDOW, _WIDER = 4096, 16
# Characters in front of the end of what was read in which a fault may be the end itself: half a word, half an escape.
_HALF = 12
# Units of a `ReadingBudget`: for an object that is looked at; for one that is too deep to be read.
_LOOK, _TOO_DEEP = 200, 50_000

_JSON = json.JSONDecoder()


def may_hold_call(text: str, name: str) -> bool:
    """Whether `text` may hold a call of the tool `name` as JSON: a few searches."""
    folded = text.casefold()
    return any(root in folded for root in _ROOTS) and all(word.casefold() in folded for word in _WORD.findall(name))


def bare_blocks(text: str, budget: ReadingBudget) -> Iterator[str]:
    """Each JSON object in `text` that has a name and arguments, in tags. Raises `TooMuchToReadError`."""
    for form in (text, *(form for form, _ in line_forms(text))):
        budget.spend(len(form))
        ends: dict[int, int] = {}
        for member in _MEMBER.finditer(form):
            if folded_key(member[1]) in _ARGUMENTS:
                yield from _object_around(form, member.start(), ends, budget)


def _object_around(text: str, place: int, ends: dict[int, int], budget: ReadingBudget) -> Iterator[str]:
    """The innermost JSON object that goes on over `place`, if it has a name. `ends` are those that were looked at."""
    begin = place
    for _ in range(_BEGUN):
        begin = text.rfind("{", 0, begin)
        if begin < 0:
            return
        if begin in ends:  # each is told once, however many members it has
            if ends[begin] > place:
                return
            continue
        value, ends[begin] = _object_at(text, begin, budget)
        if ends[begin] > place:
            if any(folded_key(key) in _NAMES for key in value):
                yield f"{OPEN_TAG}{text[begin : ends[begin]]}{CLOSE_TAG}"
            return


def _object_at(text: str, begin: int, budget: ReadingBudget) -> tuple[dict[str, object], int]:
    """The JSON object that begins there, and where it ends: where it began, if it is none."""
    size = _WINDOW
    while True:
        budget.spend(_LOOK)
        window = text[begin : begin + size]
        try:
            value, end = _JSON.raw_decode(window)
        except json.JSONDecodeError as error:
            # Of a string that does not end only the beginning is told.
            read = len(window) if error.msg.startswith("Unterminated") else error.pos
            budget.spend(read)
            if read < len(window) - _HALF or begin + size >= len(text):
                return {}, begin
            size *= _WIDER
        except (ValueError, RecursionError):  # a number of thousands of digits, or too deep
            budget.spend(_TOO_DEEP)
            return {}, begin
        else:
            budget.spend(end)
            return value, begin + end
