from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.backends.codex.item_kinds import HARMLESS
from proxy.backends.codex.reduction import MOST_PARTS, AttemptFailed, TurnReduction
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
from proxy.rpc import RpcObject
from tests.support.backend_events import merged

USAGE = Usage(input_tokens=100, cached_tokens=40, output_tokens=20, reasoning_tokens=5)
RECORDED = Path(__file__).parent / "recorded"

# What each recording of the real program tells, turn by turn; a failure by its code.
TOLD: Mapping[str, list[list[BackendEvent | str]]] = {
    "0.89.0_reasoning": [
        [
            ReasoningPiece(0, "**Thinking** about it"),
            ReasoningEnded(),
            TextPiece("Answer."),
            MessageEnded(),
            TurnEnded(USAGE),
        ]
    ],
    "0.89.0_builtin_tool_view_image_min": [[TextPiece("Let me look."), MessageEnded(), "backend_not_text_only"]],
    "0.89.0_two_threads_interleaved": [
        [TextPiece("alpha " * 6), MessageEnded(), TurnEnded(USAGE)],
        [TextPiece("beta " * 6), MessageEnded(), TurnEnded(USAGE)],
    ],
    "0.169.0_reasoning": [
        [
            ReasoningPiece(0, "**Thinking** about it"),
            ReasoningEnded(),
            TextPiece("Answer."),
            MessageEnded(),
            TurnEnded(USAGE),
        ]
    ],
    "0.169.0_several_messages": [
        [
            MessagePhase("commentary"),
            TextPiece("First part, a comment."),
            MessageEnded(),
            ReasoningPiece(0, "mid"),
            ReasoningEnded(),
            MessagePhase("final_answer"),
            TextPiece("Second part, the answer."),
            MessageEnded(),
            TurnEnded(USAGE),
        ]
    ],
    "0.169.0_message_without_deltas": [[TextPiece("All at once."), MessageEnded(), TurnEnded(USAGE)]],
    "0.169.0_response_incomplete_max_tokens": [
        [TextPiece("cut off te"), MessageEnded(), TurnEnded(USAGE, "max_output_tokens")]
    ],
    "0.169.0_stream_drop_one_retry_then_ok": [[TextPiece("partial an"), "backend_error"]],
    "0.169.0_interrupt_midstream": [
        [TextPiece("word " * 5), "backend_error"],
        [TextPiece("After."), MessageEnded(), TurnEnded(USAGE)],
    ],
    "0.169.0_builtin_tool_exec_command_decline": [
        [TextPiece("Let me look."), MessageEnded(), "backend_not_text_only"],
    ],
}


def notifications(name: str) -> Iterator[tuple[str, RpcObject]]:
    for line in (RECORDED / f"{name}.jsonl").read_bytes().splitlines():
        row = orjson.loads(line)
        if row["dir"] == "server" and "method" in row["msg"] and "id" not in row["msg"]:
            yield row["msg"]["method"], row["msg"].get("params") or {}


@pytest.mark.parametrize("name", TOLD)
def test_a_recorded_turn_is_told(name: str) -> None:
    turns: dict[tuple[str, str], tuple[TurnReduction, list[BackendEvent | AttemptFailed]]] = {}
    for method, params in notifications(name):
        turn_id = params.get("turnId") or params.get("turn", {}).get("id")
        if turn_id is not None and not method.startswith("codex/event/"):
            key = (params["threadId"], turn_id)
            reduction, told = turns.setdefault(key, (TurnReduction(), []))
            told += reduction.receive(method, params)
    assert [readable(told) for _, told in turns.values()] == TOLD[name]


def test_every_recording_is_read() -> None:
    assert {path.stem for path in RECORDED.glob("*.jsonl")} == set(TOLD)


def readable(told: list[BackendEvent | AttemptFailed]) -> list[BackendEvent | str | None]:
    events = [event for event in told if not isinstance(event, AttemptFailed)]
    failures = [event.error.code for event in told if isinstance(event, AttemptFailed)]
    return [*merged(events), *failures]


def item(method: str, kind: str, id: str = "i1", **fields: object) -> tuple[str, RpcObject]:
    return f"item/{method}", {"turnId": "0", "item": {"type": kind, "id": id, **fields}}


def delta(text: str, id: str = "i1") -> tuple[str, RpcObject]:
    return "item/agentMessage/delta", {"turnId": "0", "itemId": id, "delta": text}


def error(*, will_retry: bool, message: str = "lost") -> tuple[str, RpcObject]:
    return "error", {"turnId": "0", "willRetry": will_retry, "error": {"message": message, "codexErrorInfo": "other"}}


def completed(status: str = "completed", **turn: object) -> tuple[str, RpcObject]:
    return "turn/completed", {"turn": {"id": "0", "status": status, **turn}}


