"""Strict tools, structured output, cuts: the official client, the real codex program, a scripted model behind it."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from openai import APIStatusError, pydantic_function_tool
from openai.types.chat import ParsedChatCompletionMessage
from openai.types.responses import (
    FunctionToolParam,
    Response,
    ResponseFunctionToolCall,
    ResponseInputItemParam,
    ResponseTextConfigParam,
)
from pydantic import BaseModel

from parser import write_call
from tests.support.backends import TestBackend
from tests.support.endpoint import Endpoint, calls_of, serving
from tests.support.scripted_model import Failed, Message, Refusal, Reply, ScriptedModel

COUNT = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
TOOLS: list[FunctionToolParam] = [
    {
        "type": "function",
        "name": "reserve",
        "description": "Reserve seats.",
        "parameters": {**COUNT, "additionalProperties": False},
        "strict": True,
    }
]
GOOD = write_call("reserve", '{"count": 2}')
BAD = write_call("reserve", '{"count": "two"}')

POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer"}},
    "required": ["x"],
    "additionalProperties": False,
}
FORMAT: ResponseTextConfigParam = {"format": {"type": "json_schema", "name": "point", "schema": POINT, "strict": True}}


class Seats(BaseModel):
    count: int


class Point(BaseModel):
    x: int


async def ask(endpoint: Endpoint, **wanted: Any) -> Response:
    response: Response = await endpoint.client.responses.create(model="gpt-5.5", input="Two seats.", **wanted)
    return response


def last_words(endpoint: Endpoint, number: int) -> str:
    """The text that the model saw last in a request."""
    text: str = endpoint.model.requests[number].body["input"][-1]["content"][-1]["text"]
    return text


@pytest.mark.parametrize("calls", ["whole", "live"])
async def test_a_strict_call_that_does_not_fit_is_repaired_in_one_more_turn(
    model: ScriptedModel, stack: TestBackend, tmp_path: Path, calls: str
) -> None:
    async with serving(model, stack, tmp_path / "home", calls=calls) as endpoint:
        endpoint.say(f"I reserve.\n{BAD}", f"I reserve.\n{GOOD}")
        stream = await endpoint.client.responses.create(model="gpt-5.5", input="Two seats.", tools=TOOLS, stream=True)
        events: list[Any] = [event async for event in stream]
    response = events[-1].response
    assert response.status == "completed"
    assert [call.arguments for call in calls_of(response)] == ['{"count": 2}']
    assert response.output_text == "I reserve.\n"
    assert "two" not in "".join(getattr(event, "delta", "") for event in events)
    assert len(endpoint.model.requests) == 2
    assert "'two' is not of type 'integer'" in last_words(endpoint, 1)
    assert BAD not in json.dumps(endpoint.model.requests[1].body)
    assert response.usage.output_tokens == 40, "both answers were paid for"


async def test_a_strict_call_that_stays_wrong_ends_in_an_error_that_says_why(endpoint: Endpoint) -> None:
    endpoint.say(BAD, BAD)
    with pytest.raises(APIStatusError) as caught:
        await ask(endpoint, tools=TOOLS)
    assert caught.value.code == "tool_arguments_invalid"
    assert "'reserve'" in caught.value.message
    assert "at 'count': 'two' is not of type 'integer'" in caught.value.message
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert len(endpoint.model.requests) == 2


async def test_in_mid_stream_the_same_error_is_a_failed_response(endpoint: Endpoint) -> None:
    endpoint.say(f"I reserve. {BAD}", f"I reserve. {BAD}")
    last = None
    with pytest.raises(Exception, match="is not of type 'integer'"):
        async for last in await endpoint.client.responses.create(
            model="gpt-5.5", input="Two seats.", tools=TOOLS, stream=True
        ):
            assert last.type != "response.function_call_arguments.delta"
    assert last is not None


async def test_a_schema_that_nothing_fits_is_refused_before_the_model_hears_of_it(endpoint: Endpoint) -> None:
    for reference in (f"{endpoint.model.url}/schema.json", "file:///etc/hostname"):
        tool = {**TOOLS[0], "parameters": {"type": "object", "properties": {"a": {"$ref": reference}}}}
        with pytest.raises(APIStatusError) as caught:
            await ask(endpoint, tools=[tool])
        assert (caught.value.status_code, caught.value.code) == (400, "invalid_function_parameters")
    assert endpoint.model.requests == []


@pytest.mark.parametrize("tools", [[], TOOLS], ids=["without tools", "with tools"])
async def test_structured_output_is_json_that_fits(endpoint: Endpoint, tools: list[FunctionToolParam]) -> None:
    endpoint.say('Here: {"x": "one"}', 'Here it is:\n```json\n{"x": 1}\n```')
    response = await ask(endpoint, tools=tools, text=FORMAT)
    assert response.output_text == '{"x": 1}'
    bodies = [request.body for request in endpoint.model.requests]
    assert len(bodies) == 2
    for body in bodies:
        assert json.dumps(POINT, separators=(",", ":")) in json.dumps(body["input"]).replace('\\"', '"')
        assert ("format" in body.get("text", {})) == (not tools)
    assert "at 'x': 'one' is not of type 'integer'" in last_words(endpoint, 1)


async def test_with_structured_output_tools_can_still_be_called(endpoint: Endpoint) -> None:
    endpoint.say(f"I reserve.\n{GOOD}")
    response = await ask(endpoint, tools=TOOLS, text=FORMAT)
    assert [call.arguments for call in calls_of(response)] == ['{"count": 2}']
    assert response.output_text == ""


async def test_structured_output_leaves_while_it_is_written_where_the_service_holds_the_model_to_it(
    endpoint: Endpoint,
) -> None:
    gate = asyncio.Event()
    endpoint.model.push(Reply([Message('{"x": 1234567}')], chunk=3, hold_after=2, gate=gate))
    stream = await endpoint.client.responses.create(model="gpt-5.5", input="Where?", stream=True, text=FORMAT)
    told = []
    async for event in stream:
        if event.type == "response.output_text.delta":
            told.append(event.delta)
            gate.set()
    assert len(told) > 1, "the first left before the model had ended"
    assert "".join(told) == '{"x": 1234567}'


async def test_output_that_stays_wrong_is_a_clear_error(endpoint: Endpoint) -> None:
    endpoint.say("I cannot.", "I cannot.")
    with pytest.raises(APIStatusError) as caught:
        await ask(endpoint, text=FORMAT)
    assert caught.value.code == "output_invalid"


async def test_a_schema_that_the_service_refuses_is_told_to_the_model_in_words(endpoint: Endpoint) -> None:
    message = "Invalid schema for response_format 'codex_output_schema': 'x' is not permitted."
    endpoint.model.push(Refusal(400, {"message": message, "type": "invalid_request_error", "code": None}))
    endpoint.say('{"x": 1}')
    assert (await ask(endpoint, text=FORMAT)).output_text == '{"x": 1}'
    assert "format" not in endpoint.model.requests[1].body.get("text", {})


async def test_an_answer_is_cut_at_max_output_tokens(endpoint: Endpoint) -> None:
    endpoint.say("word " * 500)
    response = await ask(endpoint, max_output_tokens=20)
    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"
    assert response.output_text.split() == ["word"] * 20
    assert response.usage is not None
    assert response.usage.output_tokens == 20


LONG: list[Any] = [
    {"role": "user", "content": "first " * 200},
    {"role": "assistant", "content": "an answer " * 200},
    {"role": "user", "content": "And now?"},
]


async def test_with_truncation_the_oldest_turn_goes_when_the_input_is_too_long(endpoint: Endpoint) -> None:
    endpoint.model.push(Reply([], end=Failed("context_length_exceeded", "too long")), Reply([Message("Hello.")]))
    response = await endpoint.client.responses.create(model="gpt-5.5", input=LONG, truncation="auto")
    assert response.output_text == "Hello."
    assert last_words(endpoint, 1) == "And now?"


async def test_without_truncation_the_error_is_openais(endpoint: Endpoint) -> None:
    endpoint.model.push(Reply([], end=Failed("context_length_exceeded", "too long")))
    with pytest.raises(APIStatusError) as caught:
        await endpoint.client.responses.create(model="gpt-5.5", input=LONG)
    body = caught.value.response.json()
    assert caught.value.status_code == 400
    assert body["error"] == {
        "message": "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "type": "invalid_request_error",
        "param": "input",
        "code": "context_length_exceeded",
    }


async def test_an_sdk_that_parses_all_text_goes_through_a_tool_loop(endpoint: Endpoint) -> None:
    """Its `.parse` raises on words in front of a call, as models write them there."""
    endpoint.say(f"I reserve them.\n{GOOD}", '{"x": 2}')
    ask = partial(endpoint.client.responses.parse, model="gpt-5.5", tools=TOOLS, text_format=Point)
    first = await ask(input="Two seats.")
    [call] = [item for item in first.output if isinstance(item, ResponseFunctionToolCall)]
    output: ResponseInputItemParam = {"type": "function_call_output", "call_id": call.call_id, "output": "done"}
    assert (await ask(input=[output], previous_response_id=first.id)).output_parsed == Point(x=2)


async def test_so_it_does_over_a_stream_of_chat(endpoint: Endpoint) -> None:
    endpoint.say(f"I reserve them.\n{GOOD}", '{"x": 2}')
    tools = [pydantic_function_tool(Seats, name="reserve")]

    async def ask(messages: list[Any]) -> ParsedChatCompletionMessage[Point]:
        stream = endpoint.client.chat.completions.stream
        async with stream(model="gpt-5.5", messages=messages, tools=tools, response_format=Point) as events:
            return (await events.get_final_completion()).choices[0].message

    question = {"role": "user", "content": "Two seats."}
    said = await ask([question])
    assert said.tool_calls
    result = {"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": "done"}
    assert (await ask([question, said, result])).parsed == Point(x=2)
