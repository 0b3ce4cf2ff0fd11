from __future__ import annotations

import pytest

from parser.opening import MAX_OPENING_CHARS, OPEN_OBJECT, BlockOpening, NoOpening, opening_of

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
    ("text", "body", "openers"),
    [
        ("[", "[", 1),
        (' "{', '"{', 1),
        (f"\n{TAG}\n{{", "{", 2),
        ("```json\n{", "```json\n{", 1),
        (f"{TAG} ~~~\n[", "~~~\n[", 2),
    ],
)
def test_other_json_may_be_a_call_too(text: str, body: str, openers: int) -> None:
    assert opening_of(TAG + text) == BlockOpening(len(TAG + text) - len(body), openers, markup=False)


@pytest.mark.parametrize("text", [" tag is", "\n\nA b", "1", '"a', "``x", f"{TAG}</tool_call>", "</tool_call>", ")"])
def test_a_tag_without_json_is_text(text: str) -> None:
    assert opening_of(TAG + text) == NoOpening(len(TAG))


@pytest.mark.parametrize("text", ["", " ", '"', "<", "<tool_ca", TAG, "`", "```", "```jso", "~~~\n"])
def test_what_may_still_become_either_is_not_decided(text: str) -> None:
    assert opening_of(TAG + text) is None


@pytest.mark.parametrize("text", [" " * MAX_OPENING_CHARS, "```" + " " * MAX_OPENING_CHARS, " " * 300 + "{"])
def test_it_is_decided_within_a_limit(text: str) -> None:
    assert opening_of(TAG + text) == NoOpening(len(TAG))


def test_it_is_asked_where_a_tag_stands() -> None:
    with pytest.raises(ValueError, match="open tag"):
        opening_of("x")
