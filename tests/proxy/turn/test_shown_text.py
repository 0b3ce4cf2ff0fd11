"""The text of one answer: which of it is shown, and what is known of that in the end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from prompts import CONTEXT
from proxy.turn import TurnReport
from proxy.turn.filters import Chain, OwnNotation
from proxy.turn.outlet import Outlet
from proxy.turn.shown_text import MAX_PREFACE, ShownText

LONGEST = "word " * (MAX_PREFACE // 5)


def shown_text() -> ShownText:
    return ShownText(Outlet(TurnReport()), TurnReport(), OwnNotation([]), Chain([]))


@pytest.mark.parametrize(
    ("before", "behind", "words"),
    [
        (["I ", "look.\n", " And see. "], [" \n"], ("I look.", "And see.")),
        ([LONGEST], [], (LONGEST.strip(),)),
        ([LONGEST, "s"], [], None),
        ([LONGEST + "s"], [], None),
        (["I look."], ["So."], None),
        ([], [], None),
    ],
)
def test_words_in_front_of_a_call_that_is_taken_out_are_no_answer(
    before: Sequence[str], behind: Sequence[str], words: tuple[str, ...] | None
) -> None:
    said = shown_text()
    for piece in before:
        said.feed(piece)
    assert said.said.words == (), "without a call they are one"
    said.pass_call("rm", "<tool_call>")
    for piece in behind:
        said.feed(piece)
    assert (bool(said.said.preface), said.said.words) == (words is not None, words or ())


@pytest.mark.parametrize("size", [1, 7, 5000])
def test_so_much_is_kept_of_the_text_in_front_of_a_call_however_it_came(size: int) -> None:
    said, text = shown_text(), "".join(f"{number} " for number in range(3000))
    for start in range(0, len(text), size):
        said.feed(text[start : start + size])
    assert said.before == text[-CONTEXT:]
