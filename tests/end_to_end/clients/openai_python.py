"""The tool loop as a user of openai-python writes it: plain, over a stream, and with the stream helper."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessage, ChatCompletionToolUnionParam
from openai.types.responses import Response, ResponseInputItemParam, ToolParam

from tests.support.patience import PATIENCE
from tests.support.vault import DESCRIPTIONS, MODEL, QUESTION, Session, Way, schema


@asynccontextmanager
async def connected(session: Session) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=session.url, api_key="anything", max_retries=0, timeout=PATIENCE) as client:
        yield client


# Responses

Items = list[ResponseInputItemParam]
RESPONSES_TOOLS: list[ToolParam] = [
    {"type": "function", "name": name, "description": text, "parameters": schema(name), "strict": True}
    for name, text in DESCRIPTIONS.items()
]


async def _complete_responses(session: Session, ask: Callable[[AsyncOpenAI, Items], Awaitable[Response]]) -> None:
    items: Items = [{"role": "user", "content": QUESTION}]
    async with connected(session) as client:
        while True:
            response = await ask(client, items)
            session.say(response.output_text)
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                return
            items += [item.to_dict() for item in response.output]  # type: ignore[misc]  # an output item is an input item
            for call in calls:
                output = session.call(call.name, call.arguments)
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": output})


async def responses_create(session: Session) -> None:
    async def ask(client: AsyncOpenAI, items: Items) -> Response:
        return await client.responses.create(model=MODEL, input=items, tools=RESPONSES_TOOLS)

    await _complete_responses(session, ask)


async def responses_streamed(session: Session) -> None:
    async def ask(client: AsyncOpenAI, items: Items) -> Response:
        text, done = "", []
        async for event in await client.responses.create(model=MODEL, input=items, tools=RESPONSES_TOOLS, stream=True):
            match event.type:
                case "response.output_text.delta":
                    text += event.delta
                case "response.output_item.done":
                    done.append(event.item)
                case "response.completed":
                    assert (event.response.output_text, event.response.output) == (text, done)
                    return event.response
                case _:
                    pass
        raise AssertionError("the stream ended without response.completed")

    await _complete_responses(session, ask)


async def responses_helper(session: Session) -> None:
    async def ask(client: AsyncOpenAI, items: Items) -> Response:
        async with client.responses.stream(model=MODEL, input=items, tools=RESPONSES_TOOLS) as stream:
            return await stream.get_final_response()

    await _complete_responses(session, ask)


# Chat Completions

CHAT_TOOLS: list[ChatCompletionToolUnionParam] = [
    {
        "type": "function",
        "function": {"name": name, "description": text, "parameters": schema(name), "strict": True},
    }
    for name, text in DESCRIPTIONS.items()
]


async def _complete_chat(
    session: Session, ask: Callable[[AsyncOpenAI, list[Any]], Awaitable[ChatCompletionMessage]]
) -> None:
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    async with connected(session) as client:
        while True:
            message = await ask(client, messages)
            session.say(message.content)
            if not message.tool_calls:
                return
            messages.append(message)
            for call in message.tool_calls:
                assert call.type == "function"
                output = session.call(call.function.name, call.function.arguments)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": output})


async def chat_create(session: Session) -> None:
    async def ask(client: AsyncOpenAI, messages: list[Any]) -> ChatCompletionMessage:
        completion = await client.chat.completions.create(model=MODEL, messages=messages, tools=CHAT_TOOLS)
        choice = completion.choices[0]
        assert choice.finish_reason == ("tool_calls" if choice.message.tool_calls else "stop")
        return choice.message

    await _complete_chat(session, ask)


async def chat_streamed(session: Session) -> None:
    async def ask(client: AsyncOpenAI, messages: list[Any]) -> ChatCompletionMessage:
        chunks = await client.chat.completions.create(
            model=MODEL, messages=messages, tools=CHAT_TOOLS, stream=True, stream_options={"include_usage": True}
        )
        return ChatCompletionMessage.model_validate(folded([chunk async for chunk in chunks]))

    await _complete_chat(session, ask)


def folded(chunks: list[ChatCompletionChunk]) -> dict[str, Any]:
    """The message of a stream, put together by hand as people do: by `index`, what is there first, then appended."""
    *chunks, last = chunks
    assert not last.choices
    assert last.usage is not None
    content, calls = "", dict[int, dict[str, Any]]()
    for chunk in chunks:
        delta = chunk.choices[0].delta
        content += delta.content or ""
        for piece in delta.tool_calls or ():
            if piece.index not in calls:
                calls[piece.index] = piece.to_dict()
            elif piece.function is not None:
                calls[piece.index]["function"]["arguments"] += piece.function.arguments or ""
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices[0].finish_reason == ("tool_calls" if calls else "stop")
    assert list(calls) == list(range(len(calls)))
    return {"role": "assistant", "content": content or None, "tool_calls": list(calls.values()) or None}


async def chat_helper(session: Session) -> None:
    async def ask(client: AsyncOpenAI, messages: list[Any]) -> ChatCompletionMessage:
        async with client.chat.completions.stream(model=MODEL, messages=messages, tools=CHAT_TOOLS) as stream:
            return (await stream.get_final_completion()).choices[0].message

    await _complete_chat(session, ask)


WAYS: dict[str, dict[str, Way]] = {
    "responses": {"create": responses_create, "streamed": responses_streamed, "helper": responses_helper},
    "chat": {"create": chat_create, "streamed": chat_streamed, "helper": chat_helper},
}
