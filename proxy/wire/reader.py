"""Typed reads from a JSON object of a request, each fault worded as OpenAI words it.

A `null` is read as absent: real clients send nulls for every optional field. Error forms:
docs/reference/errors.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ..errors import RequestError
from .json_body import JsonObject, JsonValue

# How much of a client's value an error may show.
MAX_SHOWN = 120


def kind_of(value: JsonValue) -> str:
    """JSON's word for the type of `value`, with its article."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a decimal number"
        case str():
            return "a string"
        case list():
            return "an array"
        case dict():
            return "an object"


def shown(value: str) -> str:
    return value if len(value) <= MAX_SHOWN else value[:MAX_SHOWN] + "..."


def missing(path: str) -> RequestError:
    return RequestError(f"Missing required parameter: '{path}'.", code="missing_required_parameter", param=path)


def wrong_type(path: str, expected: str, value: JsonValue) -> RequestError:
    return RequestError(
        f"Invalid type for '{path}': expected {expected}, but got {kind_of(value)} instead.",
        code="invalid_type",
        param=path,
    )


def wrong_value(path: str, value: str, supported: Sequence[str]) -> RequestError:
    names = ", ".join(f"'{name}'" for name in supported)
    return RequestError(
        f"Invalid value: '{shown(value)}'. Supported values are: {names}.", code="invalid_value", param=path
    )


def wrong_prefix(path: str, identifier: str, prefix: str) -> RequestError:
    return RequestError(
        f"Invalid '{path}': '{shown(identifier)}'. Expected an ID that begins with '{prefix}'.",
        code="invalid_value",
        param=path,
    )


class Reader:
    """An object inside a request, and the path by which errors name it."""

    __slots__ = ("_object", "_path")

    def __init__(self, value: JsonObject, path: str = "") -> None:
        self._object = value
        self._path = path

    @classmethod
    def of(cls, value: JsonValue, path: str) -> Reader:
        """A reader for `value`, which must be an object."""
        if not isinstance(value, dict):
            raise wrong_type(path, "an object", value)
        return cls(value, path)

    @property
    def raw(self) -> JsonObject:
        return self._object

    @property
    def path(self) -> str:
        return self._path

    def at(self, key: str) -> str:
        """The path of a member, as errors show it: `input[1].call_id`."""
        return f"{self._path}.{key}" if self._path else key

    def get(self, key: str) -> JsonValue:
        return self._object.get(key)

    def among(self, keys: Iterable[str]) -> Iterator[str]:
        """Those of `keys` that it has, in their order; some of them may be `null`."""
        return filter(self._object.__contains__, keys)

    def require(self, key: str) -> JsonValue:
        value = self._object.get(key)
        if value is None:
            raise missing(self.at(key))
        return value

    def string(self, key: str, *, max_length: int | None = None) -> str | None:
        value = self._object.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise wrong_type(self.at(key), "a string", value)
        if max_length is not None and len(value) > max_length:
            raise self._too_long(key, "a string", "string", max_length, len(value))
        return value

    def required_string(self, key: str, *, max_length: int | None = None) -> str:
        value = self._object.get(key)
        if isinstance(value, str) and value and max_length is None:
            return value  # as most of an item are
        value = self.string(key, max_length=max_length)
        if value is None:
            raise missing(self.at(key))
        if not value:
            raise RequestError(
                f"Invalid '{self.at(key)}': empty string. Expected a string with minimum length 1, but got an empty "
                "string instead.",
                code="empty_string",
                param=self.at(key),
            )
        return value

    def matching(self, key: str, pattern: re.Pattern[str], *, max_length: int | None = None) -> str:
        """A required string that matches `pattern` as a whole."""
        value = self.required_string(key, max_length=max_length)
        if not pattern.fullmatch(value):
            raise RequestError(
                f"Invalid '{self.at(key)}': string does not match pattern. Expected a string that matches the pattern "
                f"'^{pattern.pattern}$'.",
                code="invalid_value",
                param=self.at(key),
            )
        return value

    def choice(self, key: str, values: Sequence[str]) -> str | None:
        value = self.string(key)
        if value is not None and value not in values:
            raise wrong_value(self.at(key), value, values)
        return value

    def choices(self, key: str, values: Sequence[str]) -> list[str]:
        """An array of some of `values`; none reads as an empty one."""
        found: list[str] = []
        for index, value in enumerate(self.array(key) or []):
            path = f"{self.at(key)}[{index}]"
            if not isinstance(value, str):
                raise wrong_type(path, "a string", value)
            if value not in values:
                raise wrong_value(path, value, values)
            found.append(value)
        return found

    def boolean(self, key: str) -> bool | None:
        value = self._object.get(key)
        if value is None or isinstance(value, bool):
            return value
        raise wrong_type(self.at(key), "a boolean", value)

    def integer(self, key: str, *, minimum: int | None = None, maximum: int | None = None) -> int | None:
        value = self._object.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise wrong_type(self.at(key), "an integer", value)
        self._check_range(key, value, "integer", minimum, maximum)
        return value

    def number(self, key: str, *, minimum: float | None = None, maximum: float | None = None) -> float | None:
        value = self._object.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise wrong_type(self.at(key), "a decimal", value)
        self._check_range(key, value, "decimal", minimum, maximum)
        return value

    def array(self, key: str, *, max_length: int | None = None) -> list[JsonValue] | None:
        value = self._object.get(key)
        if value is None:
            return None
        if not isinstance(value, list):
            raise wrong_type(self.at(key), "an array", value)
        if max_length is not None and len(value) > max_length:
            raise self._too_long(key, "an array", "array", max_length, len(value))
        return value

    def object(self, key: str) -> Reader | None:
        value = self._object.get(key)
        return None if value is None else Reader.of(value, self.at(key))

    def objects(self, key: str, *, max_length: int | None = None) -> Iterator[Reader]:
        """Readers for the objects of an array; no array reads as an empty one."""
        path = self.at(key)
        for index, value in enumerate(self.array(key, max_length=max_length) or []):
            yield Reader.of(value, f"{path}[{index}]")

    def _too_long(self, key: str, kind: str, noun: str, maximum: int, length: int) -> RequestError:
        return RequestError(
            f"Invalid '{self.at(key)}': {noun} too long. Expected {kind} with maximum length {maximum}, but got {kind} "
            f"with length {length} instead.",
            code=f"{noun}_above_max_length",
            param=self.at(key),
        )

    def _check_range(self, key: str, value: float, noun: str, minimum: float | None, maximum: float | None) -> None:
        if minimum is not None and value < minimum:
            raise RequestError(
                f"Invalid '{self.at(key)}': {noun} below minimum value. Expected a value >= {minimum}, but got {value} "
                "instead.",
                code=f"{noun}_below_min_value",
                param=self.at(key),
            )
        if maximum is not None and value > maximum:
            raise RequestError(
                f"Invalid '{self.at(key)}': {noun} above maximum value. Expected a value <= {maximum}, but got {value} "
                "instead.",
                code=f"{noun}_above_max_value",
                param=self.at(key),
            )
