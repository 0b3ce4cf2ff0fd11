from __future__ import annotations

import pytest

from parser.block_end import BlockEnd, End


def search(text: str, size: int) -> tuple[End | None, int | None]:
    block_end = BlockEnd()
    for at in range(0, len(text), size):
        if end := block_end.feed(text[at : at + size]):
            return end, block_end.in_string
    return None, block_end.in_string


@pytest.mark.parametrize("size", [1, 2, 5, 100])
@pytest.mark.parametrize(
    ("text", "end", "in_string"),
    [
        ("{}</tool_call>x", End(2, 14, closed=True), None),
        ("{}</TOOL_CALL  >x", End(2, 16, closed=True), None),
        ("{}<tool_call>{", End(2, 2, closed=False), None),
        ("{}<tool_x></tool_call>", End(10, 22, closed=True), None),
        ('{"</tool_call>"}</tool_call>', End(16, 28, closed=True), 14),
        ('{"\\"</tool_call>', None, 16),
        ('{"a\\\\"}</tool_call>', End(7, 19, closed=True), None),
        ("{'</tool_call>'}</tool_call>", End(16, 28, closed=True), 14),
        ("{1} don't</tool_call>", End(9, 21, closed=True), None),
        ('{"<tool_call>"}', None, None),
        ("{}</tool", None, None),
    ],
)
def test_the_end_is_the_first_tag_outside_of_strings(
    text: str, end: End | None, in_string: int | None, size: int
) -> None:
    assert search(text, size) == (end, in_string)
