"""The grammar of a Response, held against the official client's own types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseError, ResponseErrorEvent

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
from proxy.wire.json_body import JsonObject, parse_json_object
from proxy.wire.responses.request import parse_responses_request
from proxy.wire.responses.responses_builder import ACTED_ON, RESPONSE_ERROR_CODES, ResponsesBuilder
from tests.support.published_types import check_published_events, check_published_response, literals
from tests.support.responses_grammar import check_events

USAGE = Usage(328, 40, 52, 5)
REQUEST = {
    "model": "gpt-5.1",
    "input": "hi",
    "tools": [
        {"type": "function", "name": "read_note", "parameters": {"type": "object"}},
        {
            "type": "namespace",
            "name": "mcp__notes",
            "description": "d",
            "tools": [{"type": "function", "name": "find"}, {"type": "custom", "name": "write"}],
        },
        {"type": "custom", "name": "patch"},
    ],
}


def build(turn: Sequence[TurnEvent], **members: object) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The events of a turn as a client reads them, and the final Response."""
    builder = ResponsesBuilder(
        parse_responses_request(parse_json_object(orjson.dumps({**REQUEST, **members}))), clock=lambda: 1000.0
    )
    events = builder.start()
    for event in turn:
        events += builder.handle(event)
    return orjson.loads(orjson.dumps(events)), orjson.loads(orjson.dumps(builder.response))


