"""Reading a backend's turn in tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prompts import Text
from proxy.contracts import BackendEvent, Prompt, ReasoningPiece, TextBackend, TextPiece


def prompt(text: str = "hi", *, model: str = "some-model", developer: str | None = None) -> Prompt:
    return Prompt(model, developer, (Text(text),))


async def read_turn(backend: TextBackend, asked: Prompt) -> list[BackendEvent]:
    """All events of one turn."""
    async with backend.stream(asked) as batches:
        return [event async for batch in batches for event in batch]


def merged(events: Iterable[BackendEvent]) -> Sequence[BackendEvent]:
    """Adjacent pieces of the same text as one: how a text was cut is chance."""
    out: list[BackendEvent] = []
    for event in events:
        match (out[-1] if out else None, event):
            case (TextPiece(before), TextPiece(text)):
                out[-1] = TextPiece(before + text)
            case (ReasoningPiece(part, before, asked), ReasoningPiece(other, text)) if part == other:
                out[-1] = ReasoningPiece(part, before + text, asked)
            case _:
                out.append(event)
    return out
