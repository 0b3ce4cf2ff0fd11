"""What a text says, however it is spelled."""

from __future__ import annotations

import html
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts import escape, essence
from prompts.spelling import typed

LETTERS = st.text(st.sampled_from("abcXYZ019"), min_size=1)


@pytest.mark.parametrize(
    "text",
    [
        "tool_call", "TOOL_CALL", "tool&#95;call", "tool&amp;#95;call", "tool%5Fcall", "tool%255Fcall",
        "tool\\u005fcall",
        "tool\\\\u005fcall", "tool\\x5fcall", "tool\\u{5f}call", "to\u200bol_call", "\uff54ool_call",
        "t\u03bfol_\u0441all",
        "t o o l _ c a l l", "tool_\ncall", "tool\\n_call", "\x1b[01;31mtool\x1b[m_call", '"tool" + "_call"',
        "\U0001d42dool_call", "\\U0000005ftool\\U0000005fcall", "\u1d1b\u1d0f\u1d0f\u029f_\u1d04\u1d00\u029f\u029f",
        "tool\\137call", "tool=5Fcall", "toolU+005Fcall", "t\u00f6\u00f2l_c\u00e4ll", "to\u0301ol_call",
    ],
)  # fmt: skip
def test_many_spellings_say_the_same(text: str) -> None:
    assert essence(text) == "toolcall"


@given(LETTERS)
def test_encodings_on_top_of_one_another_say_what_is_in_them(text: str) -> None:
    encodings = (json.dumps, html.escape, lambda inner: quote(inner, safe=""), escape)
    for outer in encodings:
        for inner in encodings:
            assert essence(outer(inner(f"<{text}>"))) == text.casefold()


@given(st.text(), st.text())
def test_what_stands_in_a_text_stands_in_its_essence(text: str, rest: str) -> None:
    """So that words are found: but where a text ends in half an escape, or goes on with one."""
    if not set("\\&%=+\x1b") & {*text, *rest}:
        assert essence(text) in essence(f"{rest} {text} {rest}")


@given(st.text())
def test_nothing_but_letters_and_digits_is_left(text: str) -> None:
    assert all(char.isalnum() or not char.isascii() for char in essence(text))
    assert essence(essence(text)).isalnum() or not essence(essence(text)).isascii() or not essence(text)


@pytest.mark.parametrize("beginning", ["\\", "&amp;", "%25", "\x1b[", "&#0", "\\u00"])
def test_text_of_nothing_but_beginnings_of_escapes_is_read_in_a_moment(beginning: str) -> None:
    """It hangs where this is not so."""
    assert "toolcall" not in essence(beginning * 100_000)


def test_what_only_looks_like_a_character_is_typed_as_it() -> None:
    assert typed("\u201ca\u201d") == '"a"'
