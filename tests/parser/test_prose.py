from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parser import ParserEvent
from parser.grammar import OPEN_TAG, RESULT_OPENERS, THINK_TAGS
from parser.prose import (
    BEGUN,
    CALL,
    MAX_HELD_BLANK,
    MAX_UNREAD,
    RESULT,
    TEXT,
    THINK,
    Prose,
    tags,
)
from tests.parser.reading import cut, received

AFTER = tags(after_call=True)


def tag_in(pattern: re.Pattern[str], text: str) -> tuple[str, str] | None:
    match = pattern.search(text)
    return match and (match.lastgroup or "", match.group())


@pytest.mark.parametrize("pattern", [tags(), AFTER])
@pytest.mark.parametrize(
    ("text", "kind", "tag"),
    [
        ("a <tool_call> b", CALL, "<tool_call>"),
        ("<b><TOOL_CALL\n>", CALL, "<TOOL_CALL\n>"),
        ("<<think>", THINK, "<think>"),
        ("< <thinking>", THINK, "<thinking>"),
        ("a <", BEGUN, "<"),
        ("a <tool_call", BEGUN, "<tool_call"),
        ("a <Tool_Call ", BEGUN, "<Tool_Call "),
        ("a <thinki", BEGUN, "<thinki"),
    ],
)
def test_tags_and_their_beginnings_are_found(pattern: re.Pattern[str], text: str, kind: str, tag: str) -> None:
    assert tag_in(pattern, text) == (kind, tag)


@pytest.mark.parametrize("pattern", [tags(), AFTER])
@pytest.mark.parametrize(
    "text", ["", "a < b", "<tool_calls>", "</tool_call>", "<THINK>", "<tool_call x", "<thin ", "<t "]
)
def test_nothing_else_is(pattern: re.Pattern[str], text: str) -> None:
    assert tag_in(pattern, text) is None


@pytest.mark.parametrize("opener", RESULT_OPENERS)
def test_a_made_up_result_counts_after_a_call_only(opener: str) -> None:
    assert tag_in(AFTER, f"\n{opener.upper()} x") == (RESULT, opener.upper())
    assert tag_in(tags(), f"\n{opener} x") is None


@given(st.sampled_from([*RESULT_OPENERS, OPEN_TAG, *THINK_TAGS]), st.data())
def test_every_beginning_of_every_tag_is_found(tag: str, data: st.DataObject) -> None:
    begun = tag[: data.draw(st.integers(1, len(tag) - 1))]
    match = AFTER.search(f"x{begun}")
    assert match is not None
    # One tag may begin another: <think, <tool_call.
    assert match.start() == 1


@given(
    st.lists(st.sampled_from([*RESULT_OPENERS, OPEN_TAG, *THINK_TAGS, "<tool_call ", "<", "[t", " ", ">"]), max_size=4)
)
def test_no_tag_is_passed_because_it_is_cut(parts: list[str]) -> None:
    text = "".join(parts)
    for match in AFTER.finditer(text):
        for at in range(match.start() + 1, match.end()):
            begun = AFTER.search(text[:at], match.start())
            assert begun is not None
            assert begun.start() == match.start()


def said(prose: Prose, *texts: str) -> str:
    events: list[ParserEvent] = []
    for text in texts:
        prose.say(text, events)
    return received(events)


def test_text_is_said_at_once() -> None:
    assert said(Prose(), "a") == "a"


def test_white_space_before_text_is_said_with_it() -> None:
    prose = Prose()
    assert said(prose, "\n", " ") == ""
    assert said(prose, "a") == "\n a"


def test_white_space_after_text_is_said_at_once() -> None:
    assert said(Prose(), "a", "\n") == "a\n"


def test_white_space_between_calls_is_handed_to_the_second() -> None:
    prose = Prose()
    assert prose.end_with_call() == ""
    assert said(prose, "\n\n") == ""
    assert prose.end_with_call() == "\n\n"
    assert said(prose, "a") == "a"


@pytest.mark.parametrize(("after_call", "told"), [(False, "\n"), (True, "")])
def test_white_space_at_the_end_is_only_dropped_after_a_call(after_call: bool, told: str) -> None:
    prose, events = Prose(), list[ParserEvent]()
    if after_call:
        prose.end_with_call()
    prose.read("\n", events)
    prose.end(events)
    assert received(events) == told


@given(st.lists(st.integers(1, MAX_HELD_BLANK), max_size=5))
@example([MAX_HELD_BLANK])
def test_white_space_is_held_up_to_its_limit_however_it_is_cut(sizes: list[int]) -> None:
    total = sum(sizes)
    expected = total if total > MAX_HELD_BLANK else 0
    assert len(said(Prose(), *(" " * size for size in sizes))) == expected


TAG = "<tool_call>"


def after(*texts: str, result: bool = False) -> tuple[Prose, str]:
    """Prose that has read these texts, behind a call if a result may come, and what was said."""
    prose, events = Prose(), list[ParserEvent]()
    if result:
        prose.end_with_call()
    for text in texts:
        assert prose.read(text, events) == (TEXT, "")
    return prose, received(events)


