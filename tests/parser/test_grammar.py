from __future__ import annotations

import re

import pytest

from parser import write_call
from parser.grammar import CLOSE, CLOSE_BEGUN, CLOSE_BEHIND, CLOSE_BEHIND_BEGUN, OPEN, OPEN_BEGUN


def test_a_call_is_written_as_prompts_teach_it() -> None:
    assert write_call("read_note", '{"path": "a.md"}') == (
        '<tool_call>{"name": "read_note", "arguments": {"path": "a.md"}}</tool_call>'
    )


def test_a_key_is_the_first_member_of_the_call() -> None:
    assert write_call("r", "{}", key="k1") == '<tool_call>{"key": "k1", "name": "r", "arguments": {}}</tool_call>'


@pytest.mark.parametrize(
    ("tag", "whole", "begun"),
    [
        ("<Tool_Call \n>", OPEN, OPEN_BEGUN),
        ("</TOOL_CALL  >", CLOSE, CLOSE_BEGUN),
        ("</TOOL_CALL  >", CLOSE_BEHIND, CLOSE_BEHIND_BEGUN),
        ("<\\/tool_call>", CLOSE_BEHIND, CLOSE_BEHIND_BEGUN),
    ],
)
def test_a_tag_is_begun_until_it_is_whole(tag: str, whole: re.Pattern[str], begun: re.Pattern[str]) -> None:
    for length in range(1, len(tag)):
        assert begun.match(tag[:length])
        assert not whole.match(tag[:length])
    assert whole.match(tag)
    assert not begun.match(tag)
