from __future__ import annotations

import pytest
from msgspec.structs import replace

from parser.body import (
    MAX_OPENING_CHARS,
    MAX_TAIL_CHARS,
    MAX_WORDS_CHARS,
    OPEN_OBJECT,
    BlockEnd,
    BlockOpening,
    Body,
    Collected,
    NoCall,
    opening_of,
)
from tests.parser.reading import cut

TAG = "<tool_call>"


@pytest.mark.parametrize("text", ["{", '{"name"', "\n{", " \t\r\n {"])
@pytest.mark.parametrize("tag", [TAG, "<TOOL_CALL\n>"])
def test_an_object_right_after_the_tag_may_be_a_well_formed_call(tag: str, text: str) -> None:
    found = OPEN_OBJECT.match(tag + text)
    assert found is not None
    assert (tag + text)[found.end()] == "{"


@pytest.mark.parametrize("text", ["", "x{", "[{", f"{TAG}{{", "```{"])
def test_anything_else_is_none(text: str) -> None:
    assert OPEN_OBJECT.match(TAG + text) is None


def test_a_tag_that_names_the_call_is_none() -> None:
    assert OPEN_OBJECT.match('<tool_call name="r">{') is None


@pytest.mark.parametrize(
    ("text", "body"),
    [("[", "["), (' "{', '"{'), (f"\n{TAG}\n{{", "{"), ("```json\n{", "```json\n{"), (f"{TAG} ~~~\n[", "~~~\n[")],
)
def test_other_json_may_be_a_call_too(text: str, body: str) -> None:
    assert opening_of(TAG + text, first_on_line=False) == BlockOpening(len(TAG + text) - len(body), markup=False)


@pytest.mark.parametrize(
    "text", [" tag is", "1 ", "0123456 {", '"a', "``x", f"{TAG}</tool_call> x", "</tool_call>.", ")", "a</tool_call>"]
)
def test_a_tag_without_json_is_text(text: str) -> None:
    assert opening_of(TAG + text, first_on_line=False) == NoCall(len(TAG))


@pytest.mark.parametrize(
    "text", ["", " ", '"', "<", "<tool_ca", TAG, "`", "```", "```jso", "~~~\n", "1", "key: 0abcdefghi "]
)
def test_what_may_still_become_either_is_not_decided(text: str) -> None:
    assert opening_of(TAG + text, first_on_line=False) is None


@pytest.mark.parametrize("first_on_line", [True, False])
@pytest.mark.parametrize(
    ("text", "behind"),
    [("</tool_call>", "\n"), ("\n</tool_call>", "<"), ("\nA b\n</tool_call>", " c"), (f"{TAG}</tool_call>", "\r")],
)
def test_a_block_without_a_call_is_no_mention_of_its_tags(text: str, behind: str, first_on_line: bool) -> None:
    found = opening_of(TAG + text + behind, first_on_line=first_on_line)
    assert isinstance(found, NoCall)
    assert found.end == len(TAG + text)


@pytest.mark.parametrize(
    "text", [" and `</tool_call>` stand round a call", f" x {TAG}{{", " x" * MAX_WORDS_CHARS + "</tool_call>"]
)
def test_tags_at_the_beginning_of_a_line_may_be_a_mention(text: str) -> None:
    assert opening_of(TAG + text, first_on_line=True) == NoCall(len(TAG))
    assert opening_of(f"{TAG} and so on", first_on_line=True) is None


@pytest.mark.parametrize("text", [" " * MAX_OPENING_CHARS, "```" + " " * MAX_OPENING_CHARS, " " * 300 + "{"])
def test_it_is_decided_within_a_limit(text: str) -> None:
    assert opening_of(TAG + text, first_on_line=False) == NoCall(len(TAG))


def test_it_is_asked_where_a_tag_stands() -> None:
    with pytest.raises(ValueError, match="open tag"):
        opening_of("x", first_on_line=False)


def search(text: str, size: int) -> tuple[tuple[int, int] | None, int | None]:
    block_end = BlockEnd()
    for at in range(0, len(text), size):
        if end := block_end.feed(text[at : at + size]):
            return end, block_end.in_string
    return None, block_end.in_string


