from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser import ParserEvent
from parser.segment import MAX_HELD_BLANK, Segment
from tests.parser.reading import received


def said(segment: Segment, *texts: str) -> str:
    events: list[ParserEvent] = []
    for text in texts:
        segment.say(text, events)
    return received(events)


def test_text_is_said_at_once() -> None:
    assert said(Segment(), "a") == "a"


def test_white_space_before_text_is_said_with_it() -> None:
    segment = Segment()
    assert said(segment, "\n", " ") == ""
    assert said(segment, "a") == "\n a"


def test_white_space_after_text_is_said_at_once() -> None:
    assert said(Segment(), "a", "\n") == "a\n"


def test_white_space_between_calls_is_handed_to_the_second() -> None:
    segment = Segment()
    assert segment.end_with_call() == ""
    assert said(segment, "\n\n") == ""
    assert segment.end_with_call() == "\n\n"
    assert said(segment, "a") == "a"


@pytest.mark.parametrize(("after_call", "told"), [(False, "\n"), (True, "")])
def test_white_space_at_the_end_is_only_dropped_after_a_call(after_call: bool, told: str) -> None:
    segment = Segment()
    if after_call:
        segment.end_with_call()
    events: list[ParserEvent] = []
    segment.say("\n", events)
    segment.end(events)
    assert received(events) == told


def test_what_was_held_is_released_once() -> None:
    segment, events = Segment(), list[ParserEvent]()
    segment.say("\n", events)
    segment.release(events)
    segment.release(events)
    assert events == ["\n"]
    assert segment.take() == ""


@given(st.lists(st.integers(1, MAX_HELD_BLANK), max_size=5))
def test_white_space_is_held_up_to_its_limit_however_it_is_cut(sizes: list[int]) -> None:
    total = sum(sizes)
    expected = total if total > MAX_HELD_BLANK else 0
    assert len(said(Segment(), *(" " * size for size in sizes))) == expected