def told(*lines: tuple[str, RpcObject]) -> list[BackendEvent | AttemptFailed]:
    reduction = TurnReduction()
    return [event for line in lines for event in reduction.receive(*line)]


def test_the_completed_text_completes_the_deltas() -> None:
    events = told(item("started", "agentMessage"), delta("Hel"), item("completed", "agentMessage", text="Hello"))
    assert events == [TextPiece("Hel"), TextPiece("lo"), MessageEnded()]


def test_a_completed_text_that_contradicts_the_deltas_changes_nothing() -> None:
    events = told(item("started", "agentMessage"), delta("Hel"), item("completed", "agentMessage", text="Hi"))
    assert events == [TextPiece("Hel"), MessageEnded()]


def test_the_text_of_an_item_may_be_in_its_first_line_only() -> None:
    events = told(item("started", "agentMessage", text="Hello"), item("completed", "agentMessage"))
    assert events == [TextPiece("Hello"), MessageEnded()]


def test_a_phase_is_told_with_the_first_text_of_its_message() -> None:
    begun = item("started", "agentMessage", phase="commentary")
    assert told(begun, error(will_retry=True), begun, delta("I "), delta("look.")) == [
        MessagePhase("commentary"),
        TextPiece("I "),
        TextPiece("look."),
    ]


def test_a_phase_may_be_told_when_the_message_is_whole() -> None:
    whole = item("completed", "agentMessage", text="Done.", phase="final_answer")
    expected = [TextPiece("Done."), MessagePhase("final_answer"), MessageEnded()]
    assert told(item("started", "agentMessage", phase=None), delta("Done."), whole) == expected


@pytest.mark.parametrize("phase", [None, "", "analysis", 1, ["commentary"], {}])
def test_what_is_no_phase_is_not_told(phase: object) -> None:
    begun, whole = (item(method, "agentMessage", phase=phase, text="Hi") for method in ("started", "completed"))
    assert told(begun, whole) == [TextPiece("Hi"), MessageEnded()]


def test_summary_parts_that_had_no_deltas_are_told_at_the_end() -> None:
    events = told(item("started", "reasoning"), item("completed", "reasoning", summary=["one", "two"], content=["raw"]))
    assert events == [ReasoningPiece(0, "one"), ReasoningPiece(1, "two"), ReasoningEnded()]


@pytest.mark.parametrize("number", [-1, MOST_PARTS, 10**9, 1e300])
def test_a_part_of_a_summary_that_cannot_be_is_not_told(number: float) -> None:
    """A client is told of every part before it, too."""
    reduction = TurnReduction()
    method, params = summary("so")
    with pytest.raises(ValueError, match="no part of a summary"):
        reduction.receive(method, {**params, "summaryIndex": number})
    assert reduction.receive(method, params) == [ReasoningPiece(0, "so")]


def test_what_is_no_text_is_no_text_of_the_answer() -> None:
    reduction = TurnReduction()
    (_, begun), (_, number), (_, whole) = delta("Hi"), delta("7"), item("completed", "agentMessage")
    assert reduction.receive("item/agentMessage/delta", begun) == [TextPiece("Hi")]
    for method, line in (
        ("item/agentMessage/delta", {**number, "delta": None}),
        ("item/completed", {**whole, "item": {**whole["item"], "text": {"a": 1}}}),
    ):
        with pytest.raises(TypeError, match="should be text"):
            reduction.receive(method, line)
    assert reduction.receive(*completed()) == [MessageEnded(), TurnEnded(None)]


def test_a_thread_that_counts_less_than_before_has_cost_nothing_that_is_known() -> None:
    names = ("inputTokens", "cachedInputTokens", "outputTokens", "reasoningOutputTokens")
    reduction = TurnReduction(USAGE)
    reduction.receive("thread/tokenUsage/updated", {"turnId": "0", "tokenUsage": {"total": dict.fromkeys(names, 50)}})
    assert reduction.receive(*completed()) == [TurnEnded(Usage(0, 10, 30, 45))]


@pytest.mark.parametrize("summary", [7, {"a": 1}, [["Hm."], {"text": "Hm."}, None]])
def test_a_summary_that_is_no_text_ends_its_reasoning_all_the_same(summary: object) -> None:
    item = {"type": "reasoning", "id": "r", "summary": summary}
    events = told(("item/completed", {"turnId": "0", "item": item}), completed())
    assert events == [ReasoningEnded(), TurnEnded(None)]


