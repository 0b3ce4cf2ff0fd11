from __future__ import annotations

import pytest
from msgspec.structs import replace

from parser import CallCompleted, CallMalformed, CallStarted, ParserEvent, SentinelParser, Tier
from parser.block import ENDED, LIVE, OPENED, PROSE, READERS, Block
from parser.prose import Prose
from tests.parser.reading import merged

BEGUN = '<tool_call>{"name": "r", "arguments": {"p": "a'


def read(block: Block, text: str) -> tuple[list[ParserEvent], str]:
    """The events of that text, and what is left of it behind the block."""
    events: list[ParserEvent] = []
    while text and block.state:
        text = READERS[block.state](block, text, events)
    return events, text


def begun(max_chars: int = 1000) -> Block:
    """A block in the middle of a string of its arguments."""
    block = Block(Prose(), max_chars)
    block.state = OPENED
    read(block, BEGUN)
    read(block, "b")
    assert (block.state, block.call.scanner.in_string) == (LIVE, True)
    return block


def test_there_is_a_reader_for_every_state() -> None:
    assert len(READERS) == ENDED + 1


def test_what_was_told_belongs_to_the_call() -> None:
    block = begun()
    block.add_told("cd")
    events, rest = read(block, '"}}</tool_call> x')
    assert events == [
        '"}',
        CallCompleted(0, "r", '{"p": "abcd"}', None, f'{BEGUN}bcd"}}}}</tool_call>'),
    ]
    assert (rest, block.state) == (" x", PROSE)


def test_what_was_told_counts_for_the_length() -> None:
    inside = len(BEGUN) - len("<tool_call>") + 1
    block = begun(inside + 3)
    block.add_told("cd")
    assert block.call.size == inside + 2
    events, rest = read(block, "efg")
    assert events[-1] == CallMalformed(f"more than {inside + 3} characters", f"{BEGUN}bcde", 0)
    assert (rest, block.state) == ("fg", PROSE)


@pytest.mark.parametrize("more", ["", "\\", "\\u00"])
def test_half_an_escape_at_the_end_is_not_lost(more: str) -> None:
    parser = SentinelParser()
    events = [event for piece in (BEGUN, "b", "c", more) for event in parser.receive_text(piece)]
    assert [*events, *parser.receive_eof()][-1] == CallMalformed("the call is cut off", f"{BEGUN}bc{more}", 0)


@pytest.mark.parametrize(
    ("rest", "left"),
    [
        (
            'b",}}</tool_call>',
            ['b"}', CallCompleted(0, "r", '{"p": "ab"}', None, "", Tier.REPAIRED, ("trailing-comma",))],
        ),
        ('b"}, "id": "c"}</tool_call>', ['b"}', CallCompleted(0, "r", '{"p": "ab"}', "c", "")]),
    ],
)
def test_of_a_repaired_call_only_the_rest_is_told(rest: str, left: list[ParserEvent]) -> None:
    block = Block(Prose(), 1000)
    block.state = OPENED
    read(block, BEGUN)
    events, _ = read(block, rest)
    assert isinstance(completed := events.pop(), CallCompleted)
    assert merged([*events, replace(completed, raw="")]) == left
    assert completed.raw == BEGUN + rest


def test_a_repair_that_takes_something_back_is_none() -> None:
    block = Block(Prose(), 1000)
    block.state = OPENED
    read(block, '<tool_call>{"name": "r", "arguments": {"p": 1}')
    events, _ = read(block, ', "name": "w"}</tool_call>')
    assert [type(event) for event in events] == [CallMalformed]


def test_calls_are_counted_over_blocks() -> None:
    block = Block(Prose(), 1000)
    whole = f'{BEGUN}"}}}}</tool_call>'
    numbers = []
    for text in (whole, f'{BEGUN}"]</tool_call>', "<tool_call>{}</tool_call>", whole):
        block.state = OPENED
        numbers += [event.index for event in read(block, f"{text}.")[0] if isinstance(event, CallStarted)]
    assert numbers == [0, 1, 2]
