"""The main job: the official client, tagcall over HTTP, each kind of backend, a scripted model behind it."""

from __future__ import annotations

import asyncio
import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from openai import (
    APIStatusError,
)
from openai.types.responses import (
    Response,
    ResponseInputItemParam,
)

from parser import CLOSE_TAG, OPEN_TAG, write_call
from tests.support.backends import BACKENDS_UNDER_TEST, TestBackend
from tests.support.conversation import all_shown
from tests.support.endpoint import TOOLS, Endpoint, calls_of, serving, streamed
from tests.support.patience import PATIENCE
from tests.support.scripted_model import Failed, Incomplete, Message, Reasoning, Refusal, Reply, ScriptedModel

NOTES = {"a.md": "# Alpha\nfirst", "b.md": '# Beta\n"second"'}
ASK = "What is in a.md and b.md?"
TWO_CALLS = (
    "I will read both.\n"
    + write_call("read_note", '{"path": "a.md"}')
    + "\n"
    + write_call("read_note", '{"path": "b.md"}')
)
ANSWER = "Alpha is <first>, Beta is <second>; ha ha ha."


pytestmark = pytest.mark.parametrize("stack", BACKENDS_UNDER_TEST, ids=lambda stack: stack.name)


def call_outputs(response: Response) -> list[ResponseInputItemParam]:
    """What a client sends back: each call as it came, and its output."""
    items: list[ResponseInputItemParam] = [
        item.to_dict()  # type: ignore[misc]  # an output item is an input item
        for item in response.output
    ]
    for call in calls_of(response):
        note = NOTES[json.loads(call.arguments)["path"]]
        items.append({"type": "function_call_output", "call_id": call.call_id, "output": note})
    return items


@pytest.mark.parametrize("chunk", [1, 3, 7, 10_000])
async def test_the_tool_loop_is_completed_over_a_stream(endpoint: Endpoint, chunk: int) -> None:
    endpoint.model.push(Reply([Message(TWO_CALLS)], chunk=chunk), Reply([Message(ANSWER)], chunk=chunk))
    conversation: list[ResponseInputItemParam] = [{"role": "user", "content": ASK}]
    events, response = await streamed(endpoint, conversation)

    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == "I will read both.\n"
    calls = calls_of(response)
    assert [json.loads(call.arguments) for call in calls] == [{"path": "a.md"}, {"path": "b.md"}]
    assert [call.name for call in calls] == ["read_note", "read_note"]
    assert len({call.call_id for call in calls} | {call.id for call in calls}) == 4
    done = [event for event in events if event.type == "response.output_item.done"]
    assert [event.output_index for event in done] == [0, 1, 2]
    assert [event.item.to_dict() for event in done] == [item.to_dict() for item in response.output]
    for event in done[1:]:
        deltas = [e.delta for e in events if getattr(e, "item_id", "") == event.item.id and e.type.endswith(".delta")]
        assert "".join(deltas) == event.item.arguments

    events, response = await streamed(endpoint, [*conversation, *call_outputs(response)])
    assert response.output_text == ANSWER
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (100, 20)


async def test_the_tool_loop_is_completed_without_a_stream(endpoint: Endpoint) -> None:
    endpoint.model.push(Reply([Message(TWO_CALLS)]), Reply([Message(ANSWER)]))
    conversation: list[ResponseInputItemParam] = [{"role": "user", "content": ASK}]
    create = endpoint.client.responses.create
    first = await create(model="gpt-5.5", input=conversation, tools=TOOLS)
    assert len(calls_of(first)) == 2
    second = await create(model="gpt-5.5", input=[*conversation, *call_outputs(first)], tools=TOOLS)
    assert second.output_text == ANSWER


