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


@pytest.mark.parametrize(
    ("text", "written", "rules"),
    [
        ("{“a”: „b”}", '{"a": "b"}', ["curly-quotes"]),
        ("[\u2018a\u2019, “b”]", '["a", "b"]', ["curly-quotes"]),
        ('{"a": """b "c" d"""}', r'{"a": "b \"c\" d"}', ["triple-quotes"]),
        ("{'a': '''it's'''}", '{"a": "it\'s"}', ["single-quotes", "triple-quotes"]),
        ("{a: .5, # half\n}", '{"a": 0.5 \n}', ["unquoted-keys", "number-spelling", "comments", "trailing-comma"]),
        ("{\u00a0}", "{ }", ["other-spaces"]),
        ("[TRUE, Null]", "[true, null]", ["python-literals"]),
        ('["say "hi", he said", "b"]', r'["say \"hi\", he said", "b"]', ["inner-quotes"]),
        ('{"a": "<b class="x">"}', r'{"a": "<b class=\"x\">"}', ["inner-quotes"]),
        (r'["a\n"hi" b"]', r'["a\n\"hi\" b"]', ["inner-quotes"]),
    ],
)
def test_what_has_one_reading_is_written_as_json(text: str, written: str, rules: list[str]) -> None:
    rewritten = rewrite(text)
    assert (rewritten.text, list(rewritten.rules)) == (written, rules)


@pytest.mark.parametrize(
    "text",
    ['["a" + "b"]', '["a" "b"]', '["a"\n"b"]', '["a" if x else "b"]', '{"a": "x" // "y"\n}', '["5" tall"]',
     "[“a “b” c”]",
     '["a”]', '[“a"]', '["""a]', "['it's']", "[“</tool_call>”]", '["""</tool_call>"""]', "[1 000]", "[a]", "[NaN]"],
)  # fmt: skip
def test_what_has_none_or_several_is_refused(text: str) -> None:
    with pytest.raises(UnreadableError):
        rewrite(text)


@given(st.text(alphabet="{}[]\",:'\\ \n/*1a“”#_.+"))
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
