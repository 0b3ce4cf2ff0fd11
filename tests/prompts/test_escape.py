from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parser import CLOSE_TAG, OPEN_TAG
from parser.grammar import CLOSE, OPEN
from prompts import JsonUnescaper, Unescaper, escape, escape_json, indent, normalise_newlines, unescape, unescape_json
from tests.support.cpu_time import any_round, cpu_seconds

PIECES = [
    "<",
    "\\",
    "/",
    " ",
    "\n",
    "\u200b",
    "\u00ad",
    "tool_call",
    "Tool_Call",
    "tool",
    "_",
    "call",
    ">",
    '"',
    "x",
    "é",
]
TAGGY = st.lists(st.sampled_from(PIECES) | st.text(max_size=2)).map("".join)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TAGGY,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TAGGY, inner, max_size=3),
    max_leaves=8,
)
TAG = re.compile(r"<[\s/\u200b\u00ad\ufeff]*tool_call", re.IGNORECASE)

SPELLINGS = [
    OPEN_TAG,
    CLOSE_TAG,
    "<TOOL_CALL>",
    "<Tool_Call >",
    "< tool_call>",
    "<\ttool_call>",
    "<\ntool_call>",
    "</ tool_call>",
    "< /tool_call>",
    "<//tool_call>",
    "<tool_call/>",
    '<tool_call name="x">',
    "<tool_calls>",
    "<\u200btool_call>",
    "<\u00adtool_call>",
    "<\ufefftool_call>",
    "<\u2060/\u200dtool_call>",
    "<tool\u200b_call>",
    "<t\u00adool_call>",
    "<\u3000tool_call>",
    "<\x00tool_call>",
]


def deep(value: object) -> object:
    match value:
        case str():
            return escape(value)
        case list():
            return [deep(item) for item in value]
        case dict():
            return {escape(str(key)): deep(item) for key, item in value.items()}
        case _:
            return value


@given(TAGGY | st.text())
def test_what_was_escaped_comes_back(text: str) -> None:
    assert unescape(escape(text)) == text


@given(TAGGY)
def test_escaped_text_has_no_tag(text: str) -> None:
    assert not TAG.search(escape(text))


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_a_tag_gets_a_backslash(spelling: str) -> None:
    once = escape(f"a {spelling} b")
    assert once == f"a <\\{spelling[1:]} b"
    assert escape(once) == f"a <\\\\{spelling[1:]} b"
    assert unescape(once) == f"a {spelling} b"


@given(TAGGY, st.from_regex(OPEN, fullmatch=True) | st.from_regex(CLOSE, fullmatch=True), TAGGY)
def test_nothing_is_left_that_the_parser_takes_for_a_tag(before: str, tag: str, after: str) -> None:
    escaped = escape(before + tag + after)
    assert not OPEN.search(escaped)
    assert not CLOSE.search(escaped)


@pytest.mark.parametrize(
    "text", ["<tool_box>", "<toolbar/>", "a < b tool_call", "&lt;tool_call&gt;", r"<\n", "tool_call"]
)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert escape(text) == text
    assert unescape(text) == text


@given(TAGGY, st.lists(st.integers(0, 60)))
@example("<\\" + " " * 64 + "tool_call>", [1, 2, 5])
@example("<\\" + " " * 65 + "tool_call>", [2, 40])
@example(r"<\\\tool_cal", [1, 2, 3, 4, 5, 6])
def test_how_streamed_text_is_cut_does_not_show(text: str, cuts: list[int]) -> None:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    unescaper = Unescaper()
    pieces = [unescaper.feed(text[begin:end]) for begin, end in pairwise(places)]
    assert "".join(pieces) + unescaper.flush() == unescape(text)


def test_streamed_text_is_held_back_only_while_a_tag_may_be_forming() -> None:
    unescaper = Unescaper()
    assert unescaper.feed("if a <") == "if a <"
    assert unescaper.feed(" b then") == " b then"
    assert unescaper.feed(r"x <\\\tool") == r"x <\\"
    assert unescaper.feed("box") == r"\toolbox"
    assert unescaper.feed(r"<\/tool_") == "<"
    assert unescaper.feed("call>") == "/tool_call>"
    assert unescaper.flush() == ""


def test_what_is_held_back_is_bounded() -> None:
    unescaper = Unescaper()
    unescaper.feed("<\\")
    assert sum(len(unescaper.feed(" ")) for _ in range(1000)) > 900


@given(JSON, st.booleans(), st.sampled_from([None, 1]))
def test_json_is_escaped_in_its_values(value: object, ascii_only: bool, indentation: int | None) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only, indent=indentation)
    assert json.loads(escape_json(raw)) == deep(value)
    assert unescape_json(escape_json(raw)) == raw


@pytest.mark.parametrize(
    ("raw", "escaped"),
    [
        (r'{"a": "<tool_call>"}', r'{"a": "<\\tool_call>"}'),
        (r'{"a": "<\/tool_call>"}', r'{"a": "<\\\/tool_call>"}'),
        (
            r'{"a": "\u003ctool\u005fcall\u003e", "b": "\u00e9"}',
            r'{"a": "\u003c\\tool\u005fcall\u003e", "b": "\u00e9"}',
        ),
        (r'{"<tool_call>": 1e400}', r'{"<\\tool_call>": 1e400}'),
        (r'{"a": "<", "tool_call": 1}', r'{"a": "<", "tool_call": 1}'),
        (r'["<\\tool_call>"]', r'["<\\\\tool_call>"]'),
    ],
)
def test_json_keeps_every_other_character(raw: str, escaped: str) -> None:
    assert escape_json(raw) == escaped
    assert unescape_json(escaped) == raw


@pytest.mark.growth
def test_tags_in_a_string_of_json_cost_the_same_each_however_many_there_are() -> None:
    few, many = (json.dumps("<tool_call>" * number) for number in (2_000, 32_000))

    def there_and_back(raw: str) -> float:
        return cpu_seconds(lambda: unescape_json(escape_json(raw)))

    for each in any_round():
        with each:
            assert there_and_back(many) < 16 * 3 * there_and_back(few)


@pytest.mark.growth
def test_a_long_string_of_json_that_waits_for_its_end_is_looked_through_once() -> None:
    def streamed(pieces: int) -> float:
        def stream() -> None:
            restored = JsonUnescaper()
            told = [restored.feed(piece) for piece in ('{"a": "<', r"\\tool_call>", *["some word"] * pieces, '"}')]
            assert "".join(told) == '{"a": "<tool_call>' + "some word" * pieces + '"}'

        return cpu_seconds(stream)

    for each in any_round():
        with each:
            assert streamed(16_000) < 16 * 3 * streamed(1_000)


@given(st.text())
def test_json_escaping_takes_any_text(text: str) -> None:
    assert unescape_json(escape_json(text)) == text


@given(st.text(alphabet="a \r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"))
def test_after_normalising_there_is_one_kind_of_newline(text: str) -> None:
    lines = normalise_newlines(text).split("\n")
    assert [line for line in lines if len(line.splitlines()) > 1] == []
    assert lines == re.split("\r\n|[\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]", text)


@given(st.text(alphabet="a \n[") | st.text())
def test_no_further_line_begins_in_column_0(text: str) -> None:
    moved = indent(text)
    assert all(line == "" or line.startswith("  ") for line in moved.split("\n")[1:])
    assert moved.replace("\n  ", "\n") == text or "\n  " in text
