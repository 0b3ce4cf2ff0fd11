"""The tags that matter in prose, and the texts that may become one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import cache

from .grammar import OPEN, OPEN_BEGUN, OPEN_TAG, THINK_TAGS, prefixes_of


class Kind(Enum):
    """What stands there; the value names its group in the pattern. BEGUN: the text ends in the middle of it."""

    TEXT = ""
    CALL = "call"
    THINK = "think"
    BEGUN = "begun"
    RESULT = "result"
    RESULT_BEGUN = "result_begun"


BEGUN = Kind.BEGUN.value
KINDS = {kind.value: kind for kind in Kind}


# Strategy: the patterns start with the one character that the search can skip to. What follows it is
# compared with all tags at once, so that nearly every `<` is settled before the first tag is tried.


@cache
def before_calls() -> re.Pattern[str]:
    """Finds call and think tags; `lastgroup` is the value of a Kind."""
    return re.compile(f"<{_guard(_AFTER_LESS_THAN)}(?:{_TAGS})")


@cache
def after_calls(result_openers: tuple[str, ...]) -> re.Pattern[str]:
    """Finds made-up results too. They count at the start of a line only."""
    for opener in result_openers:
        if opener[:1] not in ("<", "[") or len(opener) < 2:
            raise ValueError("the opener of a result starts with < or [ and goes on")
        if OPEN_TAG.startswith(opener.lower()) or opener.lower().startswith(OPEN_TAG):
            raise ValueError("the opener of a result cannot be that of a call")
    rests = {first: [opener[1:] for opener in result_openers if opener[0] == first] for first in "<["}
    guards = rf"<{_guard([*_AFTER_LESS_THAN, *rests['<']])}|\[{_guard(rests['['])}"
    whole = _after_first({first: [re.escape(rest) for rest in rests[first]] for first in rests})
    begun = _after_first({first: [*map(prefixes_of, rests[first]), ""] for first in rests if rests[first]})
    results = rf"(?P<result>(?i:{whole}))|(?<=<)(?:{_TAGS})|(?P<result_begun>(?i:(?:{begun}){_END}))"
    return re.compile(f"(?:{guards})(?:{results})")


def _after_first(patterns: Mapping[str, Sequence[str]]) -> str:
    return "|".join(rf"(?<=\{first})(?:{'|'.join(rests)})" for first, rests in patterns.items() if rests) or _NOTHING


def _guard(literals: Iterable[str]) -> str:
    return f"(?=(?i:{_any_of(literals)}))"


def _any_of(literals: Iterable[str]) -> str:
    """A pattern for one of these, or for the end of the text in the middle of one."""
    rests: dict[str, list[str]] = {}
    for literal in literals:
        if not literal:
            return ""
        rests.setdefault(literal[0].lower(), []).append(literal[1:])
    branches = [re.escape(first) + _any_of(rest) for first, rest in rests.items()]
    return f"(?:{'|'.join([*branches, _END])})"


_END = r"\Z"
_NOTHING = "(?!)"
_AFTER_LESS_THAN = ("tool_call", *(tag[1:] for tag in THINK_TAGS))
_TAGS = (
    f"(?P<call>(?i:{OPEN.pattern[1:]}))"
    f"|(?P<think>{'|'.join(tag[1:] for tag in THINK_TAGS)})"
    f"|(?P<begun>(?i:{OPEN_BEGUN.pattern[1:]})|(?:{'|'.join(prefixes_of(tag[1:]) for tag in THINK_TAGS)})\\Z)"
)
