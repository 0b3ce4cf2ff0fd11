"""Calls with a header in place of their tags."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser import (
    CallCompleted,
    CallMalformed,
    CallStarted,
    HeadedCallParser,
    ParserEvent,
    ReadingEnded,
    Tier,
    Tool,
    ToolRegistry,
)
from tests.parser.reading import Answer, answer_of, arguments_told, completed, cut, merged, outside, read, received

SCHEMA = '{"type":"object","properties":{"path":{"type":"string"},"line":{"type":"integer"}},"required":["path"]}'
REGISTRY = ToolRegistry([Tool("read_note", None, SCHEMA), Tool("search")])
NOTE = ("read_note", '{"path": "a.md"}')
BODY = f'{{"name": "read_note", "arguments": {NOTE[1]}}}'
TAGGED = f"<tool_call>{BODY}</tool_call>"


def headed(pieces: list[str], *, arguments: bool = True) -> list[ParserEvent]:
    return read(pieces, HeadedCallParser(REGISTRY, arguments=arguments))


def every_size(text: str) -> list[list[ParserEvent]]:
    return [headed(cut(text, size)) for size in (1, 2, 3, 7, 0)]


CALLS = {
    "the tag in brackets": f"[tool_call] {BODY}",
    "closed": f"[tool_call]\n{BODY} [/tool_call]\n",
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
    "indented": f"  [tool_call] {BODY}",
    "with a word behind it": f"[tool_call] {BODY} is a call.",
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


@pytest.mark.parametrize(
    "text",
    [
        f"I look.\n[tool_call] {BODY}\n[tool:read_note] {NOTE[1]}\n{TAGGED}\nSo.",
        f"{TAGGED}\n[tool_call] {BODY}\n[tool_call] {BODY}\nSo.",
    ],
)
def test_calls_of_both_notations_are_counted_together(text: str) -> None:
    for events in every_size(text):
        assert [event.index for event in events if isinstance(event, CallCompleted)] == [0, 1, 2]
        assert answer_of(events).calls == [NOTE] * 3
        assert received(events).split() == text.split()
        assert answer_of(events).text.split() == ["I", "look.", "So."] if text[0] == "I" else ["So."]


@pytest.mark.parametrize(
    "before",
    [
        "<think>\n</think>\n",
        "<think>a</think> and <think>b</think>\n",
        "<think>\n```\n</think>\n",
        "A draft is in `<think>` tags.\n",
        "```\n<think>\n```\n",
    ],
)
def test_where_no_draft_is_open_a_header_counts(before: str) -> None:
    for events in every_size(f"{before}[tool_call] {BODY}"):
        assert answer_of(events) == Answer(before, [NOTE], "repaired")


def test_a_tagged_call_that_breaks_keeps_its_number() -> None:
    text = f"[tool_call] {BODY}\n<tool_call>{BODY[:-1]}, x}}</tool_call>\n[tool_call] {BODY}\n"
    for events in every_size(text):
        assert [event.index for event in outside(events) if isinstance(event, CallStarted)] == [0, 1, 2]
        assert [event.index for event in events if isinstance(event, CallMalformed)] == [1]


def test_behind_a_block_that_is_text_white_space_is_text() -> None:
    for events in every_size("<tool_call>{}</tool_call>\n \n"):
        assert answer_of(events) == Answer("<tool_call>{}</tool_call>\n \n", [], "malformed")
    for events in every_size(f"<tool_call>{{}}</tool_call>\n\n{TAGGED}"):
        assert answer_of(events) == Answer("<tool_call>{}</tool_call>\n\n", [NOTE], "malformed")


def test_behind_a_tagged_call_a_result_is_a_result() -> None:
    for events in every_size(f"{TAGGED}\n[tool:read_note] {NOTE[1]}"):
        assert isinstance(events[-1], ReadingEnded)


def test_what_breaks_off_is_malformed_where_nothing_else_begins_like_it() -> None:
    begun = '[tool_call] {"name": "read_note", "argu'
    for events in every_size(f"I look.\n{begun}"):
        assert merged(events) == ["I look.\n", CallMalformed("the JSON is cut off", begun)]
    for events in every_size('[tool:call_1] {"temperature": 10'):
        assert answer_of(events).status == "ok"


PIECES = st.sampled_from(
    [
        "[tool_call] ",
        "[tool:call_1] ",
        "[tool:read_note] ",
        "\n",
        BODY,
        NOTE[1],
        TAGGED,
        "So.",
        "```\n",
        "{",
        "[",
        "<think>",
        "</think>",
        "`",
    ]
)


@given(st.lists(PIECES, max_size=8).map("".join), st.integers(1, 40))
def test_how_the_answer_is_cut_does_not_show(text: str, size: int) -> None:
    whole = headed([text])
    assert merged(outside(headed(cut(text, size)))) == merged(outside(whole))
    assert "".join(received(whole).split()) == "".join(text.split())