async def test_the_tool_loop_is_completed_by_the_stream_helper(endpoint: Endpoint) -> None:
    endpoint.model.push(Reply([Message(TWO_CALLS)], chunk=5), Reply([Message(ANSWER)], chunk=5))
    conversation: list[ResponseInputItemParam] = [{"role": "user", "content": ASK}]
    async with endpoint.client.responses.stream(model="gpt-5.5", input=conversation, tools=TOOLS) as stream:
        first = await stream.get_final_response()
    assert len(calls_of(first)) == 2
    follow_up = [*conversation, *call_outputs(first)]
    async with endpoint.client.responses.stream(model="gpt-5.5", input=follow_up, tools=TOOLS) as stream:
        assert (await stream.get_final_response()).output_text == ANSWER


def texts_of(body: Any, role: str) -> list[str]:
    return [
        part["text"] for item in body["input"] if item.get("role") == role for part in item["content"] if "text" in part
    ]


async def test_the_model_is_shown_the_block_at_the_tail_and_results_in_their_form(endpoint: Endpoint) -> None:
    endpoint.model.push(Reply([Message(TWO_CALLS)]), Reply([Message(ANSWER)]))
    conversation: list[ResponseInputItemParam] = [{"role": "user", "content": ASK}]
    create = endpoint.client.responses.create
    first = await create(model="gpt-5.5", input=conversation, tools=TOOLS, instructions="Be brief.")
    follow_up = [*conversation, *call_outputs(first)]
    await create(model="gpt-5.5", input=follow_up, tools=TOOLS, instructions="Be brief.")

    asked, answered = (request.body for request in endpoint.model.requests)
    developer = texts_of(asked, "developer")[-1]
    assert developer.startswith("Be brief.")
    assert developer.index("Be brief.") < developer.index('{"name":"read_note"')
    assert texts_of(asked, "user")[-1] == ASK
    assert texts_of(answered, "developer")[-1] == developer, "byte-stable, so that the prompt cache hits"
    # Where a conversation is one text, further lines of a message are indented.
    shown = all_shown(answered).replace("\n  ", "\n")
    for call, note in zip(calls_of(first), ("# Alpha\nfirst", '# Beta\n"second"'), strict=True):
        assert f"[tool:{call.call_id}] {note}" in shown
        # With its key, unless these are the model's own words: this one wrote none.
        assert write_call("read_note", call.arguments).partition("{")[2] in shown


async def test_no_built_in_tool_reaches_the_model(endpoint: Endpoint, stack: TestBackend) -> None:
    await endpoint.client.responses.create(model="gpt-5.5", input="hi", tools=TOOLS)
    body = endpoint.model.requests[-1].body
    if stack.text_only:
        assert body.get("tools", []) == []
        assert not [item for item in body["input"] if item.get("type") not in {None, "message"}]
    assert "read_note" not in [tool.get("name") for tool in body.get("tools", [])]


async def test_reasoning_leaves_as_a_reasoning_item(endpoint: Endpoint) -> None:
    endpoint.model.push(Reply([Reasoning(["**Thinking** about it"]), Message("Done.")]))
    _, response = await streamed(endpoint, [{"role": "user", "content": "hi"}], reasoning={"summary": "auto"})
    assert [item.type for item in response.output] == ["reasoning", "message"]
    assert response.output[0].to_dict()["summary"] == [{"type": "summary_text", "text": "**Thinking** about it"}]


