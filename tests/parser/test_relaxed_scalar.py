from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser.relaxed_scalar import RUN, as_json


@pytest.mark.parametrize("word", ["0", "-0", "12", "-1.50", "1E+5", "1e400", "9" * 5000, "true", "false", "null"])
def test_json_stays_as_it_is(word: str) -> None:
    assert as_json(word) == (word, None)


@pytest.mark.parametrize(
    ("word", "written", "rule"),
    [
        ("True", "true", "python-literals"),
        ("FALSE", "false", "python-literals"),
        ("None", "null", "python-literals"),
        ("Null", "null", "python-literals"),
        (".5", "0.5", "number-spelling"),
        ("-.5", "-0.5", "number-spelling"),
        ("5.", "5.0", "number-spelling"),
        ("5.e3", "5.0e3", "number-spelling"),
        ("+1", "1", "number-spelling"),
        ("+.5E-1", "0.5E-1", "number-spelling"),
        ("0x1F", "31", "number-spelling"),
        ("-0Xff", "-255", "number-spelling"),
        ("1_000", "1000", "number-spelling"),
        ("12_345_678.5", "12345678.5", "number-spelling"),
    ],
)
def test_what_has_one_reading_is_written_as_json(word: str, written: str, rule: str) -> None:
    assert as_json(word) == (written, rule)


@pytest.mark.parametrize(
    "word",
    ["", "NaN", "Infinity", "-Infinity", "undefined", "nil", "007", "00", "0o7", "0b1", "1_0", "1_000_00", "1__000",
     "0x", "0x" + "f" * 17, ".", "-", "+", "e5", "1e", "1.2.3", "5f", "2024-01-02", "yes", "tRUE", "+true"],
)  # fmt: skip
def test_what_has_none_or_several_is_refused(word: str) -> None:
    assert as_json(word) is None


@given(st.text(alphabet="0123456789._+-eExXabf", max_size=12))
def test_whatever_is_accepted_is_a_json_number(word: str) -> None:
    assert RUN.fullmatch(word) or not word
    if written := as_json(word):
        assert isinstance(json.loads(written[0]), int | float)
