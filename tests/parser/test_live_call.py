from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser import CallStarted, ParserEvent
from parser.json_scan import MAX_HELD, ValueScanner
from parser.live_call import EncodedObject, Header, LiveCall, NoHeader, read_header
from tests.parser.reading import cut, merged


def decode(string: str, size: int) -> tuple[str, EncodedObject]:
    """What is released of the object in that JSON string, which comes in pieces as a scanner releases them."""
    scanner, encoded = ValueScanner(), EncodedObject()
    released = ""
    for at in range(0, len(string), size):
        piece = scanner.feed(string[at : at + size])
        released += encoded.feed(piece, final=scanner.done)
        if encoded.broken:
            break
    return released, encoded


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.dictionaries(st.text(), JSON, max_size=4), st.booleans(), st.booleans(), st.integers(1, 9))
def test_the_object_comes_out_as_it_was_before_it_was_encoded(
    value: dict[str, object], ascii_inside: bool, ascii_outside: bool, size: int
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_inside)
    released, encoded = decode(json.dumps(text, ensure_ascii=ascii_outside), size)
    assert released == text
    assert not encoded.broken


def test_white_space_round_the_object_is_dropped() -> None:
    released, encoded = decode(r'" \n{\"a\": 1}\n "', 3)
    assert released == '{"a": 1}'
    assert not encoded.broken


@pytest.mark.parametrize(
    "string",
    ['""', '"a"', '"[1]"', r'"{\"a\": 1"', r'"{} {}"', r'"{}x"', r'"{\"a\": x}"', r'"{\"a\n\": 1}"', r'"{}\ud83d"'],
)
@pytest.mark.parametrize("size", [1, 4, 100])
def test_anything_else_is_broken(string: str, size: int) -> None:
    assert decode(string, size)[1].broken


def test_nothing_from_the_fault_on_is_released() -> None:
    assert decode(r'"{\"a\": 1, \"b\" 2}"', 4)[0] == '{"a": 1, "b" '


def follow(text: str, size: int) -> tuple[list[ParserEvent], LiveCall]:
    """What is reported of a call, given all of it behind its first brace."""
    call, events = LiveCall(0), list[ParserEvent]()
    for piece in cut(text, size):
        if not call.feed(piece, events):
            break
    return merged(events), call


SIZES = pytest.mark.parametrize("size", [1, 3, 4, 7, 0])


@SIZES
@pytest.mark.parametrize(
    "text",
    [
        '"name": "r", "arguments": {"p": 1}}',
        '"name":"r","arguments":{"p": 1}}',
        ' "name" :\n"r" ,\t"arguments" : {"p": 1} }',
        r'"n\u0061me": "\u0072", "arguments": {"p": 1}}',
        '"id": "c", "name": "r", "x": [1, {}], "arguments": {"p": 1}}',
        r'"name": "r", "arguments": "{\"p\": 1}"}',
        '"name": "r", "arguments": {"p": 1}, "x": {"name": 7}}',
    ],
)
def test_the_name_is_told_then_the_arguments(text: str, size: int) -> None:
    events, call = follow(text, size)
    call_id = "c" if '"id"' in text else None
    assert events == [CallStarted(0, "r", call_id), '{"p": 1}']
    assert call.done
    assert "".join(call.arguments) == '{"p": 1}'


@pytest.mark.parametrize("key", ["k", "a b", "", "\\u0061"])
@SIZES
def test_a_key_in_front_is_told_with_the_name(size: int, key: str) -> None:
    events, call = follow(f'"key": "{key}", "name": "r", "arguments": {{"p": 1}}}}', size)
    assert events == [CallStarted(0, "r", None, (("key", f'"{key}"'),)), '{"p": 1}']
    assert call.done
    assert call.extra == [("key", f'"{key}"')]


@SIZES
def test_arguments_before_the_name_wait_for_it(size: int) -> None:
    call, events = LiveCall(0), list[ParserEvent]()
    for piece in cut('"arguments": {"p": "a"}, "name": "', size):
        call.feed(piece, events)
    assert events == []
    call.feed('r"', events)
    assert events == [CallStarted(0, "r", None), '{"p": "a"}']


