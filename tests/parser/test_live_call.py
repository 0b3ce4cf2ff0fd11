from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser import CLOSE_TAG, CallStarted, ParserEvent
from parser.body import MAX_TAIL_CHARS
from parser.json_scan import MAX_HELD
from parser.live_call import BROKEN, LiveCall
from tests.parser.reading import NAMES, cut, merged


def follow(text: str, size: int) -> tuple[list[ParserEvent], LiveCall, str | None]:
    """What is reported of a call, given its text behind its first brace, and what stands behind its close tag."""
    call, events = LiveCall(0), list[ParserEvent]()
    text = text if CLOSE_TAG in text else text + CLOSE_TAG
    rest = next((rest for piece in cut(text, size) if (rest := call.feed(piece, events)) is not None), None)
    return merged(events), call, rest


SIZES = pytest.mark.parametrize("size", [1, 3, 4, 7, 0])


@SIZES
@pytest.mark.parametrize(
    "text",
    [
        '"name": "r", "arguments": {"p": 1}}',
        '"name":"r","arguments":{"p": 1}}',
        ' "name" :\n"r" ,\t"arguments" : {"p": 1} }',
        r'"name": "\u0072", "arguments": {"p": 1}}',
        '"id": "c", "x": 1, "y": null, "name": "r", "arguments": {"p": 1}}',
    ],
)
def test_the_name_is_told_then_the_arguments(text: str, size: int) -> None:
    events, call, rest = follow(text, size)
    call_id, extra = ("c", (("x", "1"), ("y", "null"))) if '"id"' in text else (None, ())
    assert events == [CallStarted(0, "r", call_id, extra), '{"p": 1}']
    assert rest == ""
    assert f"{{{text}"[call.begins : call.told_to] == '{"p": 1}'


@pytest.mark.parametrize("key", ["k", "a b", "", "\\u0061"])
@SIZES
def test_a_key_in_front_is_told_with_the_name(size: int, key: str) -> None:
    events, _, rest = follow(f'"key": "{key}", "name": "r", "arguments": {{"p": 1}}}}', size)
    assert events == [CallStarted(0, "r", None, (("key", f'"{key}"'),)), '{"p": 1}']
    assert rest == ""


@SIZES
def test_what_follows_the_close_tag_is_left(size: int) -> None:
    _, _, rest = follow('"name": "r", "arguments": {}} </tool_call> and more', size)
    assert rest is not None
    assert " and more".startswith(rest)


@SIZES
def test_other_members_are_kept_as_they_were_written(size: int) -> None:
    _, call, _ = follow(
        '"key": "k", "call_id": "c2", "x": "a\\n", "id": "c1", "id2": 3, "name": "r", "arguments": {}}', size
    )
    extra = (("key", '"k"'), ("x", r'"a\n"'), ("id2", "3"))
    assert call.started == CallStarted(0, "r", "c2", extra)


@SIZES
@pytest.mark.parametrize(
    "text",
    [
        '"name": "r"}',
        '"arguments": {}}',
        '"name": " ", "arguments": {}}',
        '"name": "r", "name": "r", "arguments": {}}',
        '"name": "r", "arguments": {}, "arguments": {}}',
        '"name": "r", "parameters": {}, "arguments": {}}',
        '"parameters": "{}", "name": "r", "arguments": {}}',
        '"Tool": "r", "name": "r", "arguments": {}}',
        '"name": ["r"], "arguments": {}}',
        '"arguments": {}, "name": "r"}',
        r'"name": "r", "arguments": "{}"}',
        '"x": {}, "name": "r", "arguments": {}}',
        '"name": "r", "arguments": {}' + " " * MAX_HELD + "}",
        '"x": 01, "name": "r", "arguments": {}}',
        '"x": 1, "x": 1, "name": "r", "arguments": {}}',
        '"name": "r", "x": 1, "arguments": {}}',
        '"name": "r", "arguments": {}, "x": 1}',
        r'"n\u0061me": "r", "arguments": {}}',
        r'"name": "r", "argument\u0073": {}}',
        '"name": "r", "arguments": {}, "tool": "r"}',
        '"name": "r", "arguments": [1]}',
        '"name": "r" "arguments": {}}',
        ', "name": "r", "arguments": {}}',
        '"name": "r", "arguments": {},}',
        '"name": "r", "arguments": {}},',
        '"name": "r", "arguments": {}}' + " " * (MAX_TAIL_CHARS + 1),
        "'name': 'r', 'arguments': {}}",
        'name: "r", "arguments": {}}',
        '"name": "r\n", "arguments": {}}',
        r'"name": "\d", "arguments": {}}',
        '"name": "' + "r" * MAX_HELD + '", "arguments": {}}',
        '"name": "r", "arguments":' + " " * MAX_HELD + "{}}",
    ],
)
def test_what_has_another_form_breaks_it_off(text: str, size: int) -> None:
    _, call, _ = follow(text, size)
    assert call.part is BROKEN
    assert not call.scanner.in_string


@pytest.mark.parametrize("text", ["]", '"name": "r"]', '"name": "r", x', "'name'", '"key": "7q"x', '"key": "7q", x'])
def test_a_fault_in_little_text_is_seen_at_once(text: str) -> None:
    call = LiveCall(0)
    call.feed(text, [])
    assert call.part is BROKEN


@pytest.mark.parametrize("text", ["", '"na', '"name": "r', '"name": "r", ', '"name": "r", "arguments": {"p": "a'])
def test_a_call_that_is_only_cut_off_is_not_broken(text: str) -> None:
    call = LiveCall(0)
    if text:
        call.feed(text, [])
    assert call.part is not BROKEN


def test_inside_of_a_string_of_the_arguments_it_says_so() -> None:
    call = LiveCall(0)
    call.feed('"name": "r", "arguments": {"p": "', [])
    call.feed("words", [])
    assert call.scanner.in_string
    call.feed('"', [])
    assert not call.scanner.in_string


def test_in_other_strings_characters_are_not_simply_told() -> None:
    call = LiveCall(0)
    call.feed('"x": "', [])
    call.feed("words", [])
    assert not call.scanner.in_string


@given(
    st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.text()), max_size=3),
    NAMES,
    st.booleans(),
    st.integers(0, 9),
)
def test_how_the_text_is_cut_does_not_show(arguments: dict[str, object], name: str, indent: bool, size: int) -> None:
    text = json.dumps({"name": name, "arguments": arguments}, indent=1 if indent else None)[1:] + CLOSE_TAG
    events, _, rest = follow(text, size)
    assert rest == ""
    told = "".join(event for event in events if isinstance(event, str))
    assert json.loads(told) == arguments
    assert events[0] == CallStarted(0, name, None)
    assert events == follow(text, 0)[0]
