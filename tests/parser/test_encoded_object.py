from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser.encoded_object import EncodedObject
from parser.json_scan import ValueScanner


def decode(string: str, size: int) -> tuple[str, EncodedObject]:
    """What is released of the object in that JSON string, which comes in pieces as a scanner releases them."""
    scanner, encoded = ValueScanner(), EncodedObject()
    released = ""
    for at in range(0, len(string), size):
        piece = scanner.feed(string[at : at + size])
        released += encoded.feed(piece, final=scanner.done)
        if encoded.broken:
            break
    return released, encoded


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.dictionaries(st.text(), JSON, max_size=4), st.booleans(), st.booleans(), st.integers(1, 9))
def test_the_object_comes_out_as_it_was_before_it_was_encoded(
    value: dict[str, object], ascii_inside: bool, ascii_outside: bool, size: int
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_inside)
    released, encoded = decode(json.dumps(text, ensure_ascii=ascii_outside), size)
    assert released == text
    assert not encoded.broken


def test_white_space_round_the_object_is_dropped() -> None:
    released, encoded = decode(r'" \n{\"a\": 1}\n "', 3)
    assert released == '{"a": 1}'
    assert not encoded.broken


@pytest.mark.parametrize(
    "string", ['""', '"a"', '"[1]"', r'"{\"a\": 1"', r'"{} {}"', r'"{}x"', r'"{\"a\": x}"', r'"{\"a\n\": 1}"']
)
@pytest.mark.parametrize("size", [1, 4, 100])
def test_anything_else_is_broken(string: str, size: int) -> None:
    assert decode(string, size)[1].broken


def test_nothing_from_the_fault_on_is_released() -> None:
    assert decode(r'"{\"a\": 1, \"b\" 2}"', 4)[0] == '{"a": 1, "b" '
