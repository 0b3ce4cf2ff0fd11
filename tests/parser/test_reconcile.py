from __future__ import annotations

import pytest

from parser import CallCompleted, CallStarted, ParserEvent, Tier
from parser.call_shape import Call
from parser.live_call import LiveCall
from parser.read_block import Calls, Malformed
from parser.reconcile import continuing, events_left
from parser.rules import Rule


def begun(text: str) -> LiveCall:
    """A call of which so much was told while it was written."""
    live = LiveCall(3)
    events: list[ParserEvent] = []
    live.feed(text, events)
    return live


NAMED = begun('"name": "r", "arguments": {"p": "a')


@pytest.mark.parametrize(
    "call", [Call("r", '{"p": "ab"}', None, ()), Call("r", '{"p": "a', None, ()), Call("r", '{"p": "a"}', "c", ())]
)
def test_a_reading_that_goes_on_from_what_was_told_stands(call: Call) -> None:
    reading = Calls((call,), 9)
    assert continuing(NAMED, reading) is reading


@pytest.mark.parametrize("call", [Call("w", '{"p": "ab"}', None, ()), Call("r", '{"p":"ab"}', None, ())])
def test_a_reading_that_takes_something_back_is_none(call: Call) -> None:
    assert isinstance(continuing(NAMED, Calls((call,), 9)), Malformed)
    assert isinstance(continuing(begun(""), Calls((call,), 9)), Calls)


def test_a_reason_stays_that_reason() -> None:
    assert continuing(NAMED, Malformed("no")) == Malformed("no")


def test_only_the_rest_of_a_call_is_told() -> None:
    call = Call("r", '{"p": "ab"}', "c1", (("x", "1"),), (Rule.UNCLOSED,))
    assert events_left(NAMED, [call], "raw", " ") == [
        'b"}',
        CallCompleted(3, "r", '{"p": "ab"}', "c1", "raw", Tier.REPAIRED, ("unclosed",), (("x", "1"),), " "),
    ]


def test_of_several_calls_the_first_carries_the_text_and_each_is_told_whole() -> None:
    calls = [Call("r", "{}", None, ()), Call("w", '{"q": 1}', None, (), (Rule.SEVERAL_OBJECTS,))]
    assert events_left(begun(""), calls, "raw", "\n") == [
        CallStarted(3, "r", None),
        "{}",
        CallCompleted(3, "r", "{}", None, "raw", Tier.VALID, (), (), "\n"),
        CallStarted(4, "w", None),
        '{"q": 1}',
        CallCompleted(4, "w", '{"q": 1}', None, "", Tier.REPAIRED, ("several-objects",)),
    ]
