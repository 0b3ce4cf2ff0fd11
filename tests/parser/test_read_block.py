from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser.grammar import OPEN, OPEN_BEGUN
from parser.read_block import attributes_of, read_block
from parser.relaxed_json import UnreadableError


@pytest.mark.parametrize(
    ("tag", "said"),
    [
        ("<tool_call>", {}),
        ('<tool_call name="read_note">', {"name": "read_note"}),
        ('<tool_call name="X">', {"name": "X"}),
        ("<tool_call id='c1' name=read_note>", {"name": "read_note", "id": "c1"}),
        ('<TOOL_CALL\n  CALL_ID = "c1" >', {"id": "c1"}),
        ('<tool_call type="function" index=0>', {}),
        ('<tool_call key="7e053cad" name="r">', {"name": "r", "key": "7e053cad"}),
        ('<tool_call tool="r" function="r">', {"name": "r"}),
        ('<tool_call name="a"><tool_call name="a">', {"name": "a"}),
    ],
)
def test_a_tag_may_name_its_call(tag: str, said: dict[str, str]) -> None:
    assert attributes_of(tag) == said


@pytest.mark.parametrize(
    "tag",
    [
        '<tool_call name="a" tool="b">',
        '<tool_call name="a"><tool_call name="b">',
        '<tool_call name="">',
        '<tool_call key="a" key="b">',
    ],
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
             '<tool_call name="<', f'<tool_call name="{"x" * 129}', "<tool_call" + 4 * " id=1", "<tool_call/x"]
)  # fmt: skip
def test_a_text_that_is_no_tag_is_known_as_soon_as_it_can_be(text: str) -> None:
    assert not OPEN_BEGUN.match(text)
    assert not OPEN.match(f"{text}>")


CALL = '{"name": "r", "arguments": {"p": 1}}'
PIECES = st.sampled_from(
    [CALL, "{", "}", "[", "]", ",", ":", '"', "'", '"name"', '"arguments"', '"parameters"', '"function"', '"r"', "{}",
     "null", "True", " ", "\n", "\\", "```", "</tool>", "text", "//", "/*", "1", '"id"',
     "<function=r>", "</function>", "<parameter=p>", "</parameter>", "r(", ")", "p=", "“", '\\"', "&quot;",
     '"""', "\u00a0", "#", ".5", "<tool_call>", '"{\\"name\\": \\"r\\"}"']
)  # fmt: skip


@given(st.lists(PIECES, max_size=16).map("".join), st.booleans())
def test_any_text_has_a_reading_or_a_reason(body: str, closed: bool) -> None:
    try:
        found = read_block(body, closed=closed)
    except UnreadableError as error:
        reason = error
        assert str(reason)
        assert reason.end is None or 0 <= reason.end <= len(body)
        return
    assert found.calls
    assert 0 < found.end <= len(body)
    # Behind a call in a closed block stands nothing but words.
    assert not closed or not set(body[found.end :]) & set('{}[]"')
    assert all(call.name and isinstance(json.loads(call.arguments), dict) for call in found.calls)


@given(st.text())
def test_a_well_formed_call_takes_no_rule(path: str) -> None:
    arguments = json.dumps({"path": path}, ensure_ascii=False)
    reading = read_block(f'\n{{"name": "r", "arguments": {arguments}}}\n', closed=True)
    [call] = reading.calls
    assert (call.name, call.arguments, call.rules) == ("r", arguments, ())


@pytest.mark.parametrize("rest", ["", "\nI look.", " [1] and", "\n{", f"\n{CALL[:-3]}"])
def test_without_a_close_tag_the_block_ends_with_the_last_whole_call(rest: str) -> None:
    reading = read_block(CALL + rest, closed=False)
    assert (CALL + rest)[reading.end :] == rest
    assert len(reading.calls) == 1


@pytest.mark.parametrize("rest", [" [1] and", "\n{", f"\n{CALL[:-3]}", ' "x"'])
def test_in_a_closed_block_nothing_but_calls_is_dropped(rest: str) -> None:
    with pytest.raises(UnreadableError):
        read_block(CALL + rest, closed=True)


@pytest.mark.parametrize(
    ("body", "tag"),
    [
        (CALL, "<tool_call name='r'>"),
        ('{"p": 1}', "<tool_call name=r>"),
        (' {"p": 1} ', '<tool_call name="r" id="c">'),
        ("r(p=1)", "<tool_call name=r>"),
        ('{"name": "r", "arguments": {"p": 1}, "id": "d"}', "<tool_call id=c>"),
    ],
)
def test_a_tag_may_name_the_call(body: str, tag: str) -> None:
    reading = read_block(body, closed=True, tag=tag)
    [call] = reading.calls
    assert (call.name, call.arguments) == ("r", '{"p": 1}')
    assert call.id == ("d" if '"d"' in body else "c" if "id=" in tag else None)
    assert ("name-in-tag" in call.rules) is ("arguments" not in body and "r(" not in body)


@pytest.mark.parametrize(
    ("body", "tag"),
    [
        (CALL, "<tool_call name=w>"),
        (f"[{CALL}, {CALL.replace('r', 'w', 1)}]", "<tool_call name=r>"),
        ('{"p": 1}', "<tool_call name=r tool=w>"),
        ('{"p": 1}', "<tool_call id=c>"),
        ('{"arguments": {"p": 1}}', "<tool_call name=r>"),
        ('{"p": 1', "<tool_call name=r>"),
        ('{"p": 1}{"q": 1}', "<tool_call name=r>"),
        ("[1]", "<tool_call name=r>"),
    ],
)
def test_a_tag_and_a_body_that_disagree_have_no_reading(body: str, tag: str) -> None:
    with pytest.raises(UnreadableError):
        read_block(body, closed=True, tag=tag)


def test_a_rule_is_named_once_and_in_order() -> None:
    reading = read_block("```json\n[{'tool': 'r', 'args': {'p': True,},},]\n```", closed=True)
    assert reading.calls[0].rules == (
        "fence",
        "single-quotes",
        "python-literals",
        "trailing-comma",
        "array-of-calls",
        "alias-keys",
    )
