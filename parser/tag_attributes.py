"""What an open tag says of its call: `<tool_call id="call_1" name="read_note">`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .grammar import ATTRIBUTE

_NAMES = frozenset({"name", "tool", "function"})
_IDS = frozenset({"id", "call_id"})
_ATTRIBUTE = re.compile(ATTRIBUTE, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TagAttributes:
    name: str | None = None
    id: str | None = None


def attributes_of(tag: str) -> TagAttributes | None:
    """The attributes of what stands before a block's body; None if they contradict each other."""
    names: set[str] = set()
    ids: set[str] = set()
    for key, written in _ATTRIBUTE.findall(tag):
        value = written.strip("\"'")
        if key.casefold() in _NAMES:
            names.add(value)
        elif key.casefold() in _IDS:
            ids.add(value)
    if len(names) > 1 or len(ids) > 1 or not all(names | ids):
        return None
    return TagAttributes(next(iter(names), None), next(iter(ids), None))
