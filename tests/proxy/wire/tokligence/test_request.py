"""Requests in the dialect, as requests of the Responses API."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.errors import RequestError
from proxy.wire.reader import Reader
from proxy.wire.responses.request import parse_responses_request
from proxy.wire.tokligence.request import call_ids, responses_body, submitted

MESSAGES: list[Any] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "hi"}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "beans"},
]


def test_messages_say_what_items_would() -> None:
    items: list[Any] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "beans"},
    ]
    asked = parse_responses_request(responses_body({"model": "m", "messages": MESSAGES}))
    assert asked.turn.transcript == parse_responses_request({"model": "m", "input": items}).turn.transcript


TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
FORM = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}


@pytest.mark.parametrize(
    ("members", "meant"),
    [
        ({"tool_choice": True}, {"tool_choice": "auto"}),
        ({"tool_choice": False}, {"tool_choice": "none"}),
        (
            {"tool_choice": {"type": "function", "function": {"name": "f"}}},
            {"tool_choice": {"type": "function", "name": "f"}},
        ),
        ({"max_tokens": 50}, {"max_output_tokens": 50}),
        ({"max_completion_tokens": 1, "max_tokens": 50}, {"max_output_tokens": 16}),
        ({"reasoning_effort": "low"}, {"reasoning": {"effort": "low"}}),
        ({"response_format": {"type": "json_object"}}, {"text": {"format": {"type": "json_object"}}}),
        (
            {"response_format": FORM},
            {"text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}}},
        ),
        ({"store": False, "previous_response_id": "x", "thinking": {}, "id": "y"}, {}),
    ],
)
def test_other_names_mean_the_same(members: dict[str, Any], meant: dict[str, Any]) -> None:
    body: dict[str, Any] = {"model": "m", "input": "hi", "tools": [TOOL]}
    made = responses_body({**body, **members})
    assert made == {**body, **meant}
    parse_responses_request(made)


def test_outputs_may_stand_beside_the_input() -> None:
    body = responses_body({"model": "m", "input": [], "tool_outputs": [{"tool_call_id": "call_1", "output": "x"}]})
    assert call_ids(body["input"], "function_call_output") == {"call_1"}
    assert call_ids("text", "function_call") == set()


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "tool_outputs"),
        ({"tool_outputs": []}, "tool_outputs"),
        ({"tool_outputs": [{"output": "x"}]}, "tool_outputs[0].tool_call_id"),
        ({"tool_outputs": [{"tool_call_id": "call_1"}]}, "tool_outputs[0].output"),
        ({"tool_outputs": [{"tool_call_id": "call_1", "output": 3}]}, "tool_outputs[0].output"),
    ],
)
def test_what_are_no_outputs_is_refused(body: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        submitted(Reader(body))
    assert caught.value.param == param


def test_outputs_are_items_by_their_call() -> None:
    parts: Any = [{"type": "input_text", "text": "x"}]
    outputs: list[Any] = [
        {"tool_call_id": "call_1", "output": "x"},
        {"tool_call_id": "call_2", "output": parts},
        {"tool_call_id": "call_3", "output": None},
    ]
    assert submitted(Reader({"tool_outputs": outputs})) == {
        "call_1": {"type": "function_call_output", "call_id": "call_1", "output": "x"},
        "call_2": {"type": "function_call_output", "call_id": "call_2", "output": parts},
        "call_3": {"type": "function_call_output", "call_id": "call_3", "output": ""},
    }


def test_outputs_stand_behind_the_input_whatever_that_is() -> None:
    output: Any = {"tool_call_id": "call_1", "output": "x"}
    item: Any = {"type": "function_call_output", "call_id": "call_1", "output": "x"}
    user: Any = {"role": "user", "content": "hi"}
    assert responses_body({"model": "m", "tool_outputs": [output]})["input"] == [item]
    assert responses_body({"model": "m", "input": [user], "tool_outputs": [output]})["input"] == [user, item]
    assert responses_body({"model": "m", "input": [user], "tool_outputs": []})["input"] == [user]
    assert responses_body({"model": "m", "tool_outputs": []})["input"] == []


def test_calls_in_messages_are_refused_by_their_path() -> None:
    message: Any = {"role": "assistant", "tool_calls": [{"id": "call_1", "function": {"arguments": '{"a": 1}'}}]}
    with pytest.raises(RequestError) as caught:
        responses_body({"model": "m", "messages": [message]})
    assert caught.value.param == "messages[0].tool_calls[0].function.name"
    message["tool_calls"] = [{"id": "call_1", "function": {"name": "f", "arguments": '{"a": 1}'}}]
    made: Any = responses_body({"model": "m", "messages": [message]})["input"]
    assert made[-1] == {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": '{"a": 1}'}
