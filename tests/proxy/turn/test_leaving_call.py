"""A call that leaves while it is written."""

from __future__ import annotations

from prompts import MASK
from proxy.contracts import Reasoning, ToolCallArguments, ToolCallEnded, ToolCallStarted, TurnEvent
from proxy.turn.leaving_call import LeavingCall

KEY = "7qhvxmrtbz"
START, END = ToolCallStarted("call_1", "read_note"), ToolCallEnded()


def test_reasoning_waits_for_the_end_of_a_call_and_for_nothing_else() -> None:
    out: list[TurnEvent] = []
    leaving = LeavingCall(out, None)
    first, second, third = (Reasoning(0, text) for text in "abc")
    leaving.let_pass(first)
    leaving.begin(0, START)
    leaving.let_pass(second)
    leaving.feed("{}")
    leaving.end(END)
    leaving.let_pass(third)
    assert out == [first, START, ToolCallArguments("{}"), END, second, third]


def test_a_key_is_masked_in_its_arguments_however_they_are_cut() -> None:
    out: list[TurnEvent] = []
    leaving = LeavingCall(out, KEY)
    leaving.begin(0, START)
    for char in f'{{"a": "{KEY}"}}{KEY[:9]}':
        leaving.feed(char)
    leaving.end(END)
    told = "".join(event.text for event in out if isinstance(event, ToolCallArguments))
    assert told == f'{{"a": "{MASK}"}}{MASK}'
    assert out[-1] == END


def test_what_was_held_back_of_one_call_is_not_in_the_next() -> None:
    out: list[TurnEvent] = []
    leaving = LeavingCall(out, KEY)
    for index, text in enumerate([KEY[:3], KEY[3:]]):
        leaving.begin(index, START)
        assert leaving.index == index
        leaving.feed(text)
        leaving.end(END)
        assert leaving.index is None
    assert out == [START, ToolCallArguments(KEY[:3]), END, START, ToolCallArguments(KEY[3:]), END]