@pytest.mark.parametrize("size", [1, 2, 5, 100])
@pytest.mark.parametrize(
    ("text", "end", "in_string"),
    [
        ("{}</tool_call>x", (2, 14), None),
        ("{}</TOOL_CALL  >x", (2, 16), None),
        ("{}<tool_call>{", (2, 2), None),
        ("{}<</tool_call>", (3, 15), None),
        ("{}<tool_x></tool_call>", (10, 22), None),
        ('{"</tool_call>"}</tool_call>', (16, 28), 14),
        ('{"\\"</tool_call>', None, 16),
        ('{"a\\\\"}</tool_call>', (7, 19), None),
        ("{'</tool_call>'}</tool_call>", (16, 28), 14),
        ("{1} don't</tool_call>", (9, 21), None),
        ('{"<tool_call>"}', None, None),
        ("{}</tool", None, None),
    ],
)
def test_the_end_is_the_first_tag_outside_of_strings(
    text: str, end: tuple[int, int] | None, in_string: int | None, size: int
) -> None:
    assert search(text, size) == (end, in_string)


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("quote", ["", '"'])
def test_in_markup_a_block_may_stand_inside_of_a_value(quote: str, size: int) -> None:
    text = f"<parameter=a>{quote}{TAG}{{}}</tool_call></parameter></function>"
    block_end = BlockEnd(markup=True)
    found = [block_end.feed(piece) for piece in cut(f"{text}</tool_call>", size)]
    assert [end for end in found if end] == [(len(text), len(text) + len("</tool_call>"))]


SIZES = pytest.mark.parametrize("size", [1, 3, 0])


def collect(body: Body, text: str, size: int) -> Collected:
    """What becomes of the body; what it leaves is joined to what was not fed."""
    pieces = cut(text, size)
    for number, piece in enumerate(pieces, 1):
        if collected := body.feed(piece):
            return replace(collected, rest=collected.rest + "".join(pieces[number:]))
    return body.end()


@SIZES
@pytest.mark.parametrize(
    ("text", "collected"),
    [
        ("[1]</tool_call> x", Collected("[1]", "</tool_call>", " x", closed=True, in_string=None)),
        ("[1]</TOOL_CALL >", Collected("[1]", "</TOOL_CALL >", "", closed=True, in_string=None)),
        ("[1]\n<tool_call>{", Collected("[1]\n", "", "<tool_call>{", closed=False, in_string=None)),
        ("[1", Collected("[1", "", "", closed=False, in_string=None)),
        ("</tool", Collected("", "</tool", "", closed=False, in_string=None)),
        ("[<1]</tool", Collected("[<1]", "</tool", "", closed=False, in_string=None)),
        ("[1]</tool", Collected("[1]", "</tool", "", closed=False, in_string=None)),
        ('["</tool_call>"', Collected('["</tool_call>"', "", "", closed=False, in_string=14)),
    ],
)
def test_it_ends_at_a_tag_or_with_the_answer(text: str, collected: Collected, size: int) -> None:
    assert collect(Body(100), text, size) == collected


@SIZES
def test_it_may_be_as_long_as_allowed_and_no_longer(size: int) -> None:
    fits = "x" * 20 + "</tool_call>"
    assert not collect(Body(len(fits)), fits, size).too_long
    assert collect(Body(20), "x" * 30, size) == Collected("x" * 20, "", "x" * 10, False, None, too_long=True)


@SIZES
def test_behind_a_whole_call_a_tag_is_awaited_for_a_while(size: int) -> None:
    rest = "\nI look." + " x" * MAX_TAIL_CHARS
    end = 2 + MAX_TAIL_CHARS
    text = "{}" + rest
    assert collect(Body(9999), text, size) == Collected(text[:end], "", text[end:], closed=False, in_string=None)


@SIZES
@pytest.mark.parametrize("more", [" {", "\n[", ",", ";", "```", '"'])
def test_behind_a_whole_call_more_of_a_block_is_awaited_without_end(more: str, size: int) -> None:
    text = "{}" + more + "x" * (2 * MAX_TAIL_CHARS)
    collected = collect(Body(9999), f"{text}</tool_call>", size)
    assert collected.closed is (more != '"')
