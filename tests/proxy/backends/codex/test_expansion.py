"""What is written down of a backend's turn is read back as what the backend said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.backends.codex.expansion import TurnExpansion
from proxy.backends.codex.reduction import AttemptFailed, TurnReduction
from proxy.contracts import (
    BackendEvent,
    MessageEnded,
    MessagePhase,
    ReasoningEnded,
    ReasoningPiece,
    TextPiece,
    TurnEnded,
    Usage,
)
from proxy.errors import BackendError
from proxy.rpc import RpcObject
from tests.support.backend_events import merged, prompt

COUNT = st.integers(0, 10**9)
WITHIN = st.one_of(
    st.builds(TextPiece, st.text(max_size=5)),
    st.builds(ReasoningPiece, st.integers(0, 3), st.text(max_size=5)),
    st.just(MessageEnded()),
    st.just(ReasoningEnded()),
)
ENDS = st.builds(
    TurnEnded,
    st.none() | st.builds(Usage, COUNT, COUNT, COUNT, COUNT),
    st.sampled_from([None, "max_output_tokens", "content_filter"]),
)
ERRORS = st.builds(
    BackendError,
    st.text(min_size=1),
    status=st.sampled_from([400, 429, 500, 502, 503, 504]),
    type=st.sampled_from(["server_error", "invalid_request_error"]),
    code=st.none() | st.text(),
    param=st.none() | st.text(),
    retry_after=st.none() | st.floats(0, 1000),
    retryable=st.booleans(),
)


def read_back(lines: Iterable[RpcObject]) -> list[BackendEvent | AttemptFailed]:
    reduction = TurnReduction()
    told = [event for line in lines for event in reduction.receive(line["method"], line["params"])]
    assert reduction.completed
    return told


def written(events: Iterable[BackendEvent]) -> tuple[TurnExpansion, list[RpcObject]]:
    turn = TurnExpansion("thread-1", "turn-1")
    return turn, [turn.begin(), *(line for event in events for line in turn.tell(event))]


def sayable(events: Sequence[BackendEvent]) -> list[BackendEvent]:
    """What lines can say of `events`: no empty pieces, and nothing is left open at the turn's end."""
    said = [event for event in events if not (isinstance(event, TextPiece | ReasoningPiece) and not event.text)]
    message = reasoning = False
    for event in said:
        message = isinstance(event, TextPiece) or (message and not isinstance(event, MessageEnded))
        reasoning = isinstance(event, ReasoningPiece) or (reasoning and not isinstance(event, ReasoningEnded))
    ends: list[BackendEvent] = [*[ReasoningEnded()] * reasoning, *[MessageEnded()] * message]
    return said[:-1] + ends + said[-1:] if said and isinstance(said[-1], TurnEnded) else said


@given(st.lists(WITHIN), ENDS)
def test_a_whole_turn_is_read_back_as_it_was(events: list[BackendEvent], end: TurnEnded) -> None:
    _, lines = written([*events, end])
    told = read_back(lines)
    assert not [event for event in told if isinstance(event, AttemptFailed)]
    assert merged(e for e in told if not isinstance(e, AttemptFailed)) == merged(sayable([*events, end]))


@given(st.lists(WITHIN), ERRORS)
def test_an_error_is_read_back_with_every_field_behind_what_came_before_it(
    events: list[BackendEvent], error: BackendError
) -> None:
    turn, lines = written(events)
    *told, failed = read_back([*lines, *turn.fail(error)])
    assert isinstance(failed, AttemptFailed)
    assert vars(failed.error) == vars(error)
    assert merged(e for e in told if not isinstance(e, AttemptFailed)) == merged(sayable(events))


@given(st.lists(WITHIN))
def test_what_was_left_early_is_read_back_up_to_there(events: list[BackendEvent]) -> None:
    turn, lines = written(events)
    *told, failed = read_back([*lines, turn.interrupt()])
    assert isinstance(failed, AttemptFailed)
    assert merged(e for e in told if not isinstance(e, AttemptFailed)) == merged(sayable(events))


@pytest.mark.parametrize("sentence", ["try again in 2s", "Incomplete response returned, reason: x", "Rate limit"])
def test_the_words_of_an_error_do_not_change_what_it_is(sentence: str) -> None:
    turn, lines = written([])
    (failed,) = read_back([*lines, *turn.fail(BackendError(sentence, code="mine"))])
    assert isinstance(failed, AttemptFailed)
    assert (failed.error.message, failed.error.code, failed.error.retry_after) == (sentence, "mine", None)


def test_the_client_asks_and_leaves_by_the_turns_own_names() -> None:
    turn = TurnExpansion("thread-1", "turn-1")
    asked = turn.ask(prompt("hi"))
    assert (asked["method"], asked["params"]["threadId"]) == ("turn/start", "thread-1")
    assert asked["params"]["input"] == [{"type": "text", "text": "hi"}]
    assert turn.leave() == {"method": "turn/interrupt", "params": {"threadId": "thread-1", "turnId": "turn-1"}}


@pytest.mark.parametrize("late", [False, True])
def test_the_phase_of_a_message_is_read_back(late: bool) -> None:
    events: list[BackendEvent] = [MessagePhase("commentary"), TextPiece("I look."), MessageEnded(), TextPiece("Done.")]
    if late:
        events[:2] = reversed(events[:2])
    _, lines = written([*events, MessageEnded(), TurnEnded(None)])
    assert read_back(lines) == [*events, MessageEnded(), TurnEnded(None)]
