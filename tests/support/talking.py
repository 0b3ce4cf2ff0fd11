"""The official client in front of a running server, in front of a backend in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from openai import AsyncOpenAI

from proxy.contracts import BackendEvent, Prompt
from proxy.server import running_server
from proxy.settings import Settings

from .memory_backend import MemoryBackend, Script
from .parts import text_of_parts
from .sdk import openai_client

TOOLS: list[Any] = [{"type": "function", "name": "read_note", "parameters": {"type": "object"}, "strict": False}]


class GatedBackend(MemoryBackend):
    """Says nothing behind the first event of an answer until `gate` is set."""

    def __init__(self, answers: list[Script], **settings: Any) -> None:
        super().__init__(answers, **settings)
        self.gate = asyncio.Event()
        self.asked = asyncio.Event()
        self.left = asyncio.Event()

    @asynccontextmanager
    async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
        try:
            async with super().stream(prompt) as batches:
                yield self._gated(batches)
        finally:
            self.left.set()

    async def _gated(self, batches: AsyncIterator[Sequence[BackendEvent]]) -> AsyncIterator[Sequence[BackendEvent]]:
        async for batch in batches:
            yield batch
            self.asked.set()
            await self.gate.wait()


class SilentBackend(MemoryBackend):
    """Takes turns and says nothing."""

    def __init__(self) -> None:
        super().__init__([])
        self.asked = asyncio.Event()
        self.left = asyncio.Event()

    @asynccontextmanager
    async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
        async def batches() -> AsyncIterator[Sequence[BackendEvent]]:
            self.asked.set()
            await asyncio.Event().wait()
            yield []

        try:
            yield batches()
        finally:
            self.left.set()


@asynccontextmanager
async def talking(
    *answers: Script, backend: MemoryBackend | None = None, store: str = "memory", **settings: Any
) -> AsyncIterator[tuple[AsyncOpenAI, MemoryBackend]]:
    backend = backend or MemoryBackend(list(answers))
    async with (
        running_server(Settings(port=0, store=store, **settings), backend) as url,
        openai_client(url, "mine") as client,
    ):
        yield client, backend


def shown(backend: MemoryBackend) -> str:
    """The conversation that the model was shown last."""
    return text_of_parts(backend.prompts[-1].parts)
