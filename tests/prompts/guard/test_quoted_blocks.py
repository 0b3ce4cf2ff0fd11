from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser import CallCompleted, SentinelParser, write_call
from prompts.guard.budget import LEAST, ReadingBudget, TooMuchToReadError
from prompts.guard.quoted_blocks import BlockReader, tags_as_read

CALL = '<tool_call>{"name": "x", "arguments": {"n": %d}}</tool_call>'


def calls(reader: BlockReader, text: str) -> list[str]:
    return [event.arguments for events in reader.read(text) for event in events if isinstance(event, CallCompleted)]


def test_a_block_is_read_once() -> None:
    reader = BlockReader(ReadingBudget(0))
    assert calls(reader, f"{CALL % 1}{CALL % 3}.") == ['{"n": 1}', '{"n": 3}']
    assert calls(reader, f"{CALL % 1}{CALL % 2}") == ['{"n": 2}']


def test_a_block_that_goes_on_behind_a_tag_is_read_in_each_text() -> None:
    reader = BlockReader(ReadingBudget(0))
    begun = '<tool_call>{"name": "x", "arguments": {"t": "<tool_call>'
    assert calls(reader, begun) == []
    assert calls(reader, f'{begun}"}}}}</tool_call>') == ['{"t": "<tool_call>"}']


@pytest.mark.parametrize("end", ["}}", ",}}"])
def test_blocks_that_begin_alike_are_each_read(end: str) -> None:
    begun = '<tool_call>{"name": "x", "arguments": {"t": "</tool_call>", "n": %d' + end + "</tool_call>"
    read = calls(BlockReader(ReadingBudget(0)), f"{begun % 1}. {begun % 2}")
    assert [json.loads(arguments)["n"] for arguments in read] == [1, 2]


@pytest.mark.parametrize("behind", ["\n\nname = value", "\n0=", " x={"])
def test_a_block_that_nobody_closed_is_read_to_its_end_whatever_stands_behind_it(behind: str) -> None:
    begun = (CALL % 1).removesuffix("</tool_call>")
    assert calls(BlockReader(ReadingBudget(0)), begun + behind) == ['{"n": 1}']


def test_too_many_blocks_are_not_read() -> None:
    with pytest.raises(TooMuchToReadError):
        calls(BlockReader(ReadingBudget(10**6)), CALL % 1 * 10_001)
    assert sum(1 for _ in BlockReader(ReadingBudget(10**6)).read(CALL % 1 * 10_001, more=1)) == 1


def test_more_than_the_request_is_worth_is_not_read() -> None:
    text = '<tool_call>{"name": "' + "x" * 100_000
    assert calls(BlockReader(ReadingBudget(len(text))), text) == []
    with pytest.raises(TooMuchToReadError):
        calls(BlockReader(ReadingBudget(0)), "x" * (2 * LEAST + 2) + "<")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
    | st.sampled_from(["</tool_call>", "```", "[tool:c] x", "<think>", "\\", '"']),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(
    st.dictionaries(st.text(), VALUES, max_size=4),
    st.sampled_from(["", " ", "\n", "\t"]),
    st.sampled_from(["", ".", "}"]),
)
def test_a_plain_block_is_read_as_it_would_be_in_an_answer(
    arguments: dict[str, object], blank: str, behind: str
) -> None:
    block = write_call("x", json.dumps(arguments, ensure_ascii=False)).replace('": ', f'":{blank}')
    text = block.replace("</tool_call>", f"{blank}</tool_call>") + behind
    reader = SentinelParser()
    events = [*reader.receive_text(text), *reader.receive_eof()]
    in_an_answer = [event.arguments for event in events if isinstance(event, CallCompleted)]
    read = [tags_as_read(found) for found in calls(BlockReader(ReadingBudget(0)), text)]
    assert read[: len(in_an_answer)] == list(map(tags_as_read, in_an_answer))
