from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser.json_text import (
    decode_string,
    elements_of,
    members_of,
    nested_objects,
    without_member,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(st.dictionaries(st.text(), JSON), st.sampled_from([None, 1]))
def test_members_come_back_as_they_were_written(value: dict[str, object], indent: int | None) -> None:
    members = members_of(json.dumps(value, indent=indent))
    assert [key for key, _ in members] == list(value)
    assert [json.loads(text) for _, text in members] == list(value.values())


@given(st.dictionaries(st.text(), JSON), st.text(), st.sampled_from([None, 1]))
def test_a_member_is_taken_out_alone(value: dict[str, object], key: str, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    assert without_member(text, key) == text or key in value
    for name in value:
        left = members_of(without_member(text, name))
        assert left == [member for member in members_of(text) if member[0] != name]


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


def test_objects_in_objects_are_found_with_what_follows_them() -> None:
    text = r'[{"a": {"b": [{"c": {}}, 1], "\"}": "{,:"} , "d": {"e": 1 }}]'
    assert sorted(nested_objects(text)) == [(0, False), (1, False), (2, True)]
    assert not [*nested_objects("[1, {}, []]")]


@given(JSON)
def test_objects_in_objects_are_all_found(value: object) -> None:
    found: list[int] = []

    def count(inner: object, *, nested: bool) -> None:
        if isinstance(inner, dict):
            if nested:
                found.append(len(inner))
            for member in inner.values():
                count(member, nested=True)
        elif isinstance(inner, list):
            for element in inner:
                count(element, nested=False)

    count(value, nested=False)
    assert sorted(members for members, _ in nested_objects(json.dumps([value]))) == sorted(found)