@pytest.mark.parametrize("count", [2**64 - 1, 1e300, -5])
def test_tokens_that_cannot_be_counted_are_told_as_a_number_of_json(count: float) -> None:
    names = ("inputTokens", "cachedInputTokens", "outputTokens", "reasoningOutputTokens")
    counted = {"turnId": "0", "tokenUsage": {"total": dict.fromkeys(names, count)}}
    [end] = told(("thread/tokenUsage/updated", counted), completed())
    most = 2**53 - 1 if count > 0 else 0
    assert end == TurnEnded(Usage(most, most, most, most))


def test_harmless_and_allowed_items_are_passed_over() -> None:
    reduction = TurnReduction(allowed=HARMLESS | {"aside"})
    lines = [item(state, kind) for kind in (*sorted(HARMLESS), "aside") for state in ("started", "completed")]
    assert [event for line in lines for event in reduction.receive(*line)] == []
    assert reduction.passed_over == {*HARMLESS, "aside"}
    (failure,) = reduction.receive(*item("started", "another"))
    assert isinstance(failure, AttemptFailed)
    assert "(another)" in failure.error.message
    assert "--allow-item another" in failure.error.message


def test_a_retry_before_anything_was_told_is_silent() -> None:
    events = told(
        item("started", "agentMessage", text=""),
        error(will_retry=True),
        item("started", "agentMessage", id="i2", text=""),
        delta("whole", id="i2"),
        item("completed", "agentMessage", id="i2", text="whole"),
        completed(),
    )
    assert events == [TextPiece("whole"), MessageEnded(), TurnEnded(None)]


def summary(text: str) -> tuple[str, RpcObject]:
    return "item/reasoning/summaryTextDelta", {"turnId": "0", "itemId": "r", "summaryIndex": 0, "delta": text}


def test_reasoning_that_begins_again_after_it_was_told_fails() -> None:
    begun = item("started", "reasoning", id="r")
    *before, failure = told(begun, summary("so"), begun, summary("so"))
    assert before == [ReasoningPiece(0, "so")]
    assert isinstance(failure, AttemptFailed)


@pytest.mark.parametrize("again", [error(will_retry=True), item("started", "agentMessage")])
def test_an_answer_that_begins_again_after_it_was_told_fails(again: tuple[str, RpcObject]) -> None:
    *before, failure = told(item("started", "agentMessage"), delta("w0 w1"), again, delta("w0 w1"))
    assert before == [TextPiece("w0 w1")]
    assert isinstance(failure, AttemptFailed)


def test_a_second_message_in_the_middle_of_a_first_is_the_answer_begun_again() -> None:
    *before, failure = told(item("started", "agentMessage"), delta("w0"), item("started", "agentMessage", id="i2"))
    assert before == [TextPiece("w0")]
    assert isinstance(failure, AttemptFailed)


WHOLE_MESSAGE = (item("started", "agentMessage"), delta("hi"), item("completed", "agentMessage", text="hi"))
WHOLE_REASONING = (item("started", "reasoning", id="r"), item("completed", "reasoning", id="r", summary=["so"]))


def test_a_line_that_comes_twice_tells_nothing_the_second_time() -> None:
    lines = (*WHOLE_REASONING, *WHOLE_MESSAGE, completed())
    doubled = [line for line in lines for _ in range(1 if "delta" in line[1] else 2)]
    assert told(*doubled) == told(*lines)


@pytest.mark.parametrize(
    "again", [delta("hi"), item("completed", "agentMessage", text="ho"), error(will_retry=True)], ids=str
)
def test_a_message_that_is_written_again_after_its_end_fails(again: tuple[str, RpcObject]) -> None:
    *before, failure = told(*WHOLE_MESSAGE, item("started", "agentMessage"), again)
    assert before == [TextPiece("hi"), MessageEnded()]
    assert isinstance(failure, AttemptFailed)


def test_reasoning_that_is_written_again_after_its_end_fails() -> None:
    assert isinstance(told(*WHOLE_REASONING, summary("so"))[-1], AttemptFailed)


def test_a_failed_turn_is_over_and_not_completed_until_codex_says_so() -> None:
    reduction = TurnReduction()
    reduction.receive(*item("started", "commandExecution"))
    assert (reduction.over, reduction.completed) == (True, False)
    reduction.receive("turn/completed", {"turn": {"id": "another", "status": "completed"}})
    assert not reduction.completed
    assert reduction.receive(*completed()) == []
    assert reduction.completed


@pytest.mark.parametrize("method", ["started", "completed"])
@pytest.mark.parametrize("kind", ["commandExecution", "mcpToolCall", "webSearch", "imageView", "somethingNew"])
def test_an_item_of_another_kind_stops_the_turn(method: str, kind: str) -> None:
    [failure] = told(item(method, kind), item("started", "agentMessage"), delta("done!"))
    assert isinstance(failure, AttemptFailed)
    assert failure.error.code == "backend_not_text_only"
    assert kind in failure.error.message


