"""A tagcall server and the official client for it, in front of a scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from openai import AsyncOpenAI
from openai.types.responses import FunctionToolParam, Response, ResponseFunctionToolCall, ResponseInputItemParam

from .backends import TestBackend
from .patience import PATIENCE
from .published_types import check_published_events
from .responses_grammar import check_events
from .scripted_model import Message, Reply, ScriptedModel, served
from .sdk import openai_client
from .tagcall_server import tagcall_server

TOOLS: list[FunctionToolParam] = [
    {
        "type": "function",
        "name": "read_note",
        "description": "Read a note of the vault.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        "strict": False,
    },
    {"type": "function", "name": "list_notes", "description": None, "parameters": None, "strict": None},
]


@dataclass
class Endpoint:
    client: AsyncOpenAI
    model: ScriptedModel
    url: str

    def say(self, *texts: str) -> None:
        """What the model answers next, a text a time."""
        self.model.push(*(Reply([Message(text)], chunk=3) for text in texts))


@asynccontextmanager
async def serving(model: ScriptedModel, stack: TestBackend, home: Path, **settings: Any) -> AsyncIterator[Endpoint]:
    async with (
        tagcall_server(model, home, stack, **settings) as url,
        openai_client(url, timeout=PATIENCE) as client,
    ):
        yield Endpoint(client, model, url)


class Endpoints:
    """The endpoints that the tests of a module share, one for each backend, with their homes in `folder`.

    What a test has told the model is forgotten before the next. What the server has learnt is not, and codex keeps its
    lanes: a test about either, or about the life of a process, is `serving` one of its own.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, Endpoint] = {}
        self._ends = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._ends.aclose()

    async def of(self, stack: TestBackend) -> Endpoint:
        if stack.name not in self._running:
            model = await self._ends.enter_async_context(served(stack.model()))
            endpoint = serving(model, stack, self._folder / stack.name)
            self._running[stack.name] = await self._ends.enter_async_context(endpoint)
        running = self._running[stack.name]
        running.model.begin_anew()
        return running


def calls_of(response: Response) -> list[ResponseFunctionToolCall]:
    return [item for item in response.output if isinstance(item, ResponseFunctionToolCall)]


async def streamed(
    endpoint: Endpoint, items: Sequence[ResponseInputItemParam], **members: Any
) -> tuple[list[Any], Response]:
    """All events of a streamed Response, held to the whole grammar, and the final Response."""
    asked: Any = {"model": "gpt-5.5", "input": list(items), "tools": TOOLS, **members}
    stream = await endpoint.client.responses.create(**asked, stream=True)
    events: list[Any] = [event async for event in stream]
    sent = [event.to_dict() for event in events]
    check_published_events(sent)
    check_events(sent)
    assert events[-1].type == "response.completed"
    return events, events[-1].response
