"""The keys that clients send, as their owner writes them down: one a line, with a name and its limits.

KEY
NAME=KEY
NAME=KEY requests=60 tokens=100000
# a comment
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

# What a name is made of. A key of base64 may end with `=`, and has no name for that.
NAMED = re.compile(r"(?P<name>[A-Za-z0-9][\w.@-]{0,39})=(?P<key>[^=].*)", re.ASCII)
LIMIT = re.compile(r"(?P<what>requests|tokens)=(?P<most>[1-9]\d{0,11})", re.ASCII)


class ApiKey(Struct, frozen=True):
    """`requests` and `tokens` are so many a minute at most, None for no limit."""

    key: str
    name: str = ""
    requests: int | None = None
    tokens: int | None = None


def parse_keys(lines: Iterable[str]) -> list[ApiKey]:
    """Raises `ValueError`, which says why and in which line, and holds no key."""
    keys: list[ApiKey] = []
    for number, line in enumerate(lines, 1):
        if (words := line.split()) and not line.lstrip().startswith("#"):
            keys.append(_key(words, number))
    names = [each.name for each in keys if each.name]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"two keys have the name {twice[0]}")
    return keys


def _key(words: list[str], number: int) -> ApiKey:
    named = NAMED.fullmatch(words[0])
    limits: dict[str, int] = {}
    for word in words[1:]:
        if (limit := LIMIT.fullmatch(word)) is None:
            raise ValueError(f"behind the key in line {number} write nothing, or requests=N or tokens=N, for a minute")
        limits[limit["what"]] = int(limit["most"])
    key, name = (words[0], "") if named is None else (named["key"], named["name"])
    return ApiKey(key, name, limits.get("requests"), limits.get("tokens"))
