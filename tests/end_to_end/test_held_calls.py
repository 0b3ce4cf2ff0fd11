"""Demanded calls of strict tools: the official client, what tagcall has behind it, and what the model is held to."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest
from openai import AsyncOpenAI

from parser import write_call
from tests.support.backends import BACKENDS_UNDER_TEST, TestBackend
from tests.support.codex_programs import installed_programs
from tests.support.endpoint import Endpoint, calls_of, serving
from tests.support.responses_grammar import check_events
from tests.support.scripted_model import Refusal, ScriptedModel

every_backend = pytest.mark.parametrize("stack", BACKENDS_UNDER_TEST, ids=lambda stack: stack.name)
every_codex_with_lanes = pytest.mark.parametrize(
    "stack",
    [TestBackend(program) for program in installed_programs() if program.supported],
    ids=lambda stack: stack.name,
)

SEATS = {
    "type": "object",
    "properties": {"count": {"type": "integer", "minimum": 1}, "name": {"type": "string", "pattern": "^[A-Z]"}},
    "required": ["count", "name"],
    "additionalProperties": False,
}
NODE = {
    "type": "object",
    "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
    "required": ["next"],
    "additionalProperties": False,
}
CHAIN = {
    "type": "object",
    "properties": {"first": {"$ref": "#/$defs/node"}},
    "required": ["first"],
    "additionalProperties": False,
}


def tool(name: str, parameters: dict[str, Any], *, strict: bool = True) -> Any:
    return {"type": "function", "name": name, "description": name, "parameters": parameters, "strict": strict}


TOOLS = [tool("reserve", SEATS), tool("chain", {**CHAIN, "$defs": {"node": NODE}})]
ARGUMENTS = '{"count": 2, "name": "Ada"}'
HELD = f'{{"calls": [{{"name": "reserve", "arguments": {ARGUMENTS}}}]}}'
TAGGED = write_call("reserve", ARGUMENTS)
NAMED = {"type": "function", "name": "reserve"}


def schema_of(model: ScriptedModel, number: int) -> Any:
    """What a request asked the model's service to hold it to."""
    body = model.requests[number].body
    if (held := body.get("response_format")) is not None:
        return held["json_schema"]["schema"]
    held = (body.get("text") or {}).get("format")
    return None if held is None else held["schema"]


async def ask(client: AsyncOpenAI, **wanted: Any) -> list[str]:
    asked: dict[str, Any] = {"model": "gpt-5.5", "input": "Two seats.", "tools": TOOLS, **wanted}
    return [call.arguments for call in calls_of(await client.responses.create(**asked))]


@every_backend
async def test_the_service_is_given_each_strict_tools_schema_whole(endpoint: Endpoint) -> None:
    endpoint.say(HELD, HELD)
    assert await ask(endpoint.client, tool_choice="required") == [ARGUMENTS]
    assert await ask(endpoint.client, tool_choice=NAMED) == [ARGUMENTS]
    every, named = (schema_of(endpoint.model, number) for number in range(2))
    reserve, chain = every["properties"]["calls"]["items"]["anyOf"]
    assert reserve["properties"]["arguments"] == SEATS
    moved = json.loads(json.dumps({"chain": CHAIN, "node": NODE}).replace("#/$defs/node", "#/$defs/tool_2_node"))
    assert chain["properties"]["arguments"] == moved["chain"]
    assert every["$defs"] == {"tool_2_node": moved["node"]}
    assert named["properties"]["calls"]["items"]["properties"]["arguments"] == SEATS


