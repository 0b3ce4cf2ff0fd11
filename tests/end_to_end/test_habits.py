"""What clients do to a conversation before they send it back, and whether it goes on all the same.

A model that says something beside each of its calls, over six requests: the first has nothing to go on from.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI

from tests.support.conversation import Round, conversation
from tests.support.lanes import continued
from tests.support.patience import PATIENCE
from tests.support.scripted_model import ScriptedModel
from tests.support.sdk import openai_client
from tests.support.tagcall_server import tagcall_server
from tests.support.tool_call import ToolCall
from tests.support.vault import DESCRIPTIONS, MODEL, QUESTION, schema

Message = dict[str, Any]
Habit = Callable[[Message], Message]

ALL = 5
ROUNDS = (
    *(Round(f"  Look {n}.\n\nAgain.", (ToolCall("read_note", {"path": f"{n}.md"}),), (f"# {n}",)) for n in range(ALL)),
    Round("That is all."),
)


@pytest.fixture
async def client(model: ScriptedModel, tmp_path: Path) -> AsyncIterator[AsyncOpenAI]:
    async with (
        tagcall_server(model, tmp_path / "home", store="memory") as url,
        openai_client(url, timeout=PATIENCE) as client,
    ):
        model.choose = conversation(ROUNDS)
        yield client


def spelled_anew(arguments: str) -> str:
    return json.dumps(json.loads(arguments), indent=2)


def with_calls(edit: Callable[[Message], Message]) -> Habit:
    return lambda message: {**message, "tool_calls": [edit(call) for call in message["tool_calls"]]}


def with_function(call: Message, **members: Any) -> Message:
    return {**call, "function": {**call["function"], **members}}


# Of an assistant message with calls -> how many of the six requests go on.
CHAT: dict[str, tuple[Habit, int]] = {
    "as it came": (lambda message: message, ALL),
    "without what is null": (lambda message: {name: value for name, value in message.items() if value}, ALL),
    "its text without outer white space": (lambda message: {**message, "content": message["content"].strip()}, ALL),
    "its text as parts": (lambda m: {**m, "content": [{"type": "text", "text": m["content"]}]}, ALL),
    "with carriage returns": (lambda message: {**message, "content": message["content"].replace("\n", "\r\n")}, ALL),
    "JSON written anew": (
        with_calls(lambda call: with_function(call, arguments=spelled_anew(call["function"]["arguments"]))),
        ALL,
    ),
    "with an index": (with_calls(lambda call: {**call, "index": 0}), ALL),
    "without its text": (lambda message: {**message, "content": None}, ALL),
    "its text cut": (lambda message: {**message, "content": message["content"][:5]}, 0),
    "with ids of its own": (with_calls(lambda call: {**call, "id": f"mine-{call['id']}"}), 0),
}


async def chat_loop(client: AsyncOpenAI, habit: Habit) -> None:
    tools: Any = [
        {"type": "function", "function": {"name": name, "description": text, "parameters": schema(name)}}
        for name, text in DESCRIPTIONS.items()
    ]
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    said: list[str | None] = []
    for each in ROUNDS:
        completion = await client.chat.completions.create(model=MODEL, messages=messages, tools=tools)
        said.append(completion.choices[0].message.content)
        if each.calls:
            message = habit(completion.choices[0].message.to_dict())
            [call] = message["tool_calls"]
            messages += [message, {"role": "tool", "tool_call_id": call["id"], "content": each.outputs[0]}]
    assert said[-1] == ROUNDS[-1].text


async def test_a_chat_conversation_goes_on_unless_what_was_said_changed(
    model: ScriptedModel, client: AsyncOpenAI
) -> None:
    for habit, (edit, wanted) in CHAT.items():
        model.requests.clear()
        await chat_loop(client.with_options(api_key=habit), edit)  # a key each: no lane of another is met
        assert continued(model.requests) == wanted, habit


async def test_a_conversation_in_functions_of_old_goes_on(model: ScriptedModel, client: AsyncOpenAI) -> None:
    functions: Any = [
        {"name": name, "description": text, "parameters": schema(name)} for name, text in DESCRIPTIONS.items()
    ]
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    for each in ROUNDS:
        completion = await client.chat.completions.create(model=MODEL, messages=messages, functions=functions)
        message = completion.choices[0].message.to_dict()
        messages.append(message)
        if each.calls:
            messages.append({"role": "function", "name": each.calls[0].name, "content": each.outputs[0]})
    assert continued(model.requests) == ALL


Items = list[Message]
ItemsHabit = Callable[[Items], Items]


def bare_items(items: Items) -> Items:
    """As Copilot and others make them from what they keep."""
    made: Items = []
    for item in items:
        if item["type"] == "message":
            made.append({"role": "assistant", "content": item["content"][0]["text"]})
        else:
            made.append({name: item[name] for name in ("type", "call_id", "name", "arguments")})
    return made


# Of the output items of a Response with a call.
RESPONSES: dict[str, tuple[ItemsHabit, int]] = {
    "as they came": (lambda items: items, ALL),
    "without ids and status": (bare_items, ALL),
    "calls before their text": (lambda items: items[::-1], ALL),
    "JSON written anew": (
        lambda items: [
            {**item, "arguments": spelled_anew(item["arguments"])} if "arguments" in item else item for item in items
        ],
        ALL,
    ),
    "with a reasoning item of its own": (
        lambda items: [{"type": "reasoning", "summary": []}, *items],
        ALL,
    ),
    "without their text": (lambda items: [item for item in items if item["type"] != "message"], ALL),
}


async def responses_loop(client: AsyncOpenAI, follow: Callable[[Any, Message], Message], **members: Any) -> None:
    """`follow` makes of a Response and the output of its call what the next request has beside the usual."""
    tools: Any = [
        {"type": "function", "name": name, "description": text, "parameters": schema(name), "strict": True}
        for name, text in DESCRIPTIONS.items()
    ]
    asked: Message = {"input": QUESTION}
    said: list[str] = []
    for each in ROUNDS:
        response = await client.responses.create(model=MODEL, tools=tools, **members, **asked)
        said.append(response.output_text)
        if each.calls:
            [call] = [item for item in response.output if item.type == "function_call"]
            output = {"type": "function_call_output", "call_id": call.call_id, "output": each.outputs[0]}
            asked = follow(response, output)
    assert said[-1] == ROUNDS[-1].text


async def test_a_responses_conversation_goes_on_unless_what_was_said_changed(
    model: ScriptedModel, client: AsyncOpenAI
) -> None:
    def followed(edit: ItemsHabit) -> Callable[[Any, Message], Message]:
        items: Items = [{"role": "user", "content": QUESTION}]

        def follow(response: Any, output: Message) -> Message:
            items.extend([*edit([item.to_dict() for item in response.output]), output])
            return {"input": items}

        return follow

    for habit, (edit, wanted) in RESPONSES.items():
        model.requests.clear()
        await responses_loop(client.with_options(api_key=habit), followed(edit))
        assert continued(model.requests) == wanted, habit


async def test_a_conversation_that_is_left_to_the_store_goes_on(model: ScriptedModel, client: AsyncOpenAI) -> None:
    await responses_loop(client, lambda response, output: {"input": [output], "previous_response_id": response.id})
    kept = (await client.conversations.create()).id
    await responses_loop(client, lambda _, output: {"input": [output]}, conversation=kept)
    assert continued(model.requests) == 2 * ALL
