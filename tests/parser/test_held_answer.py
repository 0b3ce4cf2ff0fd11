"""Answers of a model that could write nothing but calls, and of one that was not held after all."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser import (
    CallCompleted,
    CallMalformed,
    CallStarted,
    HeadedCallParser,
    HeldAnswerParser,
    ParserEvent,
    Tier,
    Tool,
    ToolRegistry,
    write_call,
)

TOOLS = ToolRegistry([Tool("read_note"), Tool("search")])
READ = '{"name":"read_note","arguments":{"path":"</tool_call> \\"calls\\""}}'
SEARCH = '{"name": "search", "arguments": {"query": "a"}}'
BOTH = f'{{"calls": [{READ},\n {SEARCH}]}}'


def read(text: str, cuts: list[int] | None = None, parser: HeldAnswerParser | None = None) -> list[ParserEvent]:
    parser = parser or HeldAnswerParser(TOOLS)
    places = [0, *sorted(min(cut, len(text)) for cut in cuts or []), len(text)]
    events = [event for start, end in pairwise(places) for event in parser.receive_text(text[start:end])]
    return [*events, *parser.receive_eof()]


def calls(events: list[ParserEvent]) -> list[tuple[str, str, Tier]]:
    return [(event.name, event.arguments, event.tier) for event in events if isinstance(event, CallCompleted)]


@given(st.lists(st.integers(0, len(BOTH) + 4)))
def test_calls_are_read_however_the_text_is_cut(cuts: list[int]) -> None:
    events = read(f"\n {BOTH}\n\n", cuts)
    assert calls(events) == [
        ("read_note", '{"path":"</tool_call> \\"calls\\""}', Tier.HELD),
        ("search", '{"query": "a"}', Tier.HELD),
    ]
    assert "".join(event.raw for event in events if isinstance(event, CallCompleted)) == f"\n {BOTH}\n\n"


@pytest.mark.parametrize("arguments", [True, False])
def test_one_call_is_told_whole(arguments: bool) -> None:
    text = '{"call":{"id": "c1", "x": 1, "name": "search", "arguments": {"query": "a"}}}'
    extra = (("x", "1"),)
    assert read(text, parser=HeldAnswerParser(TOOLS, arguments=arguments)) == [
        CallStarted(0, "search", "c1", extra, bare=True),
        *(['{"query": "a"}'] if arguments else []),
        CallCompleted(0, "search", '{"query": "a"}', "c1", text, Tier.HELD, extra=extra),
    ]


def test_calls_are_numbered() -> None:
    assert [event.index for event in read(BOTH) if isinstance(event, CallStarted)] == [0, 1]


def test_an_answer_that_is_cut_off_is_no_text() -> None:
    assert read(BOTH[:-9]) == [CallMalformed("the JSON is cut off", BOTH[:-9])]


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
    other = HeadedCallParser(TOOLS)
    wanted = [*other.receive_text(text), *other.receive_eof()]
    assert joined(read(text, [*range(len(text))])) == joined(wanted)


def joined(events: list[ParserEvent]) -> list[object]:
    seen: list[object] = []
    for event in events:
        if isinstance(event, str) and seen and isinstance(seen[-1], str):
            seen[-1] += event
        else:
            seen.append(event)
    return seen


def test_more_than_a_call_may_be_is_text() -> None:
    assert joined(read(BOTH, parser=HeldAnswerParser(TOOLS, max_chars=20))) == [BOTH]


@given(st.dictionaries(st.text(), st.text()))
def test_arguments_are_the_models_own_characters(arguments: dict[str, str]) -> None:
    text = json.dumps(arguments)
    assert calls(read(f'{{"calls":[{{"name":"search","arguments":{text}}}]}}')) == [("search", text, Tier.HELD)]
