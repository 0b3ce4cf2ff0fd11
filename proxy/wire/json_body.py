"""Bytes of a request body to a JSON object, with the limits that keep it harmless.

orjson refuses what the backend could not take either: NaN, a byte order mark, UTF-16, half a surrogate pair. The last
of these is mended. Depth is bounded because everything that walks a deep body later would recurse. The number of values
is bounded because each costs an object while nothing else runs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, TypeAlias

import orjson

from ..errors import RequestError

# What JSON can say.
JsonValue: TypeAlias = bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"] | None

# What an API says: a request, an item, a tool.
JsonObject: TypeAlias = dict[str, JsonValue]

# Levels of objects and arrays within each other.
MAX_DEPTH = 64

# What has a level of its own.
NESTING = frozenset({dict, list})

# Values: members of objects and arrays, and these themselves. A conversation of 10,000 items has some 100,000.
MAX_VALUES = 250_000

# Half a surrogate pair, as an escape: the first without the second, or the second without the first.
HALF_A_PAIR = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


def levels(value: object) -> Iterator[list[object]]:
    """`value`, then what stands in it, then what stands in that. Iterative: the value may be hostile."""
    level: list[object] = [value]
    while level:
        yield level
        below: list[object] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, (list, tuple)):
                below.extend(item)
        level = below


def depth_exceeds(value: JsonObject, limit: int) -> bool:
    """Whether objects and arrays nest deeper than `limit`. They are as orjson makes them."""
    # Of each request, so nothing else is looked at.
    level: list[Any] = [value]
    for _ in range(limit):
        level = [
            each
            for outer in level
            for each in (outer.values() if type(outer) is dict else outer)
            if type(each) in NESTING
        ]
        if not level:
            return False
    return True


def has_more(value: object, most: int) -> bool:
    """Whether more than so many values are in `value`; no more of them are looked at."""
    return any(seen > most for seen in accumulate(map(len, levels(value))))


def writes_more(body: bytes, most: int) -> bool:
    """Whether the JSON in `body` has more than so many values, read or not: it is not parsed for that.

    Mostly a look at all bytes is enough. Only where there are too many `openings`, text included, are the strings
    passed over, one by one, so that other threads get their turn.
    """
    if len(body) <= most or openings(body) <= most:
        return False
    bare = body.replace(rb"\\", b"").replace(rb"\"", b"")  # what is left of quotes begins or ends a string
    values, at = 0, 0
    while values <= most and at >= 0:
        begin = bare.find(b'"', at)
        values += openings(bare, at, len(bare) if begin < 0 else begin)
        at = -1 if begin < 0 else bare.find(b'"', begin + 1) + 1 or -1
    return values > most


def openings(body: bytes, start: int = 0, end: int = sys.maxsize) -> int:
    """How many values begin in this part of `body` at most: each is behind a comma or an opening bracket."""
    return body.count(b",", start, end) + brackets(body, start, end)


def brackets(body: bytes, start: int = 0, end: int = sys.maxsize) -> int:
    """How many objects and arrays begin in this part of `body` at most: text may have brackets, too."""
    return body.count(b"[", start, end) + body.count(b"{", start, end)


def well_formed(body: bytes) -> bytes:
    """`body` with U+FFFD for each half of a surrogate pair, as JavaScript's `toWellFormed` puts it.

    Clients cut notes and outputs by UTF-16 units, through an emoji as well, and `JSON.stringify` writes what is left
    of it as an escape: refused, it would stand in each later request, too.
    """
    if b"\0" in body:
        return body  # no JSON at all
    # No backslash that is escaped itself begins an escape.
    return HALF_A_PAIR.sub(rb"\\ufffd", body.replace(rb"\\", b"\0")).replace(b"\0", rb"\\")


def loads(body: bytes) -> JsonValue:
    """The value in `body`, whose texts may be cut through an emoji. Raises `orjson.JSONDecodeError`."""
    try:
        value: JsonValue = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if "surrogate" not in str(error):
            raise
        value = orjson.loads(well_formed(body))
    return value


def parse_json_object(body: bytes) -> JsonObject:
    """The JSON object in `body`, or `RequestError` as OpenAI words it."""
    if writes_more(body, MAX_VALUES):
        raise RequestError(f"The JSON body of your request has more than {MAX_VALUES:,} values.", code="invalid_value")
    try:
        value = loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestError(
            "We could not parse the JSON body of your request. The API expects a JSON payload, but what was sent "
            f"is not valid JSON ({str(error)[:120]})."
        ) from None
    if not isinstance(value, dict):
        raise RequestError(
            "We could not parse the JSON body of your request. The API expects a JSON object, but what was sent is "
            "not one."
        )
    if brackets(body) > MAX_DEPTH and depth_exceeds(value, MAX_DEPTH):
        raise RequestError(f"The JSON body of your request nests deeper than {MAX_DEPTH} levels.", code="invalid_value")
    return value
