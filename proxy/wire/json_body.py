"""Bytes of a request body to a JSON object, with the limits that keep it harmless.

orjson refuses what the backend could not take either: lone surrogates, NaN, a byte order mark,
UTF-16. Depth is bounded because a deep body costs recursion in everything that walks it later.
"""

from __future__ import annotations

from typing import TypeAlias

import orjson

from ..errors import RequestError

# What JSON can say.
JsonValue: TypeAlias = bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"] | None

# What an API says: a request, an item, a tool.
JsonObject: TypeAlias = dict[str, JsonValue]

# Levels of objects and arrays within each other.
MAX_DEPTH = 64


def depth_exceeds(value: JsonValue, limit: int) -> bool:
    """Whether objects and arrays nest deeper than `limit`. Iterative: the value may be hostile."""
    level: list[JsonValue] = [value]
    for _ in range(limit):
        below: list[JsonValue] = []
        for item in level:
            match item:
                case dict():
                    below.extend(item.values())
                case list():
                    below.extend(item)
                case _:
                    pass
        if not below:
            return False
        level = below
    return any(isinstance(item, dict | list) for item in level)


def parse_json_object(body: bytes) -> JsonObject:
    """The JSON object in `body`, or `RequestError` as OpenAI words it."""
    try:
        value: JsonValue = orjson.loads(body)
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
    if depth_exceeds(value, MAX_DEPTH):
        raise RequestError(f"The JSON body of your request nests deeper than {MAX_DEPTH} levels.", code="invalid_value")
    return value