async def test_an_image_reaches_the_model(endpoint: Endpoint) -> None:
    pixel = (
        "data:image/png;base64,"
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    content: Any = [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": pixel, "detail": "auto"},
    ]
    await endpoint.client.responses.create(model="gpt-5.5", input=[{"role": "user", "content": content}])
    parts = [part for item in endpoint.model.requests[-1].body["input"] for part in item.get("content", [])]
    assert [part["type"] for part in parts if part["type"] == "input_image"] == ["input_image"]


async def test_a_client_that_disconnects_ends_the_models_stream(endpoint: Endpoint, stack: TestBackend) -> None:
    # 0.89 looks whether anybody still listens when the model says its next word; the others do so at once.
    mute = {"hold_after": 5, "gate": asyncio.Event()} if stack.text_only else {"pace": 0.01}
    endpoint.model.push(Reply([Message("word " * 10_000)], chunk=5, **mute))
    stream = await endpoint.client.responses.create(model="gpt-5.5", input="hi", tools=TOOLS, stream=True)
    async for event in stream:
        if event.type == "response.output_text.delta":
            break
    await stream.close()
    async with asyncio.timeout(PATIENCE):
        await endpoint.model.stream_closed.wait()


ERRORS: list[tuple[Reply | Refusal, set[int]]] = [
    (Refusal(401, {"message": "no key"}), {401, 502}),
    (Refusal(404, {"message": "gone", "code": "model_not_found"}), {400}),
    (Refusal(429, {"message": "slow"}), {429}),
    (Refusal(429, {"type": "usage_limit_reached", "message": "limit"}), {429}),
    (Refusal(503, {"message": "busy", "code": "server_is_overloaded"}), {503}),
    (Refusal(500, {"message": "broken"}), {502}),
    (Reply([], end=Failed("context_length_exceeded", "too long")), {400}),
    (Reply([], end=Failed("insufficient_quota", "no money")), {429}),
]


async def test_a_backend_error_before_the_first_byte_is_an_http_error(endpoint: Endpoint, stack: TestBackend) -> None:
    for (reply, statuses), stream in product(ERRORS, (True, False)):
        endpoint.model.push(reply)
        with pytest.raises(APIStatusError) as caught:
            await endpoint.client.responses.create(model="gpt-5.5", input="hi", tools=TOOLS, stream=stream)
        body = caught.value.response.json()
        assert set(body["error"]) == {"message", "type", "param", "code"}, reply
        assert body["error"]["message"], reply
        # Old programs hide the status of some errors: then it is the backend's fault in general.
        assert caught.value.status_code in statuses | ({502} if not stack.tells_why else set()), reply


async def test_an_answer_cut_by_the_model_is_incomplete(endpoint: Endpoint, stack: TestBackend) -> None:
    endpoint.model.push(Reply([Message("Half an ans")], end=Incomplete("max_output_tokens")))
    if not stack.tells_why:
        # It does not say why the model stopped, so this cannot be told from a lost connection.
        with pytest.raises(APIStatusError):
            await endpoint.client.responses.create(model="gpt-5.5", input="hi")
        return
    response = await endpoint.client.responses.create(model="gpt-5.5", input="hi")
    assert response.output_text == "Half an ans"
    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"


async def test_many_clients_are_served_at_once_and_get_their_own_answers(endpoint: Endpoint) -> None:
    def echo(body: Any) -> Reply:
        return Reply([Message(f"You said {texts_of(body, 'user')[-1]}.")], chunk=2)

    endpoint.model.choose = echo

    async def one(number: int) -> str:
        return (await endpoint.client.responses.create(model="gpt-5.5", input=f"n{number}")).output_text

    answers = await asyncio.gather(*(one(number) for number in range(16)))
    assert answers == [f"You said n{number}." for number in range(16)]


async def test_the_models_are_listed(endpoint: Endpoint) -> None:
    models = [model.id async for model in endpoint.client.models.list()]
    assert any(name.startswith("gpt-5") for name in models)


@pytest.mark.parametrize("calls", ["whole", "live"])
async def test_the_tag_is_never_seen_with_calls_whole_or_live(
    model: ScriptedModel, stack: TestBackend, tmp_path: Path, calls: str
) -> None:
    async with serving(model, stack, tmp_path / "home", calls=calls) as endpoint:
        endpoint.model.push(Reply([Message(TWO_CALLS)], chunk=2))
        events, response = await streamed(endpoint, [{"role": "user", "content": ASK}])
    assert len(calls_of(response)) == 2
    for event in events:
        if event.type == "response.output_text.delta":
            assert OPEN_TAG not in event.delta
            assert CLOSE_TAG not in event.delta
