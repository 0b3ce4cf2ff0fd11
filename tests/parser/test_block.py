from __future__ import annotations

import pytest

from parser import CallCompleted, CallMalformed, CallStarted, ParserEvent, Tier
from parser.block import ENDED, LIVE, OPENED, PROSE, READERS, Block, continuing, events_left
from parser.call_shape import Call
from parser.live_call import LiveCall
from parser.prose import Prose
from parser.read_block import Calls, Malformed
from parser.rules import Rule


def call_begun(text: str) -> LiveCall:
    """A call of which so much was told while it was written."""
    live = LiveCall(3)
    events: list[ParserEvent] = []
    live.feed(text, events)
    return live


NAMED = call_begun('"name": "r", "arguments": {"p": "a')


@pytest.mark.parametrize(
    "call", [Call("r", '{"p": "ab"}', None, ()), Call("r", '{"p": "a', None, ()), Call("r", '{"p": "a"}', "c", ())]
)
def test_a_reading_that_goes_on_from_what_was_told_stands(call: Call) -> None:
    reading = Calls((call,), 9)
    assert continuing(NAMED, reading) is reading


@pytest.mark.parametrize("call", [Call("w", '{"p": "ab"}', None, ()), Call("r", '{"p":"ab"}', None, ())])
def test_a_reading_that_takes_something_back_is_none(call: Call) -> None:
    assert isinstance(continuing(NAMED, Calls((call,), 9)), Malformed)
    assert isinstance(continuing(call_begun(""), Calls((call,), 9)), Calls)


def test_a_reason_stays_that_reason() -> None:
    assert continuing(NAMED, Malformed("no")) == Malformed("no")


def test_only_the_rest_of_a_call_is_told() -> None:
    call = Call("r", '{"p": "ab"}', "c1", (("x", "1"),), (Rule.UNCLOSED,))
    assert events_left(NAMED, [call], "raw", " ") == [
        'b"}',
        CallCompleted(3, "r", '{"p": "ab"}', "c1", "raw", Tier.REPAIRED, ("unclosed",), (("x", "1"),), " "),
    ]


def test_of_several_calls_the_first_carries_the_text_and_each_is_told_whole() -> None:
    calls = [Call("r", "{}", "c1", (("x", "1"),)), Call("w", '{"q": 1}', None, (), (Rule.SEVERAL_OBJECTS,))]
    assert events_left(call_begun(""), calls, "raw", "\n") == [
        CallStarted(3, "r", "c1", (("x", "1"),)),
        "{}",
        CallCompleted(3, "r", "{}", "c1", "raw", Tier.VALID, (), (("x", "1"),), "\n"),
        CallStarted(4, "w", None),
        '{"q": 1}',
        CallCompleted(4, "w", '{"q": 1}', None, "", Tier.REPAIRED, ("several-objects",)),
    ]


BEGUN = '<tool_call>{"name": "r", "arguments": {"p": "a'


def read(block: Block, text: str) -> tuple[list[ParserEvent], str]:
    """The events of that text, and what is left of it behind the block."""
    events: list[ParserEvent] = []
    while text and block.state:
        text = READERS[block.state](block, text, events)
    return events, text


def begun(max_chars: int = 1000) -> Block:
    """A block in the middle of a string of its arguments."""
    block = Block(Prose(()), max_chars)
    block.state = OPENED
    read(block, BEGUN)
    read(block, "b")
    assert (block.state, block.call.in_string) == (LIVE, True)
    return block


def test_there_is_a_reader_for_every_state() -> None:
    assert len(READERS) == ENDED + 1


def test_what_was_told_belongs_to_the_call() -> None:
    block = begun()
    block.written.told += ["c", "d"]
    block.written.join_told(block.call)
    events, rest = read(block, '"}}</tool_call> x')
    assert events == [
        '"}',
        CallCompleted(0, "r", '{"p": "abcd"}', None, f'{BEGUN}bcd"}}}}</tool_call>'),
    ]
    assert (rest, block.state) == (" x", PROSE)


def test_what_was_told_counts_for_the_length() -> None:
    inside = len(BEGUN) - len("<tool_call>") + 1
    block = begun(inside + 3)
    block.written.told.append("cd")
    block.written.join_told(block.call)
    assert block.written.room == 1
    events, rest = read(block, "efg")
    assert events[-1] == CallMalformed(f"more than {inside + 3} characters", f"{BEGUN}bcde", 0)
    assert (rest, block.call.in_string) == ("fg", False)


@pytest.mark.parametrize("more", ["", "\\", "\\u00"])
def test_half_an_escape_at_the_end_is_not_lost(more: str) -> None:
    block = begun()
    block.written.told.append("c")
    block.written.begun = more
    events: list[ParserEvent] = []
    assert block.end(events) == ""
    assert events == [CallMalformed("the call is cut off", f"{BEGUN}bc{more}", 0)]


def test_calls_are_counted_over_blocks() -> None:
    block = Block(Prose(()), 1000)
    whole = f'{BEGUN}"}}}}</tool_call>'
    numbers = []
    for text in (whole, f'{BEGUN}"]</tool_call>', "<tool_call>{}</tool_call>", whole):
        block.state = OPENED
        numbers += [event.index for event in read(block, f"{text}.")[0] if isinstance(event, CallStarted)]
    assert numbers == [0, 1, 2]
