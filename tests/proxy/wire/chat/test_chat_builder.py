"""The grammar of Chat Completions, held against the official client's own types and its own accumulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk

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
from proxy.errors import TOO_LONG, BackendError, RequestError
from proxy.wire.chat.chat_builder import ChatBuilder, chat_error
from proxy.wire.chat.request import parse_chat_request
from proxy.wire.json_body import parse_json_object

USAGE = Usage(328, 40, 52, 5)
READ = {"name": "read_note", "parameters": {"type": "object"}}
REQUEST = {"model": "gpt-5.1", "messages": [{"role": "user", "content": "hi"}]}
TOOLS = [{"type": "function", "function": READ}]

Build = tuple[list[dict[str, Any]], dict[str, Any]]


def build(turn: Sequence[TurnEvent], *, reasoning: bool = False, **members: Any) -> Build:
    """The chunks of a turn as a client reads them, and the completion."""
    request = parse_chat_request(parse_json_object(orjson.dumps({**REQUEST, **members})))
    builder = ChatBuilder(request, reasoning=reasoning, clock=lambda: 1000.0)
    chunks = builder.start()
    for event in turn:
        chunks += builder.handle(event)
    return orjson.loads(orjson.dumps(chunks)), orjson.loads(orjson.dumps(builder.body))


def call(name: str = "read_note", arguments: str = '{"path":"a.md"}', call_id: str = "call_1") -> list[TurnEvent]:
    return [ToolCallStarted(call_id, name), ToolCallArguments(arguments), ToolCallEnded()]


def deltas(chunks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]


def added_up(chunks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The message that the official client makes of the chunks, and its finish reason."""
    state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
    for chunk in chunks:
        state.handle_chunk(ChatCompletionChunk.model_validate(chunk))
    choice = state.current_completion_snapshot.choices[0]
    message = choice.message.model_dump(exclude_none=True, exclude={"parsed"})
    for tool_call in message.get("tool_calls", []):
        tool_call.pop("index")
        tool_call.get("function", {}).pop("parsed_arguments", None)
    if message["content"] == "" and message.keys() & {"tool_calls", "function_call"}:
        del message["content"]  # null in the completion; a stream cannot know it beforehand
    return {**message, "finish_reason": choice.finish_reason}


def message_of(completion: dict[str, Any]) -> dict[str, Any]:
    """The message of a completion, without what says nothing, and its finish reason."""
    (choice,) = completion["choices"]
    message = {key: value for key, value in choice["message"].items() if value is not None and key != "annotations"}
    return {**message, "finish_reason": choice["finish_reason"]}


def test_a_text_answer_has_the_whole_grammar() -> None:
    chunks, completion = build([AnswerText("Hel"), AnswerText("lo"), TurnFinished(USAGE)])
    assert deltas(chunks) == [
        {"role": "assistant", "content": "", "refusal": None}, {"content": "Hel"}, {"content": "lo"}, {},
    ]  # fmt: skip
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, None, "stop"]
    assert completion["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hello", "refusal": None, "annotations": []},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ]
    assert {(chunk["id"], chunk["created"], chunk["model"], chunk["object"]) for chunk in chunks} == {
        (completion["id"], 1000, "gpt-5.1", "chat.completion.chunk")
    }
    assert completion["id"].startswith("chatcmpl-")
    assert completion["object"] == "chat.completion"


def test_a_call_names_itself_in_its_first_chunk_only() -> None:
    turn: list[TurnEvent] = [
        ToolCallStarted("call_1", "read_note"),
        ToolCallArguments('{"a"'),
        ToolCallArguments(":1}"),
        ToolCallEnded(),
        TurnFinished(USAGE),
    ]
    chunks, completion = build(turn, tools=TOOLS)
    assert deltas(chunks) == [
        {"role": "assistant", "content": "", "refusal": None},
        {
            "tool_calls": [
                {"index": 0, "id": "call_1", "type": "function", "function": {"name": "read_note", "arguments": ""}}
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a"'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]},
        {},
    ]
    assert message_of(completion) == {
        "role": "assistant",
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "read_note", "arguments": '{"a":1}'}}],
        "finish_reason": "tool_calls",
    }
    assert completion["choices"][0]["message"]["content"] is None


