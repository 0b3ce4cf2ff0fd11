from __future__ import annotations

import pytest

from prompts import BLOCK, CONTEXT
from proxy.turn.shown_text import TextBefore


@pytest.mark.parametrize("size", [1, 7, 5000])
def test_so_much_is_kept_of_the_text_in_front_of_a_call_however_it_came(size: int) -> None:
    before, text = TextBefore(), "".join(f"{number} " for number in range(3000))
    for start in range(0, len(text), size):
        before.feed(text[start : start + size])
    assert before.text == text[-CONTEXT:]


def test_a_block_leaves_a_mark() -> None:
    before = TextBefore()
    before.feed("one ")
    before.feed()
    before.feed(" two")
    assert before.text == f"one {BLOCK} two"
