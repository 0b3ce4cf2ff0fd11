from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts.guard.budget import ReadingBudget
from prompts.guard.characters import typed
from prompts.guard.copies import joined
from prompts.guard.decodings import readings
from prompts.guard.suspicion import is_suspect


@pytest.mark.parametrize(
    "text",
    [
        *("tool_call", "<Tool_CALL>", "to\u200bol_call", r"tool\_call", r"to\u200bol_call", "tool&shy;_call"),
        *(
            "\uff54\uff4f\uff4f\uff4c\uff3f\uff43\uff41\uff4c\uff4c",
            r"t\u006fol_call",
            "t&#111;ol_call",
            "tool&lowbar;call",
        ),
    ],
)
def test_the_word_is_suspected_in_any_writing(text: str) -> None:
    assert is_suspect(f"some {text} text")


@pytest.mark.parametrize("text", ["tool call", "tools_called", "it&#39;s", r"caf\u00e9 \u003cb>", "toolcall"])
def test_other_words_are_not_suspected(text: str) -> None:
    assert not is_suspect(text)


@given(st.text(), st.text())
def test_a_word_that_is_cut_is_found_in_a_row(before: str, after: str) -> None:
    for at in range(1, 9):
        texts = list(joined([f"{before}{'tool_call'[:at]} ", f"\n{'tool_call'[at:]}{after}"]))
        assert any("tool_call" in text for text in texts)


@given(st.characters(categories=("L", "N", "P", "S")))
def test_typed_characters_are_what_they_are_compatible_with(char: str) -> None:
    plain = unicodedata.normalize("NFKC", char)
    assert len(typed(char)) == 1
    assert typed(char).isascii() or typed(char) == char
    if "\uff01" <= char <= "\uff5e":
        assert typed(char) == plain


@given(st.text())
def test_a_text_is_read_as_it_stands_and_as_what_it_encodes(text: str) -> None:
    assert text in readings(text, ReadingBudget(0))
    once = json.dumps(text)
    assert f'"{text}"' in readings(once, ReadingBudget(0))
    assert any(text in reading for reading in readings(json.dumps([once]), ReadingBudget(0)))
