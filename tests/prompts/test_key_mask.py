"""Whether the key stands in what was sent."""

from __future__ import annotations

from prompts import holds_word


def test_a_word_is_found_in_encodings_and_over_two_strings() -> None:
    for strings in (["a 7qhvx b"], ["7qh", "vx"], ["7q\\u0068vx"], ["&#55;qhvx"], ["%37qhvx"], ["7\u200bqhvx"]):
        assert holds_word("7qhvx", strings)
    assert not holds_word("7qhvx", ["7qhv x"])