@SIZES
def test_what_follows_the_object_is_left(size: int) -> None:
    text = '"name": "r", "arguments": {}}'
    _, call = follow(f"{text} and more", size)
    assert call.done
    assert " and more".startswith(call.rest)


@SIZES
def test_other_members_are_kept_as_they_were_written(size: int) -> None:
    _, call = follow(
        '"key": "k", "call_id": "c2", "name": "r", "x": [1,  2], "id": "c1", "arguments": {}, "id2": 3}', size
    )
    assert call.id == "c2"
    assert call.extra == [("key", '"k"'), ("x", "[1,  2]"), ("id2", "3")]


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
        '"name": ["r"], "arguments": {}}',
        '"name": "r", "arguments": [1]}',
        '"name": "r" "arguments": {}}',
        ', "name": "r", "arguments": {}}',
        '"name": "r", "arguments": {},}',
        "'name': 'r', 'arguments': {}}",
        'name: "r", "arguments": {}}',
        '"name": "r\n", "arguments": {}}',
        r'"name": "\d", "arguments": {}}',
        '"name": "' + "r" * MAX_HELD + '", "arguments": {}}',
        '"name": "r", "arguments":' + " " * MAX_HELD + "{}}",
    ],
)
def test_what_is_not_well_formed_breaks_it_off(text: str, size: int) -> None:
    _, call = follow(text, size)
    assert call.broken
    assert not call.in_string


@pytest.mark.parametrize("text", ["]", '"name": "r"]', '"name": "r", x', "'name'"])
def test_a_fault_in_little_text_is_seen_at_the_end_of_the_answer(text: str) -> None:
    call = LiveCall(0)
    call.feed(text, [])
    call.end([])
    assert call.broken


@pytest.mark.parametrize(("header", "key"), [("}", None), ('"a": ', "a")])
def test_a_header_may_be_as_long_as_is_waited_for(header: str, key: str | None) -> None:
    whole = " " * (MAX_HELD - len(header)) + header
    assert read_header(f"{whole}1", first=True) == Header(key, MAX_HELD)
    assert read_header(f" {whole}1", first=True) == NoHeader()
    assert read_header(whole[:-1], first=True) is None
    assert read_header(" " * MAX_HELD, first=True) is None
    assert read_header(" " * (MAX_HELD + 1), first=True) == NoHeader()


@pytest.mark.parametrize("text", ["", '"na', '"name": "r', '"name": "r", ', '"name": "r", "arguments": {"p": "a'])
def test_a_call_that_is_only_cut_off_is_not_broken(text: str) -> None:
    call = LiveCall(0)
    if text:
        call.feed(text, [])
    call.end([])
    assert not call.broken
    assert not call.done


@pytest.mark.parametrize("key", ["arguments", r"argument\u0073"])
def test_inside_of_a_string_of_the_arguments_it_says_so(key: str) -> None:
    call = LiveCall(0)
    call.feed(f'"name": "r", "{key}": {{"p": "', [])
    call.feed("words", [])
    assert call.in_string
    call.feed('"', [])
    assert not call.in_string


@pytest.mark.parametrize("before", ['"arguments": {"p": "', '"name": "r", "arguments": "{', '"name": "r", "x": "'])
def test_in_other_strings_characters_are_not_simply_told(before: str) -> None:
    call = LiveCall(0)
    call.feed(before, [])
    call.feed("words", [])
    assert not call.in_string


@given(
    st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.text()), max_size=3),
    st.text(min_size=1).filter(str.strip),
    st.booleans(),
    st.integers(0, 9),
)
def test_how_the_text_is_cut_does_not_show(arguments: dict[str, object], name: str, indent: bool, size: int) -> None:
    text = json.dumps({"name": name, "arguments": arguments}, indent=1 if indent else None)[1:]
    events, call = follow(text, size)
    assert call.done
    told = "".join(event for event in events if isinstance(event, str))
    assert json.loads(told) == arguments
    assert (events, call.name) == (follow(text, 0)[0], name)
