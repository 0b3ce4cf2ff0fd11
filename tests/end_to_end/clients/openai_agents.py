"""The tool loop as the OpenAI Agents SDK for Python runs it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from agents import (
    Agent,
    ItemHelpers,
    MessageOutputItem,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    Tool,
    ToolSearchTool,
    function_tool,
)

from tests.support.vault import MODEL, QUESTION, Session, Way

from .openai_python import connected

MODELS: dict[str, type[OpenAIResponsesModel | OpenAIChatCompletionsModel]] = {
    "responses": OpenAIResponsesModel,
    "chat": OpenAIChatCompletionsModel,
}
# Traces would be sent to OpenAI.
QUIET = RunConfig(tracing_disabled=True)


def tools_of(session: Session, *, deferred: bool = False) -> list[Tool]:
    """`deferred`: the SDK calls them only if the server's own search has found them."""

    @function_tool(defer_loading=deferred)
    def search_vault(query: str) -> str:
        """The paths of the notes that contain the query, one a line."""
        return session.call("search_vault", {"query": query})

    @function_tool(defer_loading=deferred)
    def read_note(path: str) -> str:
        """The text of a note."""
        return session.call("read_note", {"path": path})

    @function_tool(defer_loading=deferred)
    def list_tags() -> str:
        """All tags of the vault."""
        return session.call("list_tags", {})

    return [search_vault, read_note, list_tags, *([ToolSearchTool()] if deferred else [])]


@asynccontextmanager
async def agent_of(session: Session, api: str, *, deferred: bool = False) -> AsyncIterator[Agent[None]]:
    async with connected(session) as client:
        model = MODELS[api](MODEL, client)
        tools = tools_of(session, deferred=deferred)
        yield Agent(name="librarian", instructions="Be brief.", tools=tools, model=model)


async def run(session: Session, *, api: str, deferred: bool = False) -> None:
    async with agent_of(session, api, deferred=deferred) as agent:
        result = await Runner.run(agent, QUESTION, run_config=QUIET)
        for item in result.new_items:
            if isinstance(item, MessageOutputItem):
                session.say(ItemHelpers.text_message_output(item))
        assert result.final_output == session.texts[-1]


async def run_streamed(session: Session, *, api: str) -> None:
    async with agent_of(session, api) as agent:
        result = Runner.run_streamed(agent, QUESTION, run_config=QUIET)
        text = ""
        async for event in result.stream_events():
            if event.type != "raw_response_event":
                continue
            if event.data.type == "response.output_text.delta":
                text += event.data.delta
            elif event.data.type == "response.completed":
                session.say(text)
                text = ""
        assert result.final_output == session.texts[-1]


WAYS: dict[str, dict[str, Way]] = {
    api: {"run": partial(run, api=api), "run_streamed": partial(run_streamed, api=api)} for api in MODELS
}
WAYS["responses"]["run_deferred"] = partial(run, api="responses", deferred=True)