def test_text_and_parallel_calls_leave_one_after_the_other() -> None:
    turn: list[TurnEvent] = [AnswerText("I look."), *call(), *call(call_id="call_2"), TurnFinished(USAGE)]
    chunks, completion = build(turn, tools=TOOLS)
    assert [part["index"] for delta in deltas(chunks) for part in delta.get("tool_calls", [])] == [0, 0, 1, 1]
    assert all(len(delta.get("tool_calls", [])) <= 1 for delta in deltas(chunks))
    assert added_up(chunks) == message_of(completion)
    assert completion["choices"][0]["message"]["content"] == "I look."


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "read_note"}}])
def test_a_demanded_call_ends_with_tool_calls_too(choice: object) -> None:
    _, completion = build([*call(), TurnFinished(USAGE)], tools=TOOLS, tool_choice=choice)
    assert completion["choices"][0]["finish_reason"] == "tool_calls"


def test_functions_are_answered_with_a_function_call() -> None:
    chunks, completion = build([*call(), TurnFinished(USAGE)], functions=[READ])
    assert deltas(chunks)[1:] == [
        {"function_call": {"name": "read_note", "arguments": ""}},
        {"function_call": {"arguments": '{"path":"a.md"}'}},
        {},
    ]
    assert added_up(chunks) == message_of(completion)
    assert message_of(completion)["function_call"] == {"name": "read_note", "arguments": '{"path":"a.md"}'}
    assert message_of(completion)["finish_reason"] == "function_call"


def test_a_custom_tool_is_given_its_input() -> None:
    tools = [{"type": "custom", "custom": {"name": "patch"}}]
    turn: list[TurnEvent] = [
        ToolCallStarted("call_1", "patch"),
        ToolCallArguments('{"inp'),
        ToolCallArguments('ut":"a\\nb"}'),
        ToolCallEnded(),
        TurnFinished(USAGE),
    ]
    chunks, completion = build(turn, tools=tools)
    expected = {"id": "call_1", "type": "custom", "custom": {"name": "patch", "input": "a\nb"}}
    assert [part for delta in deltas(chunks) for part in delta.get("tool_calls", [])] == [
        {"index": 0, **expected, "custom": {"name": "patch", "input": ""}},
        {"index": 0, "custom": {"input": "a\nb"}},
    ]
    assert message_of(completion)["tool_calls"] == [expected]
    ChatCompletion.model_validate(completion, strict=True)


def test_two_messages_are_two_paragraphs() -> None:
    turn: list[TurnEvent] = [
        AnswerMessageEnded(),
        AnswerText("a"),
        AnswerMessageEnded(),
        AnswerText("b"),
        TurnFinished(USAGE),
    ]
    chunks, completion = build(turn)
    assert completion["choices"][0]["message"]["content"] == "a\n\nb"
    assert added_up(chunks) == message_of(completion)


@pytest.mark.parametrize(("cut", "reason"), [("max_output_tokens", "length"), ("content_filter", "content_filter")])
def test_an_answer_that_was_cut_says_so(cut: str, reason: str) -> None:
    chunks, completion = build([AnswerText("Hel"), *call(), TurnFinished(USAGE, cut)], tools=TOOLS)
    assert completion["choices"][0]["finish_reason"] == reason
    assert chunks[-1]["choices"][0]["finish_reason"] == reason