def found(prose: Prose, text: str, size: int = 0) -> tuple[str, str, str]:
    """The tag that is found first, the text from there on as far as it was read, and what was said before."""
    events: list[ParserEvent] = []
    for piece in cut(text, size):
        kind, rest = prose.read(piece, events)
        if kind != TEXT:
            return kind, rest, received(events)
    return TEXT, prose.held, received(events)


SIZES = pytest.mark.parametrize("size", [1, 4, 0])


@SIZES
def test_text_is_said_up_to_the_tag_of_a_call(size: int) -> None:
    kind, rest, said = found(Prose(), f"Hi <b> {TAG}", size)
    assert (kind, rest, said) == (CALL, TAG, "Hi <b> ")


@pytest.mark.parametrize("text", ["<", "Hi <tool", "Hi <TOOL_CALL", "\n<think", "`a` <t"])
def test_the_beginning_of_a_tag_is_held(text: str) -> None:
    prose, said = after(text)
    assert prose.held == text[text.index("<") :]
    assert said == text[: text.index("<")].strip("\n")
    assert not prose.passing


@SIZES
def test_white_space_before_a_call_is_not_said_but_handed_over(size: int) -> None:
    prose = Prose()
    assert found(prose, f" \n{TAG}", size) == (CALL, TAG, "")
    assert prose.end_with_call() == " \n"


@SIZES
@pytest.mark.parametrize("before", ["`", "``a`", "```\n", "~~~\nx\n", "<think>", "<thinking> a"])
def test_quoted_and_thought_tags_are_text(before: str, size: int) -> None:
    assert found(Prose(), f"{before}{TAG} x", size) == (TEXT, "", f"{before}{TAG} x")


@SIZES
@pytest.mark.parametrize("before", ["a `b` ", "a `b\n", "```\nx\n```\n", "<think>`</think>", "<think>a<b</think>"])
def test_behind_a_quotation_or_a_thought_they_count_again(before: str, size: int) -> None:
    assert found(Prose(), before + TAG, size) == (CALL, TAG, before)


@SIZES
@pytest.mark.parametrize("before", ["\n", "a\n", "a\n  ", "```\nx\n```\n"])
def test_a_result_at_the_start_of_a_line_counts_after_a_call(before: str, size: int) -> None:
    prose, _ = after(result=True)
    kind, rest, said = found(prose, f"{before}[tool:", size)
    assert (kind, rest) == (RESULT, "[tool:")
    assert said + prose.take_blank() == before
    assert found(Prose(), f"{before}[tool:", size)[0] == TEXT


@SIZES
def test_within_a_line_it_does_not(size: int) -> None:
    prose, _ = after(result=True)
    assert found(prose, "See [tool:", size) == (TEXT, "", "See [tool:")


def test_a_call_ends_what_was_quoted() -> None:
    prose, _ = after("```\n")
    prose.end_with_call()
    assert found(prose, TAG)[0] == CALL


def test_a_block_that_is_text_leaves_no_white_space_behind() -> None:
    prose, events = Prose(), list[ParserEvent]()
    prose.read(f"\n{TAG}", events)
    assert (events, prose.pass_text_block()) == ([], "\n")


def test_behind_a_block_that_is_text_no_line_begins() -> None:
    prose, _ = after(result=True)
    prose.pass_text_block()
    assert found(prose, " [tool:x]") == (TEXT, "", " [tool:x]")
    prose.pass_text_block()
    assert found(prose, f"```\n{TAG}")[0] == CALL


def test_a_tag_that_is_text_may_stand_in_code() -> None:
    prose, events = Prose(), list[ParserEvent]()
    assert prose.read(f"a {TAG}` b", events) == (CALL, f"{TAG}` b")
    prose.say(TAG, events)
    assert found(prose, f"` b{TAG}")[0] == TEXT


PARTS = st.sampled_from(["a", " ", "\n", "`", "```", "~~~", "<b", "[x", "<think>", "</think>", "word `code` "])


@given(st.lists(st.lists(PARTS, min_size=1).map("".join), min_size=1), st.booleans())
def test_what_passes_unread_is_as_good_as_read(texts: list[str], result: bool) -> None:
    read, _ = after("a", *texts, result=result)
    passed, _ = after("a", result=result)
    for text in texts:
        if passed.passing and not passed.search(text):
            passed.unread.append(text)
        else:
            passed.read(text, [])
    for text in (f" {TAG}", f"\n{TAG}"):
        assert found(read, text)[0] is found(passed, text)[0]


@given(st.integers(1, 9), st.sampled_from(["word ", "a <b ", "`a` ", "<think>x", "<tool_"]))
def test_what_is_unread_has_a_limit(size: int, text: str) -> None:
    prose = Prose()
    for piece in cut(text * 500, size):
        prose.read(piece, [])
        assert sum(map(len, prose.unread)) <= MAX_UNREAD
