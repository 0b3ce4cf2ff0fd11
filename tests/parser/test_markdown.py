from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser.markdown import CodeState


def state_after(*pieces: str) -> CodeState:
    state = CodeState()
    for piece in pieces:
        state.feed(piece)
    return state


def quotes(state: CodeState) -> bool:
    """Whether code is open for a character that is no backtick or tilde."""
    state.end_run()
    return state.quoted


QUOTED = ["`", "a `b", "``a`b", "```", "```\n", "```py\nx\n", "  ```\nx", "~~~\n", "~~~\n```\n", "````\n```\n",
          "```\n``` x\n", "```\nx```\n", "```a`b", "~~~a`b\n", "```\n\n\n", "`a``",
          "- ```\nx", "1. ```sh\n", " 12) * ~~~\n",
          "> ```", "> ```\n> x", "> ```\n>", ">```\n> x\n> ", "> > ~~~\n> > ", "> - ```\n>   x", "- > ```\n  > x",
          "> ```\n> a ```\n> ", "> ```\n> ~~~\n> ", "> ```\nx\n> ```\n> x", "```\n> ```\n", "> ```\n```\n",
          "a ```\n", "a ```xml \r\n\nb", "\u5199\uff1a````c++\n```\n", "- a: ```\n", "a" * 40 + ": ```\n",
          "1234567890. ```\n", "> a ```\n> ", "- > a > b ```js\n  > x\n  > ", "-" + " " * 40 + "```\n", "`a` ```\n",
          "`a``b` ```x\n"]  # fmt: skip
FREE = ["", "a", "`a`", "``a`b``", "`a\n", "```\nx\n```\n", "```\nx\n``````  \n", "~~~\nx\n~~~\n", "~~~ x\n~~~\n", "~~",
        "a ~~~\n", "a ~~~~ b\n", "a ``` b\n", "a ```b```\n", "a ``\n", "a ```.\n", "a `b ```\n", "a ```\u5199\n",
        "```a`b```", "```a```\n", "> a\n", "```\n```\n", "`` ` ``", "-```\n", "a```\n", "a" * 40 + "```\n",
        "- ```sh\n  x\n  ```\n", "1. ```\nx\n```\n", "- ```x``` y\n",
        "> ```\n> x\n> ```\n> ", "> ```\n> x\n", "> ```\nx", "> ```\n\n> x", "> a ```\n", "> a ```\nx",
        "> ```a`b```\n> ", "a ```\nx\n```\n", "a: ```sh\nx\n\n````\nb", "> a ```\n> x\n> ```\n> ",
        "a ```" + "b" * 40 + "\n", "a ```b" + " " * 40 + "c\n"]  # fmt: skip


@pytest.mark.parametrize("text", QUOTED)
def test_open_code_quotes_what_follows(text: str) -> None:
    assert quotes(state_after(text))


@pytest.mark.parametrize("text", FREE)
def test_ended_code_quotes_nothing(text: str) -> None:
    assert not quotes(state_after(text))


@pytest.mark.parametrize("text", QUOTED + FREE)
def test_every_cut_in_two_is_as_good_as_none(text: str) -> None:
    for at in range(len(text)):
        assert quotes(state_after(text[:at], text[at:])) is (text in QUOTED)


@pytest.mark.parametrize(
    ("text", "blank"), [("", True), ("a\n", True), ("a\n \t", True), ("a", False), ("\n `", False)]
)
def test_a_line_is_blank_until_something_stands_on_it(text: str, blank: bool) -> None:
    state = state_after(text)
    state.end_run()
    assert state.blank is blank


@given(st.lists(st.sampled_from(["`", "``", "```", "~~~", "\n", " ", "a", "é", "\r", "\x1f", "-", "1", ". ", "> "])))
def test_how_the_text_is_cut_does_not_show(pieces: list[str]) -> None:
    whole, cut = state_after("".join(pieces)), state_after(*pieces)
    assert (quotes(whole), whole.blank, whole.has_words) == (quotes(cut), cut.blank, cut.has_words)
    whole.feed("x\n")
    cut.feed("x\n")
    assert (quotes(whole), whole.blank, whole.has_words) == (quotes(cut), cut.blank, cut.has_words)


@given(st.sampled_from(QUOTED + FREE), st.text(alphabet="a \n\t\r"), st.sampled_from(["", "```", "~~~"]))
def test_lines_without_marks_are_read_as_well_at_once_as_one_by_one(before: str, text: str, after: str) -> None:
    at_once, one_by_one = state_after(before, text, after), state_after(before, *text, after)
    assert (quotes(at_once), at_once.blank) == (quotes(one_by_one), one_by_one.blank)
    assert at_once.has_words == one_by_one.has_words
    # Beside a backtick that changes nothing, no line is passed over.
    assert quotes(state_after(before, text + "\n")) == quotes(state_after(f"{before}{text}\n``\n"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", False),
        ("So", True),
        ("So\n", False),
        ("So\n- ", False),
        ("> 12. ** ", False),
        ("- `x` ", True),
        ("\u5199", True),
    ],
)
def test_a_line_begins_with_words_behind_its_marks(text: str, words: bool) -> None:
    state = state_after(text)
    assert state.has_words == words
    behind = state.behind_block()
    assert (behind.has_words, behind.blank) == (words, False)
    behind.feed("```")
    assert quotes(behind)
    behind.feed("\n")
    assert (behind.has_words, behind.blank, quotes(behind)) == (False, True, False)
