from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser.grammar import OPEN_TAG, RESULT_OPENERS, THINK_TAGS
from parser.tags import KINDS, Kind, after_calls, before_calls

AFTER = after_calls(RESULT_OPENERS)


def found(pattern: re.Pattern[str], text: str) -> tuple[Kind, str] | None:
    match = pattern.search(text)
    return match and (KINDS[match.lastgroup or ""], match.group())


@pytest.mark.parametrize("pattern", [before_calls(), AFTER])
@pytest.mark.parametrize(
    ("text", "kind", "tag"),
    [
        ("a <tool_call> b", Kind.CALL, "<tool_call>"),
        ("<b><TOOL_CALL\n>", Kind.CALL, "<TOOL_CALL\n>"),
        ("<<think>", Kind.THINK, "<think>"),
        ("< <thinking>", Kind.THINK, "<thinking>"),
        ("a <", Kind.BEGUN, "<"),
        ("a <tool_call", Kind.BEGUN, "<tool_call"),
        ("a <Tool_Call ", Kind.BEGUN, "<Tool_Call "),
        ("a <thinki", Kind.BEGUN, "<thinki"),
    ],
)
def test_tags_and_their_beginnings_are_found(pattern: re.Pattern[str], text: str, kind: Kind, tag: str) -> None:
    assert found(pattern, text) == (kind, tag)


@pytest.mark.parametrize("pattern", [before_calls(), AFTER])
@pytest.mark.parametrize(
    "text", ["", "a < b", "<tool_calls>", "</tool_call>", "<THINK>", "<tool_call x", "<thin ", "<t "]
)
def test_nothing_else_is(pattern: re.Pattern[str], text: str) -> None:
    assert found(pattern, text) is None


@pytest.mark.parametrize("opener", RESULT_OPENERS)
def test_a_made_up_result_counts_after_a_call_only(opener: str) -> None:
    assert found(AFTER, f"\n{opener.upper()} x") == (Kind.RESULT, opener.upper())
    assert found(before_calls(), f"\n{opener} x") is None


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


@pytest.mark.parametrize("openers", [(), ("<x",), ("[x",)])
def test_results_may_have_openers_of_one_kind_or_none(openers: tuple[str, ...]) -> None:
    pattern = after_calls(openers)
    assert found(pattern, "a <tool_call>") == (Kind.CALL, "<tool_call>")
    for text in ("a [x]", "a <x>"):
        assert (found(pattern, text) is not None) == (text[2:4] in openers)
