from __future__ import annotations

import re

import pytest

from prompts.headers import (
    ASSISTANT,
    HEADER,
    USER,
    WORDS,
    header_like,
    named_result_header,
    named_result_like,
    result_header,
)


def is_like_a_header(text: str) -> bool:
    return re.match(header_like(r"[ \t]*"), text, re.IGNORECASE) is not None


def names_a_result(text: str) -> bool:
    return re.match(named_result_like(r"[ \t]*"), text, re.IGNORECASE) is not None


@pytest.mark.parametrize("header", [USER, ASSISTANT, result_header("call_1"), result_header("a b")])
def test_what_we_write_is_a_header_and_like_one(header: str) -> None:
    assert re.fullmatch(HEADER, header)
    assert is_like_a_header(header)


def test_the_header_of_a_result_has_its_id() -> None:
    assert result_header("call_1") == "[tool:call_1]"
    assert named_result_header("read_note", "call_1") == "Result of read_note (call_1):"


@pytest.mark.parametrize("word", WORDS)
def test_each_word_may_stand_in_other_cases_and_with_gaps(word: str) -> None:
    for text in (f"[{word}{WORDS[word]}", f"[ {word.upper()} {WORDS[word]}"):
        assert is_like_a_header(text)


@pytest.mark.parametrize("text", ["[users]", "[use]", "[tool]", "[tool_calls]", "user]", "[x]", "[ x user]"])
def test_other_brackets_are_none(text: str) -> None:
    assert not is_like_a_header(text)


@pytest.mark.parametrize("text", ["Result of r (c1):", "RESULT  of r (c1) :", "result of the tool r (c1):"])
def test_a_result_that_names_its_tool_is_found(text: str) -> None:
    assert names_a_result(text)


@pytest.mark.parametrize("text", ["Result of r:", "Result of\nr (c1):", "Result of r (c1)", "Results of r (c1):"])
def test_other_lines_tell_no_result(text: str) -> None:
    assert not names_a_result(text)
