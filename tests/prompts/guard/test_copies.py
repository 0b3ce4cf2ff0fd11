from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from prompts.guard.characters import typed
from prompts.guard.copies import joined


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
