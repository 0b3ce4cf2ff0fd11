"""The tool loop over Realtime as a user of openai-python writes it, in the words of GA and in those of the beta."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from openai import AsyncOpenAI

from tests.support.vault import DESCRIPTIONS, MODEL, QUESTION, Session, Way, schema

TOOLS = [
    {"type": "function", "name": name, "description": text, "parameters": schema(name)}
    for name, text in DESCRIPTIONS.items()
]
SETTINGS: dict[str, dict[str, Any]] = {
    "ga": {"type": "realtime", "output_modalities": ["text"], "tools": TOOLS},
    "beta": {"modalities": ["text"], "tools": TOOLS},
}
DELTAS = {"response.output_text.delta", "response.text.delta"}


@asynccontextmanager
async def connected(url: str, version: str) -> AsyncIterator[Any]:
    """A connection whose session is set up; its last event was `session.updated`."""
    socket_url = url.replace("http://", "ws://")
    async with AsyncOpenAI(base_url=url, websocket_base_url=socket_url, api_key="anything") as client:
        realtime: Any = client.realtime if version == "ga" else client.beta.realtime
        async with realtime.connect(model=MODEL) as connection:
            assert (await connection.recv()).type == "session.created"
            await connection.session.update(session=SETTINGS[version])
            assert (await connection.recv()).type == "session.updated"
            yield connection


async def answered(connection: Any) -> tuple[Any, str]:
    """The response that comes next, whole, and the text of its deltas."""
    text = ""
    async for event in connection:
        assert event.type != "error", event
        if event.type in DELTAS:
            text += event.delta
        elif event.type == "response.done":
            return event.response, text
    raise AssertionError("the connection ended within a response")


async def ask(connection: Any, question: str) -> None:
    content = [{"type": "input_text", "text": question}]
    await connection.conversation.item.create(item={"type": "message", "role": "user", "content": content})
    await connection.response.create()


async def _complete(session: Session, version: str) -> None:
    async with connected(session.url, version) as connection:
        await ask(connection, QUESTION)
        while True:
            response, text = await answered(connection)
            session.say(text)
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                return
            for call in calls:
                output = session.call(call.name, call.arguments)
                item = {"type": "function_call_output", "call_id": call.call_id, "output": output}
                await connection.conversation.item.create(item=item)
            await connection.response.create()


async def ga(session: Session) -> None:
    await _complete(session, "ga")


async def beta(session: Session) -> None:
    await _complete(session, "beta")


WAYS: dict[str, dict[str, Way]] = {"realtime": {"ga": ga, "beta": beta}}
