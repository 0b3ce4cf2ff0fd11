"""Answers that are nothing but a call behind a header, and those that their decoder was held to."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser import (
    BARE_ANSWERS,
    HELD_ANSWERS,
    AnswerParser,
    CallCompleted,
    CallMalformed,
    CallStarted,
    ParserEvent,
    Tier,
    Tool,
    ToolRegistry,
    write_call,
)
from tests.parser.reading import Answer, answer_of, arguments_told, completed, cut, merged, outside, read, received

SCHEMA = '{"type":"object","properties":{"path":{"type":"string"},"line":{"type":"integer"}},"required":["path"]}'
REGISTRY = ToolRegistry([Tool("read_note", None, SCHEMA), Tool("search")])
NOTE = ("read_note", '{"path": "a.md"}')
BODY = f'{{"name": "read_note", "arguments": {NOTE[1]}}}'
TAGGED = f"<tool_call>{BODY}</tool_call>"


def headed(pieces: list[str], *, arguments: bool = True) -> list[ParserEvent]:
    return read(pieces, AnswerParser(REGISTRY, BARE_ANSWERS, arguments=arguments))


def every_size(text: str) -> list[list[ParserEvent]]:
    return [headed(cut(text, size)) for size in (1, 2, 3, 7, 0)]


CALLS = {
    "the tag in brackets": f"[tool_call] {BODY}",
    "a result's header": f"[tool:call_2] {BODY}",
    "the tool's own header": f"[tool:read_note] {NOTE[1]}",
    "lines that end as on Windows": f"[tool_call]\r\n{BODY}\r\n",
    "a near name": f"[tool:functions.readNote]{NOTE[1]}",
    "white space round it": f"\n\n[tool_call] {BODY}\n\n",
}  # fmt: skip


@pytest.mark.parametrize("text", CALLS.values(), ids=CALLS)
def test_a_header_stands_for_the_tags(text: str) -> None:
    for events in every_size(text):
        assert answer_of(events) == Answer("", [NOTE], "repaired")
        [call] = completed(events)
        assert call.tier is Tier.BARE
        assert "headed-answer" in call.repairs
        assert arguments_told(events) == {0: NOTE[1]}
        assert received(events).strip() == text.strip()


@pytest.mark.parametrize("text", CALLS.values(), ids=CALLS)
def test_arguments_that_are_not_wanted_are_not_told(text: str) -> None:
    for size in (1, 3, 0):
        silent = headed(cut(text, size), arguments=False)
        assert merged(silent) == merged(outside(headed(cut(text, size))))
        assert not any(arguments_told(silent).values())


NO_CALLS = {
    "a result": '[tool:call_1] {"temperature": 10.5}\nIt is cold.',
    "a result of that tool": '[tool:read_note] {"text": "# A"}',
    "without what is required": '[tool:read_note] {"line": 1}',
    "nothing": "[tool:read_note] {}",
    "a tool without a schema": '[tool:search] {"q": "x"}',
    "no such tool": '[tool_call] {"name": "rm", "arguments": {}}',
    "in a line": f"So: [tool_call] {BODY}",
    "with a word behind it": f"[tool_call] {BODY} is a call.",
    "on a line of an answer": f"I look.\n[tool_call] {BODY}\n",
    "with more behind it": f"[tool_call] {BODY}\nSo.",
    "in a fence": f"```\n[tool_call] {BODY}\n```",
    "a draft": f"<think>\n[tool_call] {BODY}\n</think>\nNo.",
    "a second draft": f"<think>a</think>\n<think>\n[tool_call] {BODY}\n</think>\nNo.",
    "a draft of another kind": f"<thinking>\n</think>\n[tool_call] {BODY}\n</thinking>\nNo.",
    "broken": "[tool_call] {'name': 'search'}",
    "a header": "[tool:call_1]",
    "half a header": "[tool_ca",
}


@pytest.mark.parametrize("text", NO_CALLS.values(), ids=NO_CALLS)
def test_else_it_is_text(text: str) -> None:
    for events in every_size(text):
        assert answer_of(events) == Answer(text, [], "ok")


def test_what_breaks_off_is_malformed_where_nothing_else_begins_like_it() -> None:
    begun = '[tool_call] {"name": "read_note", "argu'
    for events in every_size(begun):
        assert merged(events) == [CallMalformed("the JSON is cut off", begun)]
    for events in every_size('[tool:call_1] {"temperature": 10'):
        assert answer_of(events).status == "ok"


PIECES = st.sampled_from(
    ["[tool_call] ", "[tool:call_1] ", "[tool:read_note] ", "\n", BODY, NOTE[1], TAGGED, "So.", "```\n", "{", "["]
)


@given(st.lists(PIECES, max_size=8).map("".join), st.integers(1, 40))
def test_how_the_answer_is_cut_does_not_show(text: str, size: int) -> None:
    whole = headed([text])
    assert merged(outside(headed(cut(text, size)))) == merged(outside(whole))
    assert "".join(received(whole).split()) == "".join(text.split())


READ = '{"name":"read_note","arguments":{"path":"</tool_call> \\"calls\\""}}'
SEARCH = '{"name": "search", "arguments": {"query": "a"}}'
BOTH = f'{{"calls": [{READ},\n {SEARCH}]}}'


def held(pieces: list[str], *, arguments: bool = True, max_chars: int = 10_000) -> list[ParserEvent]:
    return read(pieces, AnswerParser(REGISTRY, HELD_ANSWERS, arguments=arguments, max_chars=max_chars))


def held_calls(events: list[ParserEvent]) -> list[tuple[str, str, Tier]]:
    return [(call.name, call.arguments, call.tier) for call in completed(events)]


@given(st.lists(st.integers(0, len(BOTH) + 4)))
def test_what_a_decoder_was_held_to_is_read_however_it_is_cut(cuts: list[int]) -> None:
    text = f"\n {BOTH}\n\n"
    events = held([text[start:end] for start, end in pairwise([0, *sorted(cuts), len(text)])])
    assert held_calls(events) == [
        ("read_note", '{"path":"</tool_call> \\"calls\\""}', Tier.HELD),
        ("search", '{"query": "a"}', Tier.HELD),
    ]
    assert received(events) == text
    assert [event.index for event in events if isinstance(event, CallStarted)] == [0, 1]


@pytest.mark.parametrize("arguments", [True, False])
def test_one_call_that_was_held_is_told_whole(arguments: bool) -> None:
    text = '{"call":{"id": "c1", "x": 1, "name": "search", "arguments": {"query": "a"}}}'
    extra = (("x", "1"),)
    assert held([text], arguments=arguments) == [
        CallStarted(0, "search", "c1", extra, bare=True),
        *(['{"query": "a"}'] if arguments else []),
        CallCompleted(0, "search", '{"query": "a"}', "c1", text, Tier.HELD, extra=extra),
    ]


def test_a_held_answer_that_is_cut_off_is_no_text() -> None:
    assert held([BOTH[:-9]]) == [CallMalformed("the JSON is cut off", BOTH[:-9])]


@pytest.mark.parametrize(
    "text",
    [
        "I need no tool.",
        f"I look.\n{write_call('search', '{}')}",
        SEARCH,
        f"{BOTH} That is all.",
        f"```json\n{BOTH}\n```",
        '{"calls": []}',
        '{"calls": [{"name": "delete", "arguments": {}}]}',
        '{"calls": [{"tool": "search", "arguments": {}}]}',
        '{"calls": [{"name": "search", "arguments": {"a": 1, "a": 2}}]}',
        '{"calls": [], "more": 1}',
        '{"calls": ]',
        '{"calls',
        "{",
        "",
    ],
)
def test_anything_else_is_read_as_where_nothing_is_held(text: str) -> None:
    assert merged(held(list(text))) == merged(headed([text]))


def test_more_than_a_held_call_may_be_is_text() -> None:
    assert merged(held(list(BOTH), max_chars=20)) == [BOTH]


@given(st.dictionaries(st.text(), st.text()))
def test_held_arguments_are_the_models_own_characters(arguments: dict[str, str]) -> None:
    text = json.dumps(arguments)
    assert held_calls(held([f'{{"calls":[{{"name":"search","arguments":{text}}}]}}'])) == [("search", text, Tier.HELD)]
