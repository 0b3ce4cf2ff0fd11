"""The tool loop as Pydantic AI runs it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelResponse, PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.support.vault import MODEL, QUESTION, Session, Way

from .openai_python import connected

MODELS: dict[str, type[OpenAIResponsesModel | OpenAIChatModel]] = {
    "responses": OpenAIResponsesModel,
    "chat": OpenAIChatModel,
}


def tools_of(session: Session) -> list[Tool[None]]:
    # Coroutines, because plain functions run in threads, whose order is chance.
    async def search_vault(query: str) -> str:
        """The paths of the notes that contain the query, one a line."""
        return session.call("search_vault", {"query": query})

    async def read_note(path: str) -> str:
        """The text of a note."""
        return session.call("read_note", {"path": path})

    async def list_tags() -> str:
        """All tags of the vault."""
        return session.call("list_tags", {})

    return [Tool(search_vault), Tool(read_note), Tool(list_tags)]


@asynccontextmanager
async def agent_of(session: Session, api: str) -> AsyncIterator[Agent[None, str]]:
    async with connected(session) as client:
        model = MODELS[api](MODEL, provider=OpenAIProvider(openai_client=client))
        yield Agent(model, instructions="Be brief.", tools=tools_of(session))


async def run(session: Session, *, api: str) -> None:
    async with agent_of(session, api) as agent:
        result = await agent.run(QUESTION)
        for message in result.all_messages():
            if isinstance(message, ModelResponse):
                session.say("".join(part.content for part in message.parts if isinstance(part, TextPart)))
        assert result.output.strip() == session.texts[-1]


async def streamed(session: Session, *, api: str) -> None:
    async with agent_of(session, api) as agent, agent.iter(QUESTION) as run:
        async for node in run:
            if not Agent.is_model_request_node(node):
                continue
            text = ""
            async with node.stream(run.ctx) as events:
                async for event in events:
                    match event:
                        case PartStartEvent(part=TextPart(content)):
                            text += content
                        case PartDeltaEvent(delta=TextPartDelta(content_delta)):
                            text += content_delta
                        case _:
                            pass
            session.say(text)
        assert run.result is not None
        assert run.result.output.strip() == session.texts[-1]


WAYS: dict[str, dict[str, Way]] = {
    api: {"run": partial(run, api=api), "streamed": partial(streamed, api=api)} for api in MODELS
}
