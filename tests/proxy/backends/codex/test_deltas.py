"""Deltas that were read together: as text and in order nothing changes, there are only fewer of them."""

from __future__ import annotations

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.backends.codex.deltas import TEXT_DELTA, join_deltas
from proxy.rpc import Message
from proxy.rpc.connection import LineSkipped


def delta(text: str, *, thread: str = "t1", turn: str = "1", item: str = "m") -> Message:
    params = {"threadId": thread, "turnId": turn, "itemId": item, "delta": text}
    return {"method": TEXT_DELTA, "params": params}


def other(thread: str = "t1") -> Message:
    return {"method": "item/completed", "params": {"threadId": thread, "turnId": "1", "item": {}}}


ASKED = {"id": 1, "method": "item/tool/call", "params": {"threadId": "t1"}}
ANSWERED = {"id": 1, "result": {}}


def test_what_was_read_together_is_one() -> None:
    assert join_deltas([delta("a "), delta("a "), delta("b")]) == [delta("a a b")]


def test_threads_are_told_apart() -> None:
    events = [delta("a"), delta("x", thread="t2"), delta("b"), delta("y", thread="t2")]
    assert join_deltas(events) == [delta("ab"), delta("xy", thread="t2")]


def test_another_line_of_the_thread_stands_between() -> None:
    events = [delta("a"), other(), delta("b")]
    assert join_deltas(deepcopy(events)) == events


def test_another_line_of_another_thread_does_not() -> None:
    assert join_deltas([delta("a"), other("t2"), delta("b")]) == [delta("ab"), other("t2")]


@pytest.mark.parametrize("between", [ASKED, ANSWERED, LineSkipped("not JSON", 3), [1]])
def test_what_is_no_notification_stands_between_all(between: Message) -> None:
    events = [delta("a"), between, delta("b")]
    assert join_deltas(deepcopy(events)) == events


def test_messages_and_turns_stay_apart() -> None:
    events = [delta("a"), delta("b", item="n"), delta("c", item="n", turn="2")]
    assert join_deltas(deepcopy(events)) == events


def test_lines_of_another_shape_stay_as_they_are() -> None:
    events = [
        delta("a"),
        {"method": TEXT_DELTA, "params": {"threadId": "t1", "turnId": "1", "itemId": "m", "delta": 1}},
        {"method": TEXT_DELTA, "params": {"threadId": ["t1"], "delta": "b"}},
        {"method": TEXT_DELTA, "params": [delta("b")]},
        {"method": TEXT_DELTA},
    ]
    assert join_deltas(deepcopy(events)) == events


ONE = st.sampled_from(["t1", "t2"])
EVENTS = st.lists(
    st.builds(delta, st.text(max_size=3), thread=ONE, turn=st.sampled_from("12"), item=st.sampled_from("mn"))
    | st.builds(other, ONE)
    | st.sampled_from([ASKED, ANSWERED])
)


def told(events: list[Message], thread: str) -> list[object]:
    """What a thread was told, with the text of each stretch in one."""
    stretches: list[object] = []
    last: object = None
    for event in events:
        match event:
            case {"params": {"threadId": other}} if other != thread and "id" not in event:
                continue
            case {"params": {"turnId": turn, "itemId": item, "delta": str(text)}}:
                if last == (turn, item):
                    stretches[-1] = f"{stretches[-1]}{text}"
                else:
                    stretches.append(text)
                last = turn, item
            case _:
                stretches.append(event)
                last = None
    return stretches


@given(EVENTS)
def test_each_thread_is_told_the_same(events: list[Message]) -> None:
    joined = join_deltas(deepcopy(events))
    assert all(told(joined, thread) == told(events, thread) for thread in ("t1", "t2"))
    assert len(joined) <= len(events)
    assert join_deltas(deepcopy(joined)) == joined
