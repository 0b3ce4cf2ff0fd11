"""Half blocks by the half megabyte, and somebody else beside them. Told by what comes first, not by a clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from parser import write_call
from proxy.contracts import BackendEvent, Prompt
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.memory_backend import MemoryBackend, Script
from tests.support.patience import PATIENCE

HALF = '<tool_call>{"name": "read_note", "arguments": {"path": "a'
FLOOD = f"{HALF}\n" * (250_000 // len(HALF))
TOOLS = [{"type": "function", "name": "read_note", "parameters": {"type": "object"}, "strict": False}]
FLOODS = 4


class AskedBackend(MemoryBackend):
    """`flooded` is set when all floods were asked of it."""

    def __init__(self, answers: list[Script]) -> None:
        super().__init__(answers)
        self.flooded = asyncio.Event()

    @asynccontextmanager
    async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
        async with super().stream(prompt) as batches:
            if len(self.prompts) >= FLOODS:
                self.flooded.set()
            yield batches


def answered(prompt: Prompt) -> str:
    """To whoever asks for it a flood, to whoever sends one a call without a key; a word to all others."""
    asked = "".join(getattr(part, "text", "") for part in prompt.parts)
    if "Flood me." in asked:
        return FLOOD
    return write_call("read_note", '{"path": "b.md"}') if len(asked) > 10_000 else "Hello."


@pytest.mark.parametrize("text", ["Flood me.", FLOOD], ids=["in answers", "in requests"])
async def test_a_flood_of_half_blocks_holds_up_nobody_else(text: str) -> None:
    backend = AskedBackend([answered] * 100)
    over: list[str] = []

    async def ask(session: aiohttp.ClientSession, url: str, who: str, text: str) -> None:
        body: dict[str, Any] = {"model": "m", "input": text, "tools": TOOLS}
        async with session.post(url, json=body, headers={"Authorization": f"Bearer {who}"}) as response:
            assert response.status == 200
            await response.read()
        over.append(who)

    settings = Settings(port=0, store="none")
    async with running_server(settings, backend) as base, aiohttp.ClientSession() as session:
        url = f"{base}/responses"
        async with asyncio.timeout(10 * PATIENCE), asyncio.TaskGroup() as group:
            for _ in range(FLOODS):
                group.create_task(ask(session, url, "flood", text))
            await backend.flooded.wait()
            for _ in range(3):
                await ask(session, url, "other", "hi")
    # Whoever came last, after all the floods had begun, was answered three times before the second of them was over.
    assert over[:3].count("other") >= 2
    assert sorted(over) == [*["flood"] * FLOODS, *["other"] * 3]
