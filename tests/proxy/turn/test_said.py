"""What is known of the text that a client has: whether a second answer goes on with it, and whether it is an answer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from proxy.contracts import AnswerMessageEnded, AnswerText, ReasoningItemEnded
from proxy.turn.outlet import MAX_PREFACE, LeftText, Said

LONGEST = "word " * (MAX_PREFACE // 5)


def left_text(*texts: str) -> LeftText:
    left = LeftText()
    for text in texts:
        left.note(AnswerText(text))
    return left


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
    left = left_text(*before)
    assert left.said.preface == "", "without a call they are one"
    left.pass_block()
    for text in behind:
        left.note(AnswerText(text))
    assert (bool(left.said.preface), left.said.words) == (words is not None, words or ())


def test_what_is_an_answer_by_itself_is_no_preface() -> None:
    left = left_text('{"a": 1}')
    left.is_answer = True
    left.pass_block()
    assert left.said == Said(shown=True, beginning='{"a": 1}')


def test_a_second_answer_may_go_on_with_one_message_that_is_not_too_long() -> None:
    assert LeftText().said == Said()
    left = left_text("one ", "two")
    left.note(ReasoningItemEnded())
    assert left.said == Said(shown=True, beginning="one two")
    left.note(AnswerMessageEnded())
    assert left.said == Said(shown=True)
    assert left_text(*["x"] * 4095).said.beginning == "x" * 4095
    assert left_text(*["x"] * 4096).said == Said(shown=True)