def failed(status: int | None, kind: str = "responseTooManyFailedAttempts") -> tuple[str, RpcObject]:
    return completed("failed", error={"message": "no", "codexErrorInfo": {kind: {"httpStatusCode": status}}})


@pytest.mark.parametrize(
    ("lines", "unanswered"),
    [
        ([failed(503)], True),
        ([failed(429)], True),
        ([failed(None)], True),
        ([error(will_retry=True), failed(503)], True),
        ([item("started", "userMessage"), item("completed", "userMessage"), failed(503)], True),
        ([failed(400)], False),
        ([completed("failed", error={"message": "no", "codexErrorInfo": "contextWindowExceeded"})], False),
        ([delta("So"), failed(503)], False),
        ([item("started", "agentMessage"), failed(503)], False),
        ([item("started", "reasoning"), failed(503)], False),
        ([item("completed", "reasoning"), failed(503)], False),
        ([item("started", "commandExecution"), failed(503)], False),
        ([item("started", "contextCompaction"), failed(503)], False),
        ([completed("interrupted")], False),
        ([completed()], False),
        ([error(will_retry=False)], False),
    ],
)
def test_what_failed_before_a_word_can_be_asked_for_once_more(
    lines: list[tuple[str, RpcObject]], unanswered: bool
) -> None:
    reduction = TurnReduction()
    for line in lines:
        reduction.receive(*line)
    assert reduction.unanswered is unanswered


def test_the_error_line_stands_in_for_a_failure_without_one() -> None:
    [failure] = told(error(will_retry=False, message="why"), completed("failed", error=None))
    assert isinstance(failure, AttemptFailed)
    assert failure.error.message == "why"


@pytest.mark.parametrize(
    "turn",
    [{}, {"status": None}, {"status": "failed", "error": "boom"}, {"status": "failed", "error": ["boom"]}],
)
def test_an_end_in_words_that_nobody_knows_is_one(turn: RpcObject) -> None:
    [failure] = told(("turn/completed", {"turn": {"id": "0", **turn}}))
    assert isinstance(failure, AttemptFailed)
    assert failure.error.message


def test_a_message_left_open_is_ended_with_the_turn() -> None:
    assert told(delta("text"), completed())[1:] == [MessageEnded(), TurnEnded(None)]


def test_lines_of_another_turn_of_the_thread_are_not_ours() -> None:
    reduction = TurnReduction()
    reduction.turn_id = "1"
    assert reduction.receive(*completed()) == []
    assert not reduction.over


def test_nothing_is_told_after_the_end() -> None:
    assert told(completed(), delta("late"), completed()) == [TurnEnded(None)]


@given(st.text(), st.lists(st.integers(0, 40)), st.booleans(), st.booleans())
def test_the_text_is_whole_however_it_comes(text: str, cuts: list[int], in_first: bool, in_last: bool) -> None:
    """By deltas up to any point, in the first line, in the last: one of them is enough."""
    places = sorted({min(cut, len(text)) for cut in cuts})
    whole = in_first or in_last
    pieces = [text[a:b] for a, b in zip([0, *places], places, strict=False)] if whole else [text]
    if not in_last:
        pieces = pieces if "".join(pieces) in ("", text) else [text]
    events = told(
        item("started", "agentMessage", text=text if in_first else ""),
        *map(delta, pieces),
        item("completed", "agentMessage", **({"text": text} if in_last else {})),
        completed(),
    )
    expected = ([TextPiece(text)] if text else []) + [MessageEnded(), TurnEnded(None)]
    assert merged([event for event in events if not isinstance(event, AttemptFailed)]) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda it: (
        st.lists(it, max_size=3)
        | st.dictionaries(
            st.sampled_from(["item", "id", "type", "turn", "turnId", "itemId", "delta", "text", "status", "error"]),
            it,
            max_size=4,
        )
    ),
)
METHODS = st.sampled_from(
    [
        "item/started",
        "item/completed",
        "item/agentMessage/delta",
        "item/reasoning/summaryTextDelta",
        "thread/tokenUsage/updated",
        "error",
        "turn/started",
        "turn/completed",
        "unheard/of",
    ]
)


@given(
    st.lists(
        st.tuples(
            METHODS,
            st.dictionaries(
                st.sampled_from(
                    ["item", "turn", "turnId", "itemId", "delta", "error", "willRetry", "summaryIndex", "tokenUsage"]
                ),
                JSON,
            ),
        )
    )
)
def test_a_line_of_an_unpromised_shape_raises_nothing_unforeseen(lines: list[tuple[str, dict[str, Any]]]) -> None:
    reduction = TurnReduction()
    for method, params in lines:
        with suppress(LookupError, TypeError, AttributeError, ValueError):
            reduction.receive(method, params)
