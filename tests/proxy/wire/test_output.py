"""Items open, grow and close one at a time, whatever a turn brings and in whichever API."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.contracts import (
    AnswerMessageEnded,
    AnswerText,
    Reasoning,
    ReasoningItemEnded,
    ToolCallArguments,
    ToolCallEnded,
    ToolCallStarted,
    TurnEvent,
    TurnFailed,
    TurnFinished,
    Usage,
)
from proxy.errors import ApiError, BackendError
from proxy.wire.builder import AnswerBuilder, WireEvent
from proxy.wire.output import OutputBuilder, OutputItem
from proxy.wire.realtime.items import Items
from proxy.wire.realtime.realtime_builder import RealtimeBuilder
from proxy.wire.realtime.versions import BETA, GA
from proxy.wire.responses.request import parse_responses_request
from proxy.wire.responses.responses_builder import ResponsesBuilder
from proxy.wire.tokligence.tokligence_builder import TokligenceBuilder

PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc"}
DONE = TurnFinished(Usage())


class Told(OutputBuilder):
    """Tells nothing, and writes down what it was asked to tell."""

    def __init__(self, prefixes: dict[str, str], gap: str | None = None) -> None:
        super().__init__(lambda prefix: prefix, prefixes, gap=gap)
        self.steps: list[str] = []

    @property
    def items(self) -> list[OutputItem]:
        return self._items

    @property
    def said(self) -> list[tuple[str, list[str], str]]:
        return [(item.type, item.texts, item.status) for item in self._items]

    def _tell(self, step: str) -> list[WireEvent]:
        self.steps.append(step)
        return []

    def _item_opened(self, item: OutputItem) -> list[WireEvent]:
        return self._tell("call" if item.is_call else "item")

    def _part_opened(self, item: OutputItem, part: int) -> list[WireEvent]:
        assert part == len(item.parts) - 1
        return self._tell("part")

    def _text_grew(self, item: OutputItem, part: int, text: str) -> list[WireEvent]:
        assert item.parts[part][-1] == text
        return self._tell("text")

    def _part_closed(self, item: OutputItem, part: int, text: str) -> list[WireEvent]:
        assert item.texts[part] == text
        return self._tell("whole")

    def _arguments_grew(self, call: OutputItem, text: str) -> list[WireEvent]:
        assert call.parts[0][-1] == text
        return self._tell("arguments")

    def _item_closed(self, item: OutputItem) -> list[WireEvent]:
        assert item.status != "in_progress"
        return self._tell("done")

    def _finished(self, usage: Usage, incomplete: str | None) -> list[WireEvent]:
        return self._tell("end")

    def _failed(self, error: ApiError) -> list[WireEvent]:
        return self._tell("end")


GRAMMAR = re.compile(r"(item (part (text )*whole )*done |call (arguments )*done )*end ")

TEXTS = st.text(max_size=3)
CALLS = st.builds(
    lambda name, pieces, ends: [ToolCallStarted("", name), *map(ToolCallArguments, pieces), *ends],
    st.sampled_from(["f", "g"]),
    st.lists(TEXTS, max_size=3),
    st.sampled_from([[ToolCallEnded()], [ToolCallEnded(complete=False)], []]),
)
PIECES: st.SearchStrategy[list[TurnEvent]] = st.one_of(
    TEXTS.map(lambda text: [AnswerText(text)]),
    st.just([AnswerMessageEnded()]),
    st.builds(lambda part, text: [Reasoning(part, text)], st.integers(0, 3), TEXTS),
    st.just([ReasoningItemEnded()]),
    CALLS,
)


def in_a_row(pieces: list[list[TurnEvent]]) -> list[TurnEvent]:
    """The events of all pieces, each call with an id of its own."""
    return [
        ToolCallStarted(f"call_{number}", event.name) if isinstance(event, ToolCallStarted) else event
        for number, piece in enumerate(pieces)
        for event in piece
    ]


TURNS = st.lists(PIECES, max_size=8).map(in_a_row)
ENDS: st.SearchStrategy[TurnEvent] = st.sampled_from(
    [DONE, TurnFinished(Usage(), "max_output_tokens"), TurnFailed(BackendError("Gone."))]
)


def told(*turn: TurnEvent, prefixes: dict[str, str] = PREFIXES, gap: str | None = None) -> Told:
    builder = Told(prefixes, gap)
    for event in turn:
        builder.handle(event)
    return builder


@given(TURNS, ENDS, st.sampled_from([None, "\n\n"]))
def test_one_item_is_open_at_a_time_and_each_is_done(turn: list[TurnEvent], end: TurnEvent, gap: str | None) -> None:
    builder = told(*turn, end, gap=gap)
    assert GRAMMAR.fullmatch("".join(f"{step} " for step in builder.steps))
    assert [item.index for item in builder.items] == list(range(len(builder.items)))
    calls = [item for item in builder.items if item.is_call]
    assert [call.number for call in calls] == list(range(len(calls)))


def test_messages_are_items_of_their_own() -> None:
    builder = told(AnswerText("a"), AnswerText("b"), AnswerMessageEnded(), AnswerText("c"), DONE)
    assert builder.said == [("message", ["ab"], "completed"), ("message", ["c"], "completed")]


def test_messages_with_a_gap_are_one_item() -> None:
    builder = told(AnswerText("a"), AnswerMessageEnded(), AnswerText("b"), AnswerText("c"), DONE, gap="\n\n")
    assert builder.said == [("message", ["a\n\nbc"], "completed")]


def test_a_message_is_whole_when_something_else_begins() -> None:
    builder = told(AnswerText("a"), ToolCallStarted("call_1", "f"), TurnFailed(BackendError("Gone.")))
    assert builder.said == [("message", ["a"], "completed"), ("function_call", [""], "incomplete")]


def test_a_message_that_the_model_had_ended_is_cut_with_the_answer() -> None:
    builder = told(AnswerText("a"), AnswerMessageEnded(), TurnFinished(Usage(), "max_output_tokens"))
    assert builder.said == [("message", ["a"], "incomplete")]


def test_a_part_of_a_summary_that_is_skipped_is_empty() -> None:
    builder = told(Reasoning(0, "a"), Reasoning(2, "b"), ReasoningItemEnded(), ReasoningItemEnded(), DONE)
    assert builder.said == [("reasoning", ["a", "", "b"], "completed"), ("reasoning", [], "completed")]


def test_reasoning_without_a_prefix_does_not_part_a_message() -> None:
    turn = AnswerText("a"), Reasoning(0, "hm"), ReasoningItemEnded(), AnswerText("b"), DONE
    assert told(*turn, prefixes={"message": "msg"}).said == [("message", ["ab"], "completed")]


def test_arguments_without_a_call_are_our_own_mistake() -> None:
    for before in ([], [AnswerText("a")]):
        with pytest.raises(TypeError, match="without ToolCallStarted"):
            told(*before, ToolCallArguments("{}"))


BUILDERS: dict[str, Callable[[], AnswerBuilder]] = {
    "responses": lambda: ResponsesBuilder(parse_responses_request({"model": "m", "input": "hi"})),
    "realtime": lambda: RealtimeBuilder(GA, {}, Items()),
    "realtime beta": lambda: RealtimeBuilder(BETA, {}, None),
    "tokligence": lambda: TokligenceBuilder("m"),
}

# The member of a finished item that its deltas add up to, by the type of the item.
GROWN: dict[str, Callable[[dict[str, Any]], str]] = {
    "message": lambda item: "".join(part["text"] for part in item["content"]),
    "reasoning": lambda item: "".join(part["text"] for part in item["summary"]),
    "function_call": lambda item: str(item["arguments"]),
}


@pytest.mark.parametrize("make", BUILDERS.values(), ids=BUILDERS.keys())
@given(turn=TURNS, end=ENDS)
def test_in_every_api_the_events_of_an_item_add_up_to_it(
    make: Callable[[], AnswerBuilder], turn: list[TurnEvent], end: TurnEvent
) -> None:
    builder = make()
    events: list[dict[str, Any]] = builder.start()
    for turn_event in [*turn, end]:
        events += builder.handle(turn_event)
    opened: dict[str, Any] | None = None
    grown: list[str] = []
    for event in events:
        match event.get("type"):
            case "response.output_item.added":
                assert opened is None, "an item begins within another"
                opened, grown = event["item"], []
            case "response.output_item.done":
                assert opened is not None
                item = event["item"]
                assert (item["id"], item["type"]) == (opened["id"], opened["type"])
                assert GROWN[item["type"]](item) == "".join(grown)
                opened = None
            case str(name) if name.endswith(".delta") and name != "response.tool_call.delta":
                assert opened is not None
                assert event["item_id"] == opened["id"]
                grown.append(event["delta"])
            case _:
                pass
    assert opened is None, "an item is never done"
    numbers = [event["sequence_number"] for event in events if "sequence_number" in event]
    assert numbers == list(range(len(numbers)))


def test_text_of_another_phase_is_another_message() -> None:
    texts = AnswerText("I look.", "commentary"), AnswerText("So:", "final_answer"), AnswerText(" done.", "final_answer")
    builder = told(*texts, DONE)
    assert [(item.text, item.phase) for item in builder.items] == [
        ("I look.", "commentary"), ("So: done.", "final_answer"),
    ]  # fmt: skip
    assert [item.text for item in told(*texts, DONE, gap="\n\n").items] == ["I look.So: done."]


def test_a_phase_that_is_known_in_the_end_is_that_of_the_whole_message() -> None:
    builder = told(AnswerText("a"), AnswerMessageEnded("commentary"), AnswerText("b", "final_answer"), DONE)
    assert [(item.text, item.phase) for item in builder.items] == [("a", "commentary"), ("b", "final_answer")]
