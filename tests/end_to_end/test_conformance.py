"""The whole grammar in front of the real codex program, and the ways in which real clients send a conversation back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from openai import BadRequestError

from parser import write_call
from tests.support.conversation import all_shown, results_shown, text_shown
from tests.support.endpoint import Endpoint
from tests.support.published_types import check_published_events, check_published_response
from tests.support.responses_grammar import check_events, without_identity
from tests.support.scripted_model import Item, Message, Reasoning, Reply

NOTES = {"a.md": "# Alpha", "b.md": "# Beta"}
READ: dict[str, Any] = {
    "type": "function",
    "name": "read_note",
    "description": "Read a note.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    "strict": False,
}
PATCH: dict[str, Any] = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Patch files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": 'start: "*** Begin Patch" /(.|\\n)+/'},
}
PATCH_TEXT = '*** Begin Patch\n-"old"\n+\\new\n*** End Patch\n'
A, B = (write_call("read_note", json.dumps({"path": path})) for path in NOTES)
# What the model says, and the items that leave for it.
ANSWERS: dict[str, tuple[list[Item], list[str]]] = {
    "text": ([Message("Hello <you>.")], ["message"]),
    "one call": ([Message(A)], ["function_call"]),
    "text and parallel calls": (
        [Message(f"I will read both.\n{A}\n{B}")],
        ["message", "function_call", "function_call"],
    ),
    "reasoning and a call": ([Reasoning(["**Looking** for it"]), Message(A)], ["reasoning", "function_call"]),
    "a custom call": ([Message(write_call("apply_patch", json.dumps({"input": PATCH_TEXT})))], ["custom_tool_call"]),
}


async def create(endpoint: Endpoint, *, stream: bool, **members: Any) -> dict[str, Any]:
    """One Response as JSON, held to the grammar and to what others published."""
    ask: Callable[..., Any] = endpoint.client.responses.create
    members = {"model": "gpt-5.5", **members}
    if not stream:
        body: dict[str, Any] = (await ask(**members)).to_dict()
        check_published_response(body)
        return body
    events = [event.to_dict() async for event in await ask(**members, stream=True)]
    check_published_events(events)
    return check_events(events)


both = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "plain"])


@pytest.mark.parametrize(("items", "types"), ANSWERS.values(), ids=ANSWERS.keys())
async def test_a_stream_a_plain_answer_and_the_official_stream_helper_agree(
    endpoint: Endpoint, items: list[Item], types: list[str]
) -> None:
    endpoint.model.push(*[Reply(items, chunk=3)] * 3)
    tools: Any = [READ, PATCH]
    members: dict[str, Any] = {"input": "hi", "tools": tools}
    streamed = await create(endpoint, stream=True, **members)
    plain = await create(endpoint, stream=False, **members)
    async with endpoint.client.responses.stream(model="gpt-5.5", **members) as stream:
        helped = await stream.get_final_response()
    assert [item["type"] for item in plain["output"]] == types
    assert without_identity(streamed) == without_identity(plain)
    assert [item.type for item in helped.output] == types


def outputs_of(response: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "type": "function_call_output",
            "call_id": item["call_id"],
            "output": NOTES[json.loads(item["arguments"])["path"]],
        }
        for item in response["output"]
        if item["type"] == "function_call"
    ]


def without_ids(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in item.items() if key not in {"id", "status"}} for item in items]


def referred(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "item_reference", "id": item["id"]} for item in items]


def texts_referred(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As the AI SDK sends a turn back: text by reference, calls in full and without their ids."""
    return [item for each in items for item in (referred([each]) if each["type"] == "message" else without_ids([each]))]


def as_they_came(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return items


@pytest.mark.parametrize(
    ("resend", "tools", "stream"),
    [(as_they_came, [READ], True), (without_ids, [], False), (referred, [], True), (texts_referred, [READ], False)],
    ids=["as they came", "without ids and tools", "by reference and without tools", "texts by reference"],
)
async def test_two_outputs_in_the_wrong_order_find_their_calls(
    endpoint: Endpoint,
    resend: Callable[[list[dict[str, Any]]], list[dict[str, Any]]],
    tools: list[dict[str, Any]],
    stream: bool,
) -> None:
    endpoint.model.push(Reply([Message(f"I will read both.\n{A}\n{B}")]), Reply([Message("Done.")]))
    asked = {"role": "user", "content": "What is in them?"}
    first = await create(endpoint, stream=stream, input=[asked], tools=[READ])
    follow_up = [asked, *resend(first["output"]), *reversed(outputs_of(first))]
    second = await create(endpoint, stream=stream, input=follow_up, tools=tools)
    assert second["output"][0]["content"][0]["text"] == "Done."
    body = endpoint.model.requests[-1].body
    assert results_shown(body) == list(NOTES.values())
    shown = all_shown(body)
    one, other = (call.partition("{")[2] for call in (A, B))
    assert shown.index("I will read both.") < shown.index(one) < shown.index(other) < shown.index("# Alpha")


@both
async def test_a_custom_call_makes_the_round_trip(endpoint: Endpoint, stream: bool) -> None:
    endpoint.model.push(Reply(ANSWERS["a custom call"][0]), Reply([Message("Patched.")]))
    choice = {"type": "custom", "name": "apply_patch"}
    first = await create(endpoint, stream=stream, input="Patch it.", tools=[READ, PATCH], tool_choice=choice)
    (call,) = first["output"]
    assert (call["type"], call["name"], call["input"]) == ("custom_tool_call", "apply_patch", PATCH_TEXT)
    assert "*** Begin Patch" in text_shown(endpoint.model.requests[0].body, "developer")
    output = {"type": "custom_tool_call_output", "call_id": call["call_id"], "output": "ok"}
    asked = {"role": "user", "content": "Patch it."}
    second = await create(endpoint, stream=stream, input=[asked, call, output], tools=[READ, PATCH])
    assert second["output"][0]["content"][0]["text"] == "Patched."
    assert results_shown(endpoint.model.requests[-1].body) == ["ok"]


@both
async def test_a_follow_up_is_the_output_alone(endpoint: Endpoint, stream: bool) -> None:
    endpoint.model.push(Reply([Message(A)]), Reply([Message("Done.")]))
    first = await create(endpoint, stream=stream, input="What is in a.md?", tools=[READ])
    follow_up: dict[str, Any] = {"previous_response_id": first["id"], "input": outputs_of(first)}
    with pytest.raises(BadRequestError, match="Tool choice 'function' not found in 'tools'"):
        await create(endpoint, stream=stream, **follow_up, tool_choice={"type": "function", "name": "read_note"})
    second = await create(endpoint, stream=stream, **follow_up, tool_choice="auto")
    assert second["output"][0]["content"][0]["text"] == "Done."
    assert results_shown(endpoint.model.requests[-1].body) == ["# Alpha"]


async def test_images_of_an_output_reach_the_model(endpoint: Endpoint) -> None:
    pixel = (
        "data:image/png;base64,"
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    endpoint.model.push(Reply([Message(A)]))
    first = await create(endpoint, stream=False, input="Show me a.md.", tools=[READ])
    parts = [{"type": "input_text", "text": "Here."}, {"type": "input_image", "image_url": pixel}]
    output = {"type": "function_call_output", "call_id": first["output"][0]["call_id"], "output": parts}
    await create(endpoint, stream=False, previous_response_id=first["id"], input=[output])
    sent = [part for item in endpoint.model.requests[-1].body["input"] for part in item.get("content", [])]
    assert [part["type"] for part in sent if part["type"] == "input_image"] == ["input_image"]
