"""Whether the key stands in what was sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts import Beginnings, Text, Transcript, UserTurn, holds_word, was_sent


def test_a_word_is_found_in_encodings_and_over_two_strings() -> None:
    for strings in (["a 7qhvx b"], ["7qh", "vx"], ["7q\\u0068vx"], ["&#55;qhvx"], ["%37qhvx"], ["7\u200bqhvx"]):
        assert holds_word("7qhvx", strings)
    assert not holds_word("7qhvx", ["7qhv x"])


WORD = "7qhvx"
PIECES = st.lists(
    st.sampled_from(
        ["7qh", "vx", "7QHVX", "\u200b", " ", "\n", "%37", "qhv", "&#x78;", "&amp;#x78;", "\\u0078", "%2537", "x"]
    ),
    max_size=4,
)


@given(st.lists(PIECES.map("".join), max_size=6), st.lists(st.integers(0, 6), max_size=3), PIECES.map("".join))
def test_a_word_is_found_wherever_the_conversation_was_looked_through_before(
    texts: list[str], cuts: list[int], instructions: str
) -> None:
    entries = tuple(UserTurn((Text(text),)) for text in texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prompts.key_mask._BEGINNINGS", Beginnings(1_000_000))
        for cut in cuts:
            was_sent(WORD, Transcript(entries[:cut], instructions), [])
        for others in ([], ["x"]):
            sent = holds_word(WORD, [instructions, *texts, *others])
            assert was_sent(WORD, Transcript(entries, instructions), others) == sent