@pytest.mark.parametrize(
    "stack", [stack for stack in BACKENDS_UNDER_TEST if stack.tells_why], ids=lambda stack: stack.name
)
async def test_a_schema_that_is_refused_is_left_out_once_and_for_all(
    model: ScriptedModel, stack: TestBackend, tmp_path: Path
) -> None:
    error = {
        "message": "Invalid schema for response_format 'codex_output_schema': 'pattern' is not permitted.",
        "type": "invalid_request_error",
        "param": "text.format.schema",
        "code": "invalid_json_schema",
    }
    async with serving(model, stack, tmp_path / "home") as endpoint:
        model.push(Refusal(400, error))
        endpoint.say(TAGGED, TAGGED)
        for _ in range(2):
            assert await ask(endpoint.client, tool_choice="required") == [ARGUMENTS]
        assert [schema_of(model, number) is not None for number in range(3)] == [True, False, False]
        assert len(model.requests) == 3


@every_backend
async def test_the_wire_is_that_of_a_call_in_the_prompts_form(
    model: ScriptedModel, stack: TestBackend, tmp_path: Path
) -> None:
    seen: list[list[str]] = []
    for hold, text in ("off", TAGGED), ("auto", HELD):
        async with serving(model, stack, tmp_path / "home", hold_calls=hold) as endpoint:
            endpoint.say(text)
            stream = await endpoint.client.responses.create(
                model="gpt-5.5", input="Two seats.", tools=TOOLS, tool_choice="required", stream=True
            )
            events = [orjson.loads(event.to_json()) async for event in stream]
        assert check_events(events)["status"] == "completed"
        seen.append([event["type"] for event in events])
    assert seen[0] == seen[1]
    assert [schema_of(model, number) is not None for number in range(2)] == [False, True]


@every_codex_with_lanes
async def test_who_always_demands_a_call_keeps_the_providers_cache(endpoint: Endpoint) -> None:
    """Without strict tools the first answer is not held, so that its thread goes on."""
    tools = [tool("reserve", SEATS, strict=False)]
    conversation: list[Any] = [{"role": "user", "content": "Two seats."}]
    endpoint.say(TAGGED, TAGGED)
    for _ in range(2):
        answer = await endpoint.client.responses.create(
            model="gpt-5.5", input=conversation, tools=tools, tool_choice="required"
        )
        [call] = calls_of(answer)
        conversation += [
            call.to_dict(),
            {"type": "function_call_output", "call_id": call.call_id, "output": "Reserved."},
        ]
    assert len({request.body["prompt_cache_key"] for request in endpoint.model.requests}) == 1
    endpoint.say("No need.", HELD)
    assert await ask(endpoint.client, tools=tools, tool_choice="required") == [ARGUMENTS]
    assert [schema_of(endpoint.model, number) is not None for number in range(4)] == [False, False, False, True]


@every_codex_with_lanes
@pytest.mark.parametrize("parallel", [True, False])
async def test_so_does_who_demands_a_strict_one_until_an_answer_is_free(endpoint: Endpoint, parallel: bool) -> None:
    conversation: list[Any] = [{"role": "user", "content": "Two seats."}]
    held = HELD if parallel else f'{{"call": {{"name": "reserve", "arguments": {ARGUMENTS}}}}}'
    choices: list[Any] = ["required", NAMED, "required", "auto"]
    endpoint.say(held, held, held, "Reserved.")
    for choice in choices:
        answer = await endpoint.client.responses.create(
            model="gpt-5.5", input=conversation, tools=TOOLS[:1], tool_choice=choice, parallel_tool_calls=parallel
        )
        for call in calls_of(answer):
            assert call.arguments == ARGUMENTS
            output = {"type": "function_call_output", "call_id": call.call_id, "output": "Reserved."}
            conversation += [call.to_dict(), output]
    *loop, free = [request.body for request in endpoint.model.requests]
    assert [schema_of(endpoint.model, number) is not None for number in range(4)] == [True, True, True, False]
    assert len({body["prompt_cache_key"] for body in loop}) == 1
    assert all(later["input"][: len(earlier["input"])] == earlier["input"] for earlier, later in pairwise(loop))
    # Where calls are written in the prompt's form it is shown no others.
    assert free["prompt_cache_key"] != loop[0]["prompt_cache_key"]
    assert not any(held in part["text"] for item in free["input"] for part in item["content"])
    assert json.dumps(free["input"]).count("Reserved.") == 3
