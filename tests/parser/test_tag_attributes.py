from __future__ import annotations

import pytest

from parser.grammar import OPEN, OPEN_BEGUN
from parser.tag_attributes import TagAttributes, attributes_of


@pytest.mark.parametrize(
    ("tag", "said"),
    [
        ("<tool_call>", TagAttributes()),
        ('<tool_call name="read_note">', TagAttributes("read_note")),
        ("<tool_call id='c1' name=read_note>", TagAttributes("read_note", "c1")),
        ('<TOOL_CALL\n  CALL_ID = "c1" >', TagAttributes(id="c1")),
        ('<tool_call type="function" index=0>', TagAttributes()),
        ('<tool_call tool="r" function="r">', TagAttributes("r")),
        ('<tool_call name="a"><tool_call name="a">', TagAttributes("a")),
    ],
)
def test_a_tag_may_name_its_call(tag: str, said: TagAttributes) -> None:
    assert attributes_of(tag) == said


@pytest.mark.parametrize(
    "tag", ['<tool_call name="a" tool="b">', '<tool_call name="a"><tool_call name="b">', '<tool_call name="">']
)
def test_a_tag_that_names_two_calls_or_none_says_nothing(tag: str) -> None:
    assert attributes_of(tag) is None


@pytest.mark.parametrize(
    "tag", ["<tool_call>", "<tool_call id='c1'>", '<tool_call  id = "c1"  >', '<tool_call id="a b" name=r type="x">']
)
def test_a_tag_with_attributes_is_a_tag_from_its_first_character_on(tag: str) -> None:
    assert OPEN.fullmatch(tag)
    assert all(OPEN_BEGUN.match(tag[:end]) for end in range(1, len(tag)))


@pytest.mark.parametrize(
    "text", ["<tool_call is", "<tool_call names", "<tool_call name x", "<tool_call,", '<tool_call class="x"',
             '<tool_call name="<', f'<tool_call name="{"x" * 65}', "<tool_call" + 4 * " id=1", "<tool_call/"]
)  # fmt: skip
def test_a_text_that_is_no_tag_is_known_as_soon_as_it_can_be(text: str) -> None:
    assert not OPEN_BEGUN.match(text)
    assert not OPEN.match(f"{text}>")
