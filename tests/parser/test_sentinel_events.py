"""What is told of a call: its pieces while it is written, and its members, id and white space when it is whole."""

from __future__ import annotations

import pytest

from parser import CallCompleted, CallMalformed, CallStarted, SentinelParser, Tier
from tests.parser.blocks import BODY, CALL, arguments, block
from tests.parser.reading import answer_of, completed, cut, merged, read, received


def test_a_call_is_told_while_it_is_written() -> None:
    parser = SentinelParser()
    steps: list[tuple[str, list[object]]] = [
        ("Hi. <tool_call>{", ["Hi. "]),
        ('"name": "r"', [CallStarted(0, "r", None)]),
        (', "arguments": ', []),
        ('{"p', ['{"p']),
        ('": "a', ['": "a']),
        ("\\", []),
        ("n.md", ["\\n.md"]),
        ('"', []),
        (",", ['"']),
        (' "n": 1', [', "n": ']),
        ("0", []),
        ("}", ["10}"]),
        ("}", []),
    ]
    for text, events in steps:
        assert parser.receive_text(text) == events
    assert [type(event) for event in parser.receive_text("</tool_call>")] == [CallCompleted]
    assert parser.receive_eof() == []


def test_a_call_in_another_form_is_told_when_its_block_is_over() -> None:
    for body in (
        r'{"name": "r", "arguments": "{\"p\": 1}"}',
        '{"arguments": {"p": 1}, "name": "r"}',
        '{"x": [1], "name": "r", "arguments": {"p": 1}}',
    ):
        parser = SentinelParser()
        begun = parser.receive_text(f"<tool_call>{body}")
        assert all(isinstance(event, CallStarted) for event in begun)
        events = [*begun, *parser.receive_text("</tool_call>"), *parser.receive_text("So.")]
        assert isinstance(events[0], CallStarted)
        assert events[1] == '{"p": 1}'
        [call] = completed(events)
        assert (call.arguments, call.tier) == ('{"p": 1}', Tier.VALID)


def test_behind_a_call_that_is_not_closed_text_is_not_held_for_long() -> None:
    for body in (BODY, f"[{BODY}]", f'\n {BODY[:-1]}, "x": []}}'):
        parser = SentinelParser()
        said = received(parser.receive_text(f"<tool_call>{body}\n" + "I look. " * 200))
        assert said.endswith("I look. " * 100)


@pytest.mark.parametrize("size", [1, 7, 0])
def test_what_was_only_held_is_told_at_the_end(size: int) -> None:
    text = '<tool_call>{"key": 5, "name": "r"'
    assert read(cut(text, size)) == [
        CallStarted(0, "r", None, (("key", "5"),)),
        CallMalformed("the call is cut off", text, 0),
    ]


def test_a_call_that_is_cut_off_is_never_finished() -> None:
    text = '<tool_call>{"name": "w", "arguments": {"p": "half a sen'
    assert merged(read(cut(text, 3))) == [
        CallStarted(0, "w", None),
        '{"p": "half a sen',
        CallMalformed("the call is cut off", text, 0),
    ]


def test_a_repair_continues_what_was_told() -> None:
    text = arguments('{"p": "a",}')
    assert merged(read(cut(text, 1))) == [
        CallStarted(0, "r", None),
        '{"p": "a"}',
        *completed(read([text])),
    ]


@pytest.mark.parametrize(
    ("members", "call_id"),
    [('"id": "c1"', "c1"), ('"call_id": "c2"', "c2"), ('"id": "c1", "call_id": "c2"', "c2"), ('"id": 3', None)],
)
def test_an_id_is_kept_if_it_is_a_string(members: str, call_id: str | None) -> None:
    for text in (f'{{{members}, "name": "r", "arguments": {{}}}}', f'{{"name": "r", "arguments": {{}}, {members}}}'):
        [call] = completed(read([block(text)]))
        assert call.id == call_id


@pytest.mark.parametrize(
    "tags", [("<TOOL_CALL>", "</tool_call>"), ("<tool_call>", "</tool_call >"), ("<tool_call>", "")]
)
def test_a_call_with_other_tags_has_its_id_and_members(tags: tuple[str, str]) -> None:
    text = tags[0] + '{"id": "c1", "name": "r", "x": 1, "arguments": {}}' + tags[1]
    [call] = completed(read([text]))
    assert (call.id, call.extra, call.raw) == ("c1", (("x", "1"),), text)


def test_other_members_are_kept_as_they_were_written() -> None:
    [call] = completed(read([block('{"key": "n1", "name": "r", "arguments": {}, "x": [1,  2]}')]))
    assert call.extra == (("key", '"n1"'), ("x", "[1,  2]"))


def test_calls_in_parallel_have_the_members_of_what_holds_them() -> None:
    text = (
        '{"key": "k", "name": "multi_tool_use.parallel", "arguments": {"tool_uses": [%s, {"key": "l", "name": "w"}]}}'
    )
    assert [call.extra for call in completed(read([block(text % BODY)]))] == [(("key", '"k"'),), (("key", '"l"'),)]


def test_of_several_calls_the_first_carries_the_block() -> None:
    text = block(f"[{BODY}, {BODY}]")
    assert [call.raw for call in completed(read([text]))] == [text, ""]


def test_white_space_before_a_call_comes_with_it() -> None:
    text = f" \n{CALL}\n\n{block(f'[{BODY}, {BODY}]')}\t{CALL} so {CALL}\n"
    for size in (1, 7, 0):
        assert [call.before for call in completed(read(cut(text, size)))] == [" \n", "\n\n", "", "\t", ""]


def test_white_space_before_a_malformed_block_is_kept() -> None:
    text = f"{CALL}\n\n{block('{}')}\n{CALL}"
    assert answer_of(read(cut(text, 1))).text == f"\n\n{block('{}')}\n"
