"""A recorded turn under fresh ids and with its text cut anew."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.replay.fixture import RecordedTurn, ReplayMessage, Step, parse_fixture
from proxy.replay.playback import Speed, parse_speed, play, recut
from tests.proxy.replay.child import answered, asked, counted, jsonl, said


def fixture_of(pieces: list[str]) -> RecordedTurn:
    (turn,) = parse_fixture("case", jsonl([asked("hi"), *answered(pieces, at=2.0)])).turns
    return turn


def delta_of(message: ReplayMessage) -> str | None:
    match message:
        case {"method": "item/agentMessage/delta", "params": {"delta": str(delta)}}:
            return delta
        case _:
            return None


def deltas(steps: list[Step]) -> list[str]:
    return [delta for step in steps if (delta := delta_of(step.message)) is not None]


def test_ids_are_fresh_and_text_that_looks_like_one_is_not_touched() -> None:
    messages = [step.message for step in play(fixture_of(["T", "U", "I"]), "thread", "turn")]
    started, first = messages[0], messages[1]
    match started, first:
        case {"params": {"item": {"id": str(item)}}}, {"params": {"itemId": str(same)}}:
            assert item == same != "I"
        case _:
            raise AssertionError(messages)
    assert first["params"] == {"threadId": "thread", "turnId": "turn", "itemId": item, "delta": "T"}
    assert messages[-1]["params"] == {
        "threadId": "thread",
        "turn": {"id": "turn", "status": "completed", "error": None},
    }


def test_the_tokens_of_a_turn_come_on_top_of_those_of_the_thread() -> None:
    *before, end = answered(["x"])
    (turn,) = parse_fixture("case", jsonl([asked("hi"), *before, counted(7, 7), end])).turns
    *_, usage, _ = (step.message for step in play(turn, "thread", "turn", spent={"inputTokens": 10}))
    assert usage["params"] == {
        "threadId": "thread",
        "turnId": "turn",
        "tokenUsage": {
            "total": {"totalTokens": 7, "inputTokens": 17},
            "last": {"totalTokens": 7, "inputTokens": 7},
        },
    }


def test_two_plays_share_no_item_id() -> None:
    fixture = fixture_of(["x"])
    first, second = (next(play(fixture, "thread", "turn")).message for _ in range(2))
    assert first != second


def test_a_message_ends_before_the_next_one_begins() -> None:
    lines = [
        said(0.0, "item/agentMessage/delta", turnId="U", itemId="one", delta="abcde"),
        said(1.0, "item/agentMessage/delta", turnId="U", itemId="two", delta="fgh"),
        said(2.0, "turn/completed", turn={"id": "U"}),
    ]
    (turn,) = parse_fixture("case", jsonl(lines, ask={"last_user": "hi"})).turns
    assert deltas(list(recut(turn.steps, 2))) == ["ab", "cd", "e", "fg", "h"]


@pytest.mark.parametrize(
    ("speed", "times"),
    [("fast", [0, 0, 0, 0, 0]), ("recorded", [2, 2, 2, 2, 2]), (0.5, [0, 0.5, 1, 1, 1])],
)
def test_the_speed_is_chosen(speed: Speed, times: list[float]) -> None:
    assert [step.at for step in play(fixture_of(["a", "b"]), "thread", "turn", speed=speed)] == times


def test_a_speed_is_a_word_or_milliseconds() -> None:
    assert [parse_speed(text) for text in ("fast", "recorded", "20ms")] == ["fast", "recorded", 0.02]
    with pytest.raises(ValueError, match="is not a speed"):
        parse_speed("20")


@given(st.lists(st.text()), st.integers(1, 12))
def test_recutting_changes_the_cuts_and_nothing_else(pieces: list[str], length: int) -> None:
    steps = fixture_of(pieces).steps
    cut = list(recut(steps, length))
    assert "".join(deltas(cut)) == "".join(pieces)
    assert all(len(delta) == length for delta in deltas(cut)[:-1])
    rest = [step for step in steps if delta_of(step.message) is None]
    assert [step for step in cut if delta_of(step.message) is None] == rest
    assert [step.at for step in cut] == sorted(step.at for step in cut)
