"""What is wrong with a member of a request, in OpenAI's words and with its path."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from proxy.errors import RequestError
from proxy.wire.json_body import JsonValue
from proxy.wire.reader import MAX_SHOWN, Reader, shown

Read = Callable[[Reader], Any]


@pytest.mark.parametrize(
    ("value", "read", "code", "message"),
    [
        (None, lambda r: r.require("a"), "missing_required_parameter", "Missing required parameter: 'x[0].a'."),
        (
            3, lambda r: r.string("a"), "invalid_type",
            "Invalid type for 'x[0].a': expected a string, but got an integer instead.",
        ),
        (
            True, lambda r: r.integer("a"), "invalid_type",
            "Invalid type for 'x[0].a': expected an integer, but got a boolean instead.",
        ),
        (
            1.5, lambda r: r.integer("a"), "invalid_type",
            "Invalid type for 'x[0].a': expected an integer, but got a decimal number instead.",
        ),
        (
            "1", lambda r: r.number("a"), "invalid_type",
            "Invalid type for 'x[0].a': expected a decimal, but got a string instead.",
        ),
        (
            [], lambda r: r.boolean("a"), "invalid_type",
            "Invalid type for 'x[0].a': expected a boolean, but got an array instead.",
        ),
        (
            {}, lambda r: r.array("a"), "invalid_type",
            "Invalid type for 'x[0].a': expected an array, but got an object instead.",
        ),
        (
            "s", lambda r: r.object("a"), "invalid_type",
            "Invalid type for 'x[0].a': expected an object, but got a string instead.",
        ),
        (
            [{}, None], lambda r: list(r.objects("a")), "invalid_type",
            "Invalid type for 'x[0].a[1]': expected an object, but got null instead.",
        ),
        (
            "", lambda r: r.required_string("a"), "empty_string",
            "Invalid 'x[0].a': empty string. Expected a string with minimum length 1, but got an empty string instead.",
        ),
        (
            "abc", lambda r: r.string("a", max_length=2), "string_above_max_length",
            ("Invalid 'x[0].a': string too long. Expected a string with maximum length 2, but got a string with "
            "length 3 instead."),
        ),
        (
            [1, 2, 3], lambda r: r.array("a", max_length=2), "array_above_max_length",
            ("Invalid 'x[0].a': array too long. Expected an array with maximum length 2, but got an array with "
            "length 3 instead."),
        ),
        (
            "a b", lambda r: r.matching("a", re.compile(r"\w+")), "invalid_value",
            "Invalid 'x[0].a': string does not match pattern. Expected a string that matches the pattern '^\\w+$'.",
        ),
        (
            "c", lambda r: r.choice("a", ("a", "b")), "invalid_value",
            "Invalid value: 'c'. Supported values are: 'a', 'b'.",
        ),
        (
            0, lambda r: r.integer("a", minimum=1), "integer_below_min_value",
            "Invalid 'x[0].a': integer below minimum value. Expected a value >= 1, but got 0 instead.",
        ),
        (
            3, lambda r: r.integer("a", maximum=2), "integer_above_max_value",
            "Invalid 'x[0].a': integer above maximum value. Expected a value <= 2, but got 3 instead.",
        ),
        (
            2.5, lambda r: r.number("a", maximum=2), "decimal_above_max_value",
            "Invalid 'x[0].a': decimal above maximum value. Expected a value <= 2, but got 2.5 instead.",
        ),
    ],
)  # fmt: skip
def test_a_fault_is_named_in_openais_words(value: JsonValue, read: Read, code: str, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        read(Reader({"a": value}, "x[0]"))
    assert (caught.value.message, caught.value.code) == (message, code)
    assert (caught.value.param or "").startswith("x[0].a")


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("ab", lambda r: r.string("a", max_length=2)),
        ([1, 2], lambda r: r.array("a", max_length=2)),
        (1, lambda r: r.integer("a", minimum=1, maximum=1)),
        (-2, lambda r: r.number("a", minimum=-2, maximum=2)),
        (2, lambda r: r.number("a", minimum=-2, maximum=2)),
        ("b", lambda r: r.choice("a", ("a", "b"))),
        (False, lambda r: r.boolean("a")),
        ("word", lambda r: r.matching("a", re.compile(r"\w+"))),
    ],
)
def test_what_is_within_its_bounds_is_read(value: JsonValue, read: Read) -> None:
    assert read(Reader({"a": value})) == value


def test_null_is_as_good_as_nothing() -> None:
    for reader in (Reader({"a": None}), Reader({})):
        for read in (reader.string, reader.boolean, reader.integer, reader.number, reader.array, reader.object):
            assert read("a") is None
        assert list(reader.objects("a")) == []
        assert reader.choice("a", ("x",)) is None


def test_a_long_value_is_shown_by_its_beginning() -> None:
    assert shown("x" * MAX_SHOWN) == "x" * MAX_SHOWN
    assert shown("x" * (MAX_SHOWN + 1)) == "x" * MAX_SHOWN + "..."
