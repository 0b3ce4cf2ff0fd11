"""The tool loop as a user of anthropic-sdk-python writes it: plain, streamed, with the helper, by the tool runner."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from anthropic import AsyncAnthropic, beta_async_tool
from anthropic.types import Message

from tests.support.messages_grammar import checked
from tests.support.patience import PATIENCE
from tests.support.vault import DESCRIPTIONS, MODEL, QUESTION, Session, Way, schema

LIMIT = 4096
TOOLS: list[Any] = [
    {"name": name, "description": text, "input_schema": schema(name), "strict": True}
    for name, text in DESCRIPTIONS.items()
]


@asynccontextmanager
async def connected(session: Session) -> AsyncIterator[AsyncAnthropic]:
    # It puts `/v1` before each path itself.
    url = session.url.removesuffix("/v1")
    async with AsyncAnthropic(base_url=url, api_key="anything", max_retries=0, timeout=PATIENCE) as client:
        yield client


async def _complete(session: Session, ask: Callable[[AsyncAnthropic, list[Any]], Awaitable[Message]]) -> None:
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    async with connected(session) as client:
        while True:
            message = await ask(client, messages)
            session.say("".join(block.text for block in message.content if block.type == "text"))
            calls = [block for block in message.content if block.type == "tool_use"]
            assert message.stop_reason == ("tool_use" if calls else "end_turn")
            if not calls:
                return
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": call.id,
                    "content": session.call(call.name, json.dumps(call.input)),
                }
                for call in calls
            ]
            messages += [message.to_param(), {"role": "user", "content": results[::-1]}]


async def create(session: Session) -> None:
    async def ask(client: AsyncAnthropic, messages: list[Any]) -> Message:
        return await client.messages.create(model=MODEL, max_tokens=LIMIT, messages=messages, tools=TOOLS)

    await _complete(session, ask)


async def streamed(session: Session) -> None:
    async def ask(client: AsyncAnthropic, messages: list[Any]) -> Message:
        stream = await client.messages.create(
            model=MODEL, max_tokens=LIMIT, messages=messages, tools=TOOLS, stream=True
        )
        return Message.model_validate(checked([event.to_dict() async for event in stream]))

    await _complete(session, ask)


async def helper(session: Session) -> None:
    async def ask(client: AsyncAnthropic, messages: list[Any]) -> Message:
        async with client.messages.stream(model=MODEL, max_tokens=LIMIT, messages=messages, tools=TOOLS) as stream:
            text = "".join([piece async for piece in stream.text_stream])
            message = await stream.get_final_message()
        assert text == "".join(block.text for block in message.content if block.type == "text")
        return Message.model_validate(message.model_dump())

    await _complete(session, ask)


async def tool_runner(session: Session) -> None:
    @beta_async_tool(description=DESCRIPTIONS["search_vault"])
    async def search_vault(query: str) -> str:
        return session.call("search_vault", json.dumps({"query": query}))

    @beta_async_tool(description=DESCRIPTIONS["read_note"])
    async def read_note(path: str) -> str:
        return session.call("read_note", json.dumps({"path": path}))

    @beta_async_tool(description=DESCRIPTIONS["list_tags"])
    async def list_tags() -> str:
        return session.call("list_tags", "{}")

    async with connected(session) as client:
        runner = client.beta.messages.tool_runner(
            model=MODEL,
            max_tokens=LIMIT,
            messages=[{"role": "user", "content": QUESTION}],
            tools=[search_vault, read_note, list_tags],
        )
        async for message in runner:
            session.say("".join(block.text for block in message.content if block.type == "text"))


WAYS: dict[str, dict[str, Way]] = {
    "messages": {"create": create, "streamed": streamed, "helper": helper, "tool_runner": tool_runner}
}
