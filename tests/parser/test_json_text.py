from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser.json_text import StringDecoder, decode_string, elements_of, members_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(st.dictionaries(st.text(), JSON), st.sampled_from([None, 1]))
def test_members_come_back_as_they_were_written(value: dict[str, object], indent: int | None) -> None:
    members = members_of(json.dumps(value, indent=indent))
    assert [key for key, _ in members] == list(value)
    assert [json.loads(text) for _, text in members] == list(value.values())


@given(st.lists(JSON))
def test_elements_come_back_as_they_were_written(value: list[object]) -> None:
    assert [json.loads(text) for text in elements_of(json.dumps(value))] == value


def test_numbers_and_duplicates_are_kept() -> None:
    digits = "9" * 5000
    assert members_of('{ "a" : 1.10 , "a":' + digits + "}") == [("a", "1.10"), ("a", digits)]


@given(st.text())
def test_a_string_is_decoded(text: str) -> None:
    assert decode_string(json.dumps(text)[1:-1]) == text


@pytest.mark.parametrize("escape", [r"\ud83d", r"\uDE00", r"\ude00\ud83d"])
def test_a_lone_surrogate_stays_an_escape(escape: str) -> None:
    assert decode_string(escape) == escape.lower()
    decode_string(escape).encode()


@given(st.lists(st.sampled_from(["a", r"\n", r"\\", r"\"", r"\ud83d", r"\ude00", r"\u00e9", "é"])))
def test_pieces_are_decoded_as_the_whole_is(pieces: list[str]) -> None:
    decoder = StringDecoder()
    decoded = "".join(decoder.decode(piece) for piece in pieces) + decoder.decode("", final=True)
    assert decoded == decode_string("".join(pieces))
