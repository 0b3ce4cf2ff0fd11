"""A backend that remembers what the model was shown and what it wrote."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self

from prompts import Image, Part, Text

from ...contracts import BackendEvent, Health, Load, Model, Prompt, TextBackend, TextPiece


@dataclass(slots=True)
class ModelTurn:
    """One turn of the model: its prompt, and its text in the pieces in which it came."""

    prompt: Prompt
    pieces: list[str] = field(default_factory=list)

    @property
    def conversation(self) -> str:
        return "\n".join(_shown(part) for part in self.prompt.parts)


class RecordingBackend:
    """Any `TextBackend`, with a record of its turns."""

    def __init__(self, backend: TextBackend) -> None:
        self._backend = backend
        self._turns: list[ModelTurn] = []

    def take(self) -> list[ModelTurn]:
        """The turns since the last `take`."""
        turns, self._turns = self._turns, []
        return turns

    async def __aenter__(self) -> Self:
        await self._backend.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._backend.__aexit__(*exc)

    @asynccontextmanager
    async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
        turn = ModelTurn(prompt)
        self._turns.append(turn)
        async with self._backend.stream(prompt) as batches:
            yield _noted(batches, turn)

    @property
    def heeds(self) -> frozenset[str]:
        return self._backend.heeds

    @property
    def keeps_conversations(self) -> bool:
        return self._backend.keeps_conversations

    def holds(self, schema: str) -> bool:
        return self._backend.holds(schema)

    async def models(self) -> Sequence[Model]:
        return await self._backend.models()

    async def health(self) -> Health:
        return await self._backend.health()

    def load(self) -> Load:
        return self._backend.load()


async def _noted(
    batches: AsyncIterator[Sequence[BackendEvent]], turn: ModelTurn
) -> AsyncIterator[Sequence[BackendEvent]]:
    async for batch in batches:
        turn.pieces.extend(event.text for event in batch if isinstance(event, TextPiece))
        yield batch


def _shown(part: Part) -> str:
    match part:
        case Text(text):
            return text
        case Image():
            return "[image]"
