from __future__ import annotations

import pytest

from parser import CallCompleted
from prompts.quoted_blocks import BlockReader, TooMuchToReadError

CALL = '<tool_call>{"name": "x", "arguments": {"n": %d}}</tool_call>'


def calls(reader: BlockReader, text: str) -> list[str]:
    return [event.arguments for events in reader.read(text) for event in events if isinstance(event, CallCompleted)]


def test_a_block_is_read_once() -> None:
    reader = BlockReader(1000)
    assert calls(reader, f"{CALL % 1}{CALL % 3}.") == ['{"n": 1}', '{"n": 3}']
    assert calls(reader, f"{CALL % 1}{CALL % 2}") == ['{"n": 2}']


def test_a_block_that_goes_on_behind_a_tag_is_read_in_each_text() -> None:
    reader = BlockReader(1000)
    begun = '<tool_call>{"name": "x", "arguments": {"t": "<tool_call>'
    assert calls(reader, begun) == []
    assert calls(reader, f'{begun}"}}}}</tool_call>') == ['{"t": "<tool_call>"}']


def test_too_many_blocks_are_not_read() -> None:
    with pytest.raises(TooMuchToReadError):
        calls(BlockReader(10**6), CALL % 1 * 10_001)
    assert sum(1 for _ in BlockReader(10**6).read(CALL % 1 * 10_001, more=1)) == 1


def test_more_than_the_request_is_worth_is_not_read() -> None:
    text = '<tool_call>{"name": "' + "x" * 100_000
    assert calls(BlockReader(len(text)), text) == []
    with pytest.raises(TooMuchToReadError):
        calls(BlockReader(10), text)