def types(events: Sequence[dict[str, Any]]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


def call(name: str = "read_note", arguments: str = '{"path":"a.md"}', call_id: str = "call_1") -> list[TurnEvent]:
    return [ToolCallStarted(call_id, name), ToolCallArguments(arguments), ToolCallEnded()]


def test_a_text_answer_has_the_whole_grammar() -> None:
    events, response = build([AnswerText("Hel"), AnswerText("lo"), TurnFinished(USAGE)])
    assert types(events) == [
        "created", "in_progress", "output_item.added", "content_part.added", "output_text.delta", "output_text.delta",
        "output_text.done", "content_part.done", "output_item.done", "completed",
    ]  # fmt: skip
    assert events[-1]["response"] == response
    assert response["output"] == [events[-2]["item"]]
    assert response["output"][0]["content"] == [
        {"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}
    ]


def test_a_call_has_the_whole_grammar() -> None:
    events, response = build([*call(), TurnFinished(USAGE)])
    assert types(events) == [
        "created", "in_progress", "output_item.added", "function_call_arguments.delta", "function_call_arguments.done",
        "output_item.done", "completed",
    ]  # fmt: skip
    added, delta, done, item = events[2], events[3], events[4], events[5]["item"]
    assert added["item"]["arguments"] == ""
    assert delta["delta"] == done["arguments"] == item["arguments"] == '{"path":"a.md"}'
    assert done["name"] == item["name"] == "read_note"
    assert added["item"]["id"] == delta["item_id"] == item["id"] != item["call_id"] == "call_1"
    assert item["id"].startswith("fc_")
    assert response["status"] == "completed"


def test_text_and_parallel_calls_each_have_their_own_index() -> None:
    turn: list[TurnEvent] = [AnswerText("I look."), *call(), *call(call_id="call_2"), TurnFinished(USAGE)]
    events, response = build(turn)
    assert [event["output_index"] for event in events if event["type"] == "response.output_item.added"] == [0, 1, 2]
    assert [item["type"] for item in response["output"]] == ["message", "function_call", "function_call"]


def test_reasoning_leaves_as_summary_parts() -> None:
    turn: list[TurnEvent] = [
        Reasoning(0, "One"), Reasoning(1, "Two"), ReasoningItemEnded(), AnswerText("x"), TurnFinished(USAGE),
    ]  # fmt: skip
    events, response = build(turn)
    assert types(events)[2:11] == [
        "output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta",
        "reasoning_summary_text.done", "reasoning_summary_part.done", "reasoning_summary_part.added",
        "reasoning_summary_text.delta", "reasoning_summary_text.done", "reasoning_summary_part.done",
    ]  # fmt: skip
    assert response["output"][0]["summary"] == [
        {"type": "summary_text", "text": "One"},
        {"type": "summary_text", "text": "Two"},
    ]


def test_reasoning_without_a_summary_is_an_empty_item() -> None:
    _, response = build([ReasoningItemEnded(), AnswerText("x"), TurnFinished(USAGE)])
    assert [item["type"] for item in response["output"]] == ["reasoning", "message"]
    assert response["output"][0]["summary"] == []


def test_encrypted_reasoning_is_there_for_those_who_ask_for_it() -> None:
    turn: list[TurnEvent] = [Reasoning(0, "One"), ReasoningItemEnded(), TurnFinished(USAGE)]
    assert build(turn, include=["reasoning.encrypted_content"])[1]["output"][0]["encrypted_content"]
    assert "encrypted_content" not in build(turn)[1]["output"][0]


def test_encrypted_reasoning_is_there_without_a_summary_too() -> None:
    turn: list[TurnEvent] = [ReasoningItemEnded(), AnswerText("x"), TurnFinished(USAGE)]
    assert build(turn, include=["reasoning.encrypted_content"])[1]["output"][0]["encrypted_content"]


def test_a_message_that_the_model_had_ended_is_incomplete_when_the_answer_was_cut() -> None:
    _, response = build([AnswerText("Hel"), AnswerMessageEnded(), TurnFinished(USAGE, "max_output_tokens")])
    assert response["output"][0]["status"] == "incomplete"


def test_two_messages_are_two_items() -> None:
    _, response = build([AnswerText("a"), AnswerMessageEnded(), AnswerText("b"), TurnFinished(USAGE)])
    assert [item["content"][0]["text"] for item in response["output"]] == ["a", "b"]


@pytest.mark.parametrize("before", [[], [Reasoning(0, "Hm."), ReasoningItemEnded()]])
def test_an_answer_that_says_nothing_is_an_empty_message(before: list[TurnEvent]) -> None:
    events, response = build([*before, TurnFinished(USAGE)])
    assert response["output"][-1]["content"][0]["text"] == ""
    assert "output_text.delta" not in types(events)
    assert "output_text.done" in types(events)


def test_a_cut_answer_is_incomplete() -> None:
    events, response = build([AnswerText("Hel"), TurnFinished(USAGE, "max_output_tokens")])
    assert types(events)[-1] == "incomplete"
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert response["output"][0]["status"] == "incomplete"


def test_a_failure_carries_its_error_twice() -> None:
    error = BackendError("The backend went away.", code="backend_gone")
    events, response = build([AnswerText("Hel"), TurnFailed(error)])
    assert types(events)[-2:] == ["output_item.done", "failed"]
    assert events[-1]["error"] == {
        "message": "The backend went away.", "type": "server_error", "param": None, "code": "backend_gone",
    }  # fmt: skip
    assert response["error"] == {"code": "server_error", "message": "The backend went away."}


@pytest.mark.parametrize("code", sorted(ACTED_ON))
def test_what_clients_act_on_is_told_by_the_published_event_first(code: str) -> None:
    error = BackendError("Too long.", status=400, type="invalid_request_error", code=code, param="input")
    events, response = build([AnswerText("Hel"), TurnFailed(error)])
    assert types(events)[-3:] == ["output_item.done", "error", "failed"]
    told = {"type": "invalid_request_error", "code": code, "message": "Too long.", "param": "input"}
    flat = {name: told[name] for name in ("code", "message", "param")}
    assert events[-2] == {"type": "error", "sequence_number": len(events) - 2, **flat, "error": told}
    ResponseErrorEvent.model_validate(events[-2])
    check_events(events)
    assert response["error"] == {"code": code, "message": "Too long."}


def test_a_response_carries_only_codes_that_are_published_or_acted_on() -> None:
    published = literals(ResponseError.model_fields["code"].annotation)
    assert published | ACTED_ON >= RESPONSE_ERROR_CODES >= ACTED_ON
    assert not published & ACTED_ON, "what is published by now need not be named"
    for code in (*ACTED_ON, "rate_limit_exceeded", "backend_disconnected"):
        events, response = build([TurnFailed(BackendError("no", code=code))])
        assert response["error"]["code"] == ("server_error" if code == "backend_disconnected" else code)
        assert events[-1]["error"]["code"] == code


def test_a_call_that_broke_off_does_not_look_finished() -> None:
    turn: list[TurnEvent] = [
        ToolCallStarted("c", "read_note"),
        ToolCallArguments('{"pa'),
        ToolCallEnded(complete=False),
    ]
    events, response = build([*turn, TurnFailed(ApiError("broken"))])
    assert "function_call_arguments.done" not in types(events)
    assert response["output"][0]["status"] == "incomplete"
    assert response["output"][0]["arguments"] == '{"pa'


def test_a_custom_call_leaves_as_its_exact_text() -> None:
    pieces = [ToolCallArguments('{"input":"a'), ToolCallArguments('\\nb"}')]
    events, response = build([ToolCallStarted("call_1", "patch"), *pieces, ToolCallEnded(), TurnFinished(USAGE)])
    assert types(events)[2:6] == [
        "output_item.added", "custom_tool_call_input.delta", "custom_tool_call_input.done", "output_item.done",
    ]  # fmt: skip
    assert events[2]["item"]["input"] == ""
    assert events[3]["delta"] == events[4]["input"] == "a\nb"
    item = response["output"][0]
    assert item.pop("id").startswith("ctc_")
    assert item == {
        "type": "custom_tool_call", "status": "completed", "call_id": "call_1", "name": "patch", "input": "a\nb",
    }  # fmt: skip


def test_a_custom_call_of_a_namespace_comes_back_with_both_names() -> None:
    _, response = build([*call("mcp__notes__write", '{"input":"x"}'), TurnFinished(USAGE)])
    item = response["output"][0]
    assert (item["type"], item["name"], item["namespace"]) == ("custom_tool_call", "write", "mcp__notes")


def test_a_custom_call_that_broke_off_has_no_input() -> None:
    turn: list[TurnEvent] = [ToolCallStarted("c", "patch"), ToolCallArguments('{"in'), ToolCallEnded(complete=False)]
    events, response = build([*turn, TurnFailed(ApiError("broken"))])
    assert not [name for name in types(events) if name.startswith("custom_tool_call_input")]
    assert (response["output"][0]["status"], response["output"][0]["input"]) == ("incomplete", "")


def test_a_hosted_search_is_told_in_front_of_the_call_of_what_it_finds() -> None:
    lone = {"type": "function", "name": "read_note", "parameters": {"type": "object"}, "defer_loading": True}
    members = [{"type": "function", "name": name, "defer_loading": True} for name in ("find", "list")]
    namespace = {"type": "namespace", "name": "notes", "description": "d", "tools": members}
    called = ("read_note", "notes__find", "notes__list", "read_note")
    turn: list[TurnEvent] = []
    for number, name in enumerate(called):
        turn += [ToolCallStarted(f"call_{number}", name), ToolCallArguments("{}"), ToolCallEnded()]
    events, response = build([*turn, TurnFinished(USAGE)], tools=[{"type": "tool_search"}, lone, namespace])
    check_published_events(events)
    check_events(events)
    search, output, call, *others = response["output"]
    hosted = {"status": "completed", "call_id": None, "execution": "server"}
    assert search == {"id": search["id"], "type": "tool_search_call", **hosted, "arguments": {"paths": ["read_note"]}}
    assert output == {"id": output["id"], "type": "tool_search_output", **hosted, "tools": [response["tools"][1]]}
    assert (call["name"], call["namespace"]) == ("read_note", "read_note")
    assert [item["type"] for item in others] == [search["type"], output["type"], *["function_call"] * 3]
    assert others[1]["tools"] == [response["tools"][2]]


def test_a_namespaced_call_comes_back_with_name_and_namespace() -> None:
    _, response = build([*call("mcp__notes__find"), TurnFinished(USAGE)])
    item = response["output"][0]
    assert (item["name"], item["namespace"]) == ("find", "mcp__notes")


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("cancelled", [True, False])
def test_a_background_response_is_queued_before_it_begins(begun: bool, cancelled: bool) -> None:
    body: JsonObject = {"model": "m", "input": "hi", "background": True}
    builder = ResponsesBuilder(parse_responses_request(body))
    events = builder.start()
    if begun:
        events += [*builder.begin(), *builder.handle(AnswerText("Hel"))]
    events += builder.cancel() if cancelled else builder.handle(TurnFailed(BackendError("gone")))
    assert types(events)[:3] == ["created", "queued", "in_progress" if begun else "failed"]
    assert check_events(events)["status"] == ("cancelled" if cancelled else "failed")
    check_published_events(orjson.loads(orjson.dumps(events)))


def test_usage_is_in_the_last_response_only() -> None:
    events, response = build([AnswerText("x"), TurnFinished(USAGE)])
    assert events[0]["response"]["usage"] is None
    assert response["usage"] == {
        "input_tokens": 328,
        "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 0},
        "output_tokens": 52,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 380,
    }


def test_the_request_is_echoed() -> None:
    _, response = build(
        [TurnFinished(USAGE)],
        instructions="Be kind.", temperature=0.5, metadata={"a": "b"}, parallel_tool_calls=False, tool_choice="auto",
        max_output_tokens=100, user="u", reasoning={"effort": "low"}, store=False,
    )  # fmt: skip
    assert response["instructions"] == "Be kind."
    assert response["temperature"] == 0.5
    assert response["metadata"] == {"a": "b"}
    assert response["parallel_tool_calls"] is False
    assert response["tool_choice"] == "auto"
    assert response["max_output_tokens"] == 100
    assert response["user"] == "u"
    assert response["reasoning"] == {"effort": "low", "summary": None}
    assert response["store"] is False


def joined(groups: list[list[TurnEvent]]) -> list[TurnEvent]:
    """`groups` in a row, each call with an id of its own."""
    return [
        ToolCallStarted(f"call_{number}", event.name) if isinstance(event, ToolCallStarted) else event
        for number, group in enumerate(groups)
        for event in group
    ]


def spoken(text: str) -> list[TurnEvent]:
    return [AnswerText(text)]


def thought(texts: list[str]) -> list[TurnEvent]:
    return [*(Reasoning(0, text) for text in texts), ReasoningItemEnded()]


def called(name: str, pieces: list[str]) -> list[TurnEvent]:
    return [ToolCallStarted("", name), *map(ToolCallArguments, pieces), ToolCallEnded()]


ENDED: list[TurnEvent] = [AnswerMessageEnded()]
NAMES = st.sampled_from(["read_note", "patch", "mcp__notes__find", "mcp__notes__write", "undeclared"])
PIECES = st.lists(st.text(min_size=1), min_size=1, max_size=4)
TURNS = st.lists(
    st.one_of(
        st.builds(spoken, st.text(min_size=1)),
        st.just(ENDED),
        st.builds(thought, st.lists(st.text(), max_size=3)),
        st.builds(called, NAMES, PIECES),
    ),
    max_size=8,
).map(joined)
ENDS = st.sampled_from([TurnFinished(USAGE), TurnFinished(USAGE, "content_filter"), TurnFailed(BackendError("gone"))])


@given(TURNS, ENDS)
def test_every_stream_keeps_the_grammar(turn: list[TurnEvent], end: TurnEvent) -> None:
    events, response = build([*turn, end])
    assert check_events(events) == response
    check_published_events(events)
    check_published_response(response)


def test_a_response_that_only_prepares_the_next_one_is_complete_and_says_nothing() -> None:
    request = parse_responses_request(parse_json_object(orjson.dumps(REQUEST)))
    builder = ResponsesBuilder(request, clock=lambda: 1000.0)
    events: Any = orjson.loads(orjson.dumps([*builder.start(), *builder.warm_up()]))
    assert types(events) == ["created", "in_progress", "completed"]
    assert events[-1]["response"] == orjson.loads(orjson.dumps(builder.response))
    response = events[-1]["response"]
    assert (response["status"], response["output"], response["completed_at"]) == ("completed", [], 1000)
    assert response["usage"]["total_tokens"] == 0
    check_published_events(events)