def test_usage_leaves_only_for_those_who_ask() -> None:
    turn: list[TurnEvent] = [AnswerText("x"), TurnFinished(USAGE)]
    usage = {
        "prompt_tokens": 328,
        "completion_tokens": 52,
        "total_tokens": 380,
        "prompt_tokens_details": {"cached_tokens": 40, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 5,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
    asked, completion = build(turn, stream=True, stream_options={"include_usage": True})
    assert completion["usage"] == usage
    assert [chunk["usage"] for chunk in asked] == [None, None, None, usage]
    assert asked[-1]["choices"] == []
    unasked, _ = build(turn, stream=True)
    assert all("usage" not in chunk and len(chunk["choices"]) == 1 for chunk in unasked)


def test_a_failure_is_a_chunk_of_its_own() -> None:
    chunks, _ = build([AnswerText("Hel"), TurnFailed(BackendError("The backend went away.", code="gone"))])
    assert chunks[-1] == {
        "error": {"message": "The backend went away.", "type": "server_error", "param": None, "code": "gone"}
    }
    assert all("error" not in chunk for chunk in chunks[:-1])


def test_reasoning_is_told_by_option_only() -> None:
    turn: list[TurnEvent] = [
        Reasoning(0, "One"),
        Reasoning(1, "Tw"),
        Reasoning(1, "o"),
        ReasoningItemEnded(),
        Reasoning(0, "Three"),
        ReasoningItemEnded(),
        AnswerText("x"),
        TurnFinished(USAGE),
    ]
    chunks, completion = build(turn, reasoning=True)
    assert completion["choices"][0]["message"]["reasoning_content"] == "One\n\nTwo\n\nThree"
    assert "".join(delta.get("reasoning_content", "") for delta in deltas(chunks)) == "One\n\nTwo\n\nThree"
    assert "reasoning_content" not in orjson.dumps(build(turn)).decode()


def test_an_empty_answer_is_an_empty_text() -> None:
    for tools in (None, TOOLS):
        chunks, completion = build([TurnFinished(USAGE)], tools=tools)
        assert completion["choices"][0]["message"]["content"] == ""
        assert [delta["content"] for delta in deltas(chunks) if "content" in delta] == [""], "told once"
        assert added_up(chunks) == message_of(completion)


CALLS = st.builds(lambda pieces: [ToolCallStarted("c", "read_note"), *map(ToolCallArguments, pieces), ToolCallEnded()],
                  st.lists(st.text(min_size=1), min_size=1, max_size=4))  # fmt: skip
TURNS = st.lists(
    st.one_of(
        st.builds(lambda text: [AnswerText(text)], st.text(min_size=1)),
        st.just([AnswerMessageEnded()]),
        st.builds(
            lambda texts: [*(Reasoning(0, t) for t in texts), ReasoningItemEnded()],
            st.lists(st.text(min_size=1), max_size=3),
        ),
        CALLS,
    ),
    max_size=8,
).map(lambda groups: [event for group in groups for event in group])
ENDS = st.sampled_from([TurnFinished(USAGE), TurnFinished(USAGE, "content_filter")])


@given(TURNS, ENDS, st.booleans(), st.booleans())
def test_every_stream_adds_up_to_the_completion(
    turn: list[TurnEvent], end: TurnEvent, reasoning: bool, usage: bool
) -> None:
    members: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": usage}, "tools": TOOLS}
    chunks, completion = build([*turn, end], reasoning=reasoning, **members)
    ChatCompletion.model_validate(completion, strict=True)
    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk, strict=True)
    assert added_up(chunks) == message_of(completion)
    assert deltas(chunks)[0]["role"] == "assistant"
    assert sum("role" in delta for delta in deltas(chunks)) == 1
    finished = [chunk["choices"][0]["finish_reason"] for chunk in chunks if chunk["choices"]]
    assert finished[-1] == message_of(completion)["finish_reason"]
    assert not any(finished[:-1])


def test_a_silence_is_broken_by_a_chunk_that_says_nothing() -> None:
    request = parse_chat_request(parse_json_object(orjson.dumps(REQUEST)))
    builder = ChatBuilder(request, clock=lambda: 1000.0)
    pulse: Any = orjson.loads(orjson.dumps(builder.pulse()))
    assert deltas(pulse) == [{"content": ""}]
    ChatCompletionChunk.model_validate(pulse[0])


@pytest.mark.parametrize(
    ("code", "status", "param"),
    [
        ("model_not_found", 404, "model"),
        ("invalid_json_schema", 400, "response_format"),
        ("context_length_exceeded", 400, "messages"),
        ("other", 400, "model"),
    ],
)
def test_an_error_is_told_in_the_words_of_chat_completions(code: str, status: int, param: str) -> None:
    error = RequestError("No.", status=400, code=code, param="model")
    told = chat_error(error)
    assert (told.message, told.status, told.code, told.param) == ("No.", status, code, param)
    assert (error.status, error.param) == (400, "model"), "the error itself stays as it was"


def test_a_conversation_that_is_too_long_is_told_in_words_that_clients_look_for() -> None:
    """LiteLLM knows it by these alone, to fall back or to cut, and says `BadRequestError` to any other."""
    error = BackendError(f"{TOO_LONG} The server says: 9 tokens.", status=400, code="context_length_exceeded")
    told = chat_error(error).message
    assert told.startswith("Input tokens exceed the configured limit")
    assert "exceeds the context window" in told
    assert told.endswith("reduce the length of the messages. The server says: 9 tokens.")
    assert error.message.startswith(TOO_LONG)
