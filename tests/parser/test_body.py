from __future__ import annotations

import pytest

from parser.body import MAX_TAIL_CHARS, Body, Collected, TooLong
from tests.parser.reading import cut

SIZES = pytest.mark.parametrize("size", [1, 3, 0])


def collect(body: Body, text: str, size: int) -> Collected | TooLong:
    """What becomes of the body; what it leaves is joined to what was not fed."""
    pieces = cut(text, size)
    for number, piece in enumerate(pieces, 1):
        unread = "".join(pieces[number:])
        match body.feed(piece):
            case None:
                continue
            case TooLong(kept, rest):
                return TooLong(kept, rest + unread)
            case Collected(kept, tag, rest, closed, in_string):
                return Collected(kept, tag, rest + unread, closed, in_string)
    return body.end()


@SIZES
@pytest.mark.parametrize(
    ("text", "collected"),
    [
        ("[1]</tool_call> x", Collected("[1]", "</tool_call>", " x", closed=True, in_string=None)),
        ("[1]</TOOL_CALL >", Collected("[1]", "</TOOL_CALL >", "", closed=True, in_string=None)),
        ("[1]\n<tool_call>{", Collected("[1]\n", "", "<tool_call>{", closed=False, in_string=None)),
        ("[1", Collected("[1", "", "", closed=False, in_string=None)),
        ("[1]</tool", Collected("[1]", "</tool", "", closed=False, in_string=None)),
        ('["</tool_call>"', Collected('["</tool_call>"', "", "", closed=False, in_string=14)),
    ],
)
def test_it_ends_at_a_tag_or_with_the_answer(text: str, collected: Collected, size: int) -> None:
    assert collect(Body(100, None), text, size) == collected


@SIZES
def test_it_may_be_as_long_as_allowed_and_no_longer(size: int) -> None:
    fits = "x" * 20 + "</tool_call>"
    assert isinstance(collect(Body(len(fits), None), fits, size), Collected)
    assert collect(Body(20, None), "x" * 30, size) == TooLong("x" * 20, "x" * 10)


@SIZES
def test_behind_a_whole_call_a_tag_is_awaited_for_a_while(size: int) -> None:
    rest = "\nI look." + " x" * MAX_TAIL_CHARS
    end = 2 + MAX_TAIL_CHARS
    text = "{}" + rest
    assert collect(Body(9999, 2), text, size) == Collected(text[:end], "", text[end:], closed=False, in_string=None)


@SIZES
@pytest.mark.parametrize("more", [" {", "\n[", ",", ";", "```", '"'])
def test_behind_a_whole_call_more_of_a_block_is_awaited_without_end(more: str, size: int) -> None:
    text = "{}" + more + "x" * (2 * MAX_TAIL_CHARS)
    collected = collect(Body(9999, 2), f"{text}</tool_call>", size)
    assert isinstance(collected, Collected)
    assert collected.closed is (more != '"')
