from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser.json_scan import MAX_DEPTH, MAX_HELD, ValueScanner, end_of_value

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
TOKENS = st.sampled_from(
    ["{", "}", "[", "]", ",", ":", '"', '"a"', "1", "-", ".5", "e1", "true", "null", " ", "\n", "\\"]
)


def scan(text: str, size: int = 1) -> tuple[str, ValueScanner]:
    """What was released of `text`, and the scanner when it needs no more."""
    scanner = ValueScanner()
    released = ""
    for at in range(0, len(text), size):
        released += scanner.feed(text[at : at + size])
        if scanner.done or scanner.broken:
            break
    return released, scanner


def is_json(text: str) -> bool:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        return False
    return True


@given(JSON, st.sampled_from([None, 1]), st.booleans(), st.integers(1, 9))
def test_a_value_is_released_to_its_end_and_no_further(
    value: object, indent: int | None, ascii_only: bool, size: int
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    released, scanner = scan(text + ", and more", size)
    assert scanner.done
    assert released == text


@given(st.lists(TOKENS, max_size=12).map("".join), st.integers(1, 5))
def test_it_agrees_with_the_standard_library(text: str, size: int) -> None:
    released, scanner = scan(text + " ", size)
    if scanner.done:
        assert is_json(released)
    assert is_json(text) <= scanner.done


@given(st.lists(TOKENS, max_size=12).map("".join), st.integers(2, 7))
def test_how_the_text_is_cut_does_not_show(text: str, size: int) -> None:
    one, by_one = scan(text, 1)
    more, by_more = scan(text, size)
    assert (one, by_one.done, by_one.broken) == (more, by_more.done, by_more.broken)


def test_every_cut_in_two_is_as_good_as_none() -> None:
    text = '{"a": {"b": "c"}, "0": "1", "d": ["e", {"f": "g"}, "h", -1.5e3, true] , "i":"j\\n"}'
    for at in range(len(text)):
        scanner = ValueScanner()
        assert scanner.feed(text[:at]) + scanner.feed(text[at:]) == text
        assert scanner.done


def test_how_far_in_the_text_it_is_does_not_matter() -> None:
    text = '["' + "x" * 2 * MAX_HELD + '" , 1, 2 , true, null, -1.5e3, "y"]'
    assert scan(text, len(text))[0] == text


@pytest.mark.parametrize(
    ("text", "released"),
    [
        ('{"a": "b",}', '{"a": "b"'),
        ('{"a": "b", c', '{"a": "b"'),
        ('{"a": "say "hi"', '{"a": "say '),
        ('{"a": "b\n', '{"a": "b'),
        (r'{"a": "\d', '{"a": "'),
        (r'{"a": "\u12g', '{"a": "'),
        ('{"a": True}', '{"a": '),
        ('{"a": 01,', '{"a": '),
        ("{'a'", "{"),
        ('{"a" "b"', '{"a" '),
        ("[1 2]", "[1 "),
        ("[1}", "[1"),
        ("[" * (MAX_DEPTH + 1), "[" * MAX_DEPTH),
        ("[" + "1" * (MAX_HELD + 1), "["),
        ("[1," + " " * MAX_HELD + "2]", "[1"),
    ],
)
def test_nothing_from_the_first_fault_on_is_released(text: str, released: str) -> None:
    assert scan(text)[0] == scan(text, len(text))[0] == released
    assert scan(text)[1].broken


@pytest.mark.parametrize("before", ['["', '{"', '["a\\\\', '["a\\"'])
def test_inside_of_a_string_plain_characters_go_straight_through(before: str) -> None:
    _, scanner = scan(before)
    for _ in range(2):
        assert scanner.feed("plain") == "plain"
        assert scanner.in_string


@pytest.mark.parametrize("text", ["[", '["a"', '["plain\\', "[1", r'["\u00', '["a", "b'])
def test_other_text_is_looked_at_character_by_character(text: str) -> None:
    assert not scan(text, len(text))[1].in_string


@given(JSON, st.sampled_from(["", " ", "]", "x", "<"]), st.integers(0, 3))
def test_a_value_ends_where_the_standard_library_says_so(value: object, behind: str, before: int) -> None:
    text = f"{' ' * before}{json.dumps([value])}{behind}"
    assert end_of_value(text, before) == len(text) - len(behind)
    assert end_of_value(text[: -len(behind) - 1], before) is None


def test_a_long_value_ends_too() -> None:
    for size in (MAX_HELD - 3, MAX_HELD, 3 * MAX_HELD):
        assert end_of_value(json.dumps(["x" * size]) + "x", 0) == size + 4
