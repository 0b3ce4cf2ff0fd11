from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.backends.chat.thinking import ThinkingReader, Thought


def read(*pieces: str) -> tuple[str, str]:
    """What was thought, and the answer."""
    reader = ThinkingReader()
    told = [part for piece in pieces for part in reader.receive_text(piece)]
    told += reader.receive_eof()
    thought = "".join(part.text for part in told if isinstance(part, Thought))
    return thought, "".join(part for part in told if isinstance(part, str))


CASES = {
    "plain": ("Hello.", "", "Hello."),
    "thought": ("<think>Hm.</think>\n\nHello.", "Hm.", "Hello."),
    "white space in front": ("\n <think>\nHm.\n</think>Hello.", "Hm.\n", "Hello."),
    "nothing thought": ("<think>\n\n</think>\n\nHello.", "", "Hello."),
    "no end": ("<think>Hm. </thi", "Hm. </thi", ""),
    "only a beginning": (" <thi", "", " <thi"),
    "another tag": ("<thin>Hello.", "", "<thin>Hello."),
    "in the answer": ("Use <think>x</think>.", "", "Use <think>x</think>."),
    "twice": ("<think>a</think> b <think>c</think>", "a", "b <think>c</think>"),
    "a call": ("<think>a</think><tool_call>{}</tool_call>", "a", "<tool_call>{}</tool_call>"),
    "blank": ("  \n", "", "  \n"),
}


@pytest.mark.parametrize(("text", "thought", "answer"), CASES.values(), ids=CASES)
def test_thoughts_in_front_of_the_answer_are_told_from_it(text: str, thought: str, answer: str) -> None:
    assert read(text) == (thought, answer)
    assert read(*text) == (thought, answer)


@given(st.lists(st.sampled_from([*"<>/think \nab", "<think>", "</think>"])), st.lists(st.integers(1, 5)))
def test_how_a_text_is_cut_does_not_show(letters: list[str], sizes: list[int]) -> None:
    text = "".join(letters)
    pieces, at = [], 0
    for size in sizes:
        pieces.append(text[at : at + size])
        at += size
    assert read(*pieces, text[at:]) == read(text)


@given(st.text(alphabet="<>/think \nab"))
def test_what_is_no_thought_leaves_as_it_came(text: str) -> None:
    if not text.lstrip().startswith("<think>"):
        assert read(text) == ("", text)
