from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser.relaxed_json import UnreadableError, rewrite

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(JSON, st.sampled_from([None, 1]), st.booleans())
def test_json_comes_back_character_for_character(value: object, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    rewritten = rewrite(text)
    assert (rewritten.text, rewritten.end, rewritten.rules) == (text, len(text), ())


@given(st.dictionaries(st.text(), st.text()))
def test_raw_control_characters_are_escaped(value: dict[str, str]) -> None:
    text = json.dumps(value)
    for escape, char in (("\\n", "\n"), ("\\t", "\t"), ("\\r", "\r")):
        if "\\" + escape not in text:
            text = text.replace(escape, char)
    assert json.loads(rewrite(text).text) == value


@given(
    st.dictionaries(st.text(alphabet="abc_"), st.none() | st.booleans() | st.integers() | st.text(alphabet="ab'\"\\\n"))
)
def test_what_python_prints_is_read(value: dict[str, object]) -> None:
    assert json.loads(rewrite(repr(value)).text) == value


@given(st.text(alphabet="{}[]\",:'\\ \n/*1a"))
def test_what_is_read_is_json(text: str) -> None:
    try:
        rewritten = rewrite(text)
    except UnreadableError:
        return
    json.loads(rewritten.text)


@pytest.mark.parametrize("text", ['{"a": 1', "[1, 2", '{"a": {"b": 1}'])
def test_what_its_author_did_not_end_is_not_completed(text: str) -> None:
    assert rewrite(text, closed=True).rules == ("missing-closers",)
    with pytest.raises(UnreadableError):
        rewrite(text, closed=False)


@pytest.mark.parametrize("text", ['{"a": 1,', '{"a":', '{"a"', "{", "[1,", '{"a": "b', '{"a": tru', ""])
def test_what_ends_within_a_member_is_never_completed(text: str) -> None:
    with pytest.raises(UnreadableError):
        rewrite(text, closed=True)
