"""Every kind of answer against what others published: the grammar, the official client's types, Open Responses."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import orjson
import pytest

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
from proxy.errors import BackendError
from proxy.wire.json_body import parse_json_object
from proxy.wire.responses.request import parse_responses_request
from proxy.wire.responses.responses_builder import ResponsesBuilder
from tests.support.published_types import check_published_events, check_published_response
from tests.support.responses_grammar import check_events

END = TurnFinished(Usage(100, 40, 20, 5))
FUNCTIONS: list[dict[str, Any]] = [
    {"type": "function", "name": "read_note", "parameters": {"type": "object"}, "strict": True},
    {"type": "function", "name": "list_notes"},
]
CUSTOM = {"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "regex", "definition": ".+"}}
NAMESPACE = {"type": "namespace", "name": "notes", "description": "", "tools": [{"type": "function", "name": "find"}]}
GONE = BackendError("The backend went away.", code="backend_gone")


def call(name: str, *pieces: str, call_id: str = "call_1", complete: bool = True) -> list[TurnEvent]:
    return [ToolCallStarted(call_id, name), *map(ToolCallArguments, pieces), ToolCallEnded(complete)]


CASES: dict[str, tuple[list[TurnEvent], dict[str, Any]]] = {
    "text": ([AnswerText("Hel"), AnswerText("lo"), END], {}),
    "two messages": ([AnswerText("a"), AnswerMessageEnded(), AnswerText("b"), END], {}),
    "nothing": ([END], {}),
    "one call": ([*call("read_note", '{"path"', ':"a.md"}'), END], {"tools": FUNCTIONS}),
    "a call without arguments": ([*call("list_notes", "{}"), END], {"tools": FUNCTIONS, "tool_choice": "required"}),
    "text and parallel calls": (
        [AnswerText("I look."), *call("read_note", "{}"), *call("list_notes", "{}", call_id="call_2"), END],
        {"tools": FUNCTIONS},
    ),
    "text on both sides of a call": ([AnswerText("a"), *call("list_notes", "{}"), AnswerText("b"), END], {}),
    "a forced call": (
        [*call("read_note", "{}"), END],
        {"tools": FUNCTIONS, "tool_choice": {"type": "function", "name": "read_note"}},
    ),
    "a call of an allowed tool": (
        [*call("read_note", "{}"), END],
        {
            "tools": FUNCTIONS,
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "read_note"}],
            },
        },
    ),
    "a custom call": ([*call("patch", '{"in', 'put":"+a\\n"}'), END], {"tools": [CUSTOM]}),
    "a custom call without input": ([*call("patch", "{}"), END], {"tools": [CUSTOM]}),
    "calls of all kinds": (
        [*call("patch", '{"input":"x"}'), *call("notes__find", "{}", call_id="call_2"), END],
        {"tools": [CUSTOM, NAMESPACE, *FUNCTIONS, {"type": "web_search"}]},
    ),
    "reasoning and a call": (
        [Reasoning(0, "One"), Reasoning(1, "Two"), ReasoningItemEnded(), *call("list_notes", "{}"), END],
        {"tools": FUNCTIONS, "reasoning": {"effort": "low", "summary": "auto"}},
    ),
    "reasoning without a summary": (
        [ReasoningItemEnded(), AnswerText("x"), END],
        {"include": ["reasoning.encrypted_content"]},
    ),
    "a cut text": ([AnswerText("Hel"), TurnFinished(Usage(1, 0, 1), "max_output_tokens")], {"max_output_tokens": 16}),
    "a cut after a call": ([*call("list_notes", "{}"), TurnFinished(Usage(1, 0, 1), "content_filter")], {}),
    "a failure at once": ([TurnFailed(GONE)], {}),
    "a failure in a text": ([AnswerText("Hel"), TurnFailed(GONE)], {}),
    "a failure in reasoning": ([Reasoning(0, "Hm"), TurnFailed(GONE)], {}),
    "a call that broke off": (
        [*call("read_note", '{"pa', complete=False), TurnFailed(GONE)],
        {"tools": FUNCTIONS},
    ),
    "a custom call that broke off": ([*call("patch", '{"in', complete=False), TurnFailed(GONE)], {"tools": [CUSTOM]}),
    "a backend that vanished within a call": ([*call("read_note", '{"pa')[:-1], TurnFailed(GONE)], {}),
    "everything echoed": (
        [AnswerText("{}"), END],
        {
            "instructions": "Be kind.", "metadata": {"a": "b"}, "max_output_tokens": 100, "max_tool_calls": 3,
            "parallel_tool_calls": False, "prompt_cache_key": "k", "prompt_cache_retention": "24h",
            "reasoning": {"effort": "xhigh", "summary": "detailed", "context": "auto", "mode": "pro"},
            "safety_identifier": "s", "service_tier": "flex", "store": False, "temperature": 0, "top_p": 0,
            "text": {"format": {"type": "json_object"}, "verbosity": "low"}, "top_logprobs": 20, "truncation": "auto",
            "user": "u", "include": ["message.output_text.logprobs"], "tool_choice": "none",
        },
    ),
    "an answer with a schema": (
        [AnswerText("{}"), END],
        {"text": {"format": {"type": "json_schema", "name": "note", "schema": {"type": "object"}}}},
    ),
}  # fmt: skip


def counting() -> Callable[[str], str]:
    numbers = itertools.count()
    return lambda prefix: f"{prefix}_{next(numbers)}"


def build(turn: Sequence[TurnEvent], members: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The events of a turn and the plain body, as a client reads them."""
    body = orjson.dumps({"model": "gpt-5.5", "input": "hi", **members})
    builder = ResponsesBuilder(
        parse_responses_request(parse_json_object(body)), mint=counting(), clock=lambda: 1_700_000_000.5
    )
    events = builder.start()
    for event in turn:
        events += builder.handle(event)
    return orjson.loads(orjson.dumps(events)), orjson.loads(orjson.dumps(builder.body))


@pytest.mark.parametrize(("turn", "members"), CASES.values(), ids=CASES.keys())
def test_every_kind_of_answer_is_what_was_published(turn: list[TurnEvent], members: dict[str, Any]) -> None:
    events, body = build(turn, members)
    assert check_events(events) == body, "the events add up to the plain answer"
    check_published_events(events)
    check_published_response(body)


@pytest.mark.parametrize(
    "case", ["text", "one call", "text and parallel calls", "a custom call", "reasoning and a call", "a cut text"]
)
def test_the_grammar_misses_every_event_that_is_lost_doubled_or_out_of_place(case: str) -> None:
    events, _ = build(*CASES[case])
    for index in range(len(events)):
        for broken in (
            [*events[:index], *events[index + 1 :]],
            [*events[:index], events[index], *events[index:]],
            [*events[:index], *events[index : index + 2][::-1], *events[index + 2 :]] if events[index + 1 :] else [],
        ):
            numbered = [{**event, "sequence_number": number} for number, event in enumerate(broken)]
            with pytest.raises((AssertionError, IndexError, KeyError)):
                check_events(numbered)
