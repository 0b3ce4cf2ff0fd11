"""What is known of the text in front of a call, by which its place is told."""

from __future__ import annotations

import pytest

from prompts import BLOCK, CONTEXT
from tests.proxy.turn.playing import reading_of


@pytest.mark.parametrize("size", [1, 7, 5000])
def test_so_much_is_kept_of_the_text_in_front_of_a_call_however_it_came(size: int) -> None:
    shown, text = reading_of().text, "".join(f"{number} " for number in range(3000))
    for start in range(0, len(text), size):
        shown.feed(text[start : start + size])
    assert shown.before == text[-CONTEXT:]


def test_a_block_leaves_a_mark() -> None:
    shown = reading_of().text
    shown.feed("one ")
    shown.pass_call("read_note")
    shown.feed(" two")
    shown.show_block("a block that is text")
    assert shown.before == f"one {BLOCK} two{BLOCK}"
