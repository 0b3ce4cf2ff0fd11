"""The tags that matter in prose, and the texts that may become one."""

from __future__ import annotations

import re
from collections.abc import Sequence
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


KINDS = {kind.value: kind for kind in Kind}


@cache
def before_calls() -> re.Pattern[str]:
    """Finds call and think tags; `lastgroup` is the value of a Kind."""
    return re.compile(f"{_guard(_STARTS)}(?:{_TAGS})")


@cache
def after_calls(result_openers: tuple[str, ...]) -> re.Pattern[str]:
    """Finds made-up results too. They count at the start of a line only."""
    if not all(opener[:1] in ("<", "[") and len(opener) > 1 for opener in result_openers):
        raise ValueError("the opener of a result starts with < or [ and goes on")
    whole = "|".join(map(re.escape, result_openers))
    begun = "|".join(prefixes_of(opener) for opener in result_openers)
    guard = _guard((*_STARTS, *result_openers))
    return re.compile(rf"{guard}(?:(?P<result>(?i:{whole}))|{_TAGS}|(?P<result_begun>(?i:{begun})\Z))")


@cache
def marks(tags: re.Pattern[str]) -> re.Pattern[str]:
    """Finds those tags, backticks and tildes."""
    return re.compile(f"[`~]|{tags.pattern}")


def _guard(starts: Sequence[str]) -> str:
    """Looks at two characters before anything else is tried: nearly every `<` is settled by that."""
    seconds = "".join(sorted({re.escape(start[1]) for start in starts}))
    return rf"(?=[<\[](?:(?i:[{seconds}])|\Z))"


_STARTS = (OPEN_TAG, *THINK_TAGS)
_TAGS = (
    f"(?P<call>(?i:{OPEN.pattern}))"
    f"|(?P<think>{'|'.join(THINK_TAGS)})"
    f"|(?P<begun>(?i:{OPEN_BEGUN.pattern})|(?:{'|'.join(map(prefixes_of, THINK_TAGS))})\\Z)"
)
