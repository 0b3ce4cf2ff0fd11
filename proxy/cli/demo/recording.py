"""A backend that remembers what the model was shown and what it wrote."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from msgspec import Struct, field

from prompts import Image, Part, Text

from ...backends.wrapped import WrappedBackend
from ...contracts import BackendEvent, Prompt, TextBackend, TextPiece


class ModelTurn(Struct):
    """One turn of the model: its prompt, and its text in the pieces in which it came."""

    prompt: Prompt
    pieces: list[str] = field(default_factory=list)

    @property
    def conversation(self) -> str:
        """Its messages, as the thread of a conversation holds them, each behind its role."""
        return "\n".join(f"{item.role}: " + "\n".join(map(_shown, item.parts)) for item in self.prompt.items)


class RecordingBackend(WrappedBackend):
    """Any `TextBackend`, with a record of its turns."""

    def __init__(self, backend: TextBackend) -> None:
        super().__init__(backend)
        self._turns: list[ModelTurn] = []

    def take(self) -> list[ModelTurn]:
        """The turns since the last `take`."""
        turns, self._turns = self._turns, []
        return turns

    @asynccontextmanager
    async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
        turn = ModelTurn(prompt)
        self._turns.append(turn)
        async with self._backend.stream(prompt) as batches:
            yield _noted(batches, turn)


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
