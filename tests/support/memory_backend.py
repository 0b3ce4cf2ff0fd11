"""A text backend in memory: each turn gets the next scripted answer, in the pieces that were asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self

from proxy.contracts import BackendEvent, Health, Load, Model, Prompt, TextPiece, TurnEnded, Usage
from proxy.errors import BackendError, TagcallError

Events = Iterable[BackendEvent | BackendError]
Script = str | BackendError | Events | Callable[[Prompt], str | Events]

USAGE = Usage(input_tokens=100, cached_tokens=40, output_tokens=20, reasoning_tokens=5)


def pieces(text: str, size: int) -> list[TextPiece]:
    """`text` cut into pieces of `size` characters; 0 leaves it whole."""
    size = size or max(1, len(text))
    return [TextPiece(text[start : start + size]) for start in range(0, len(text), size)]


@dataclass
class MemoryBackend:
    """Plays `answers` in order. A string is one message; an error is raised where it stands.

    `at_once`: the events of an answer come in one batch, as to a reader who is slower than the model.
    """

    answers: list[Script]
    chunk: int = 0
    prompts: list[Prompt] = field(default_factory=list)
    left_early: int = 0
    open_turns: int = 0
    holds_schemas: bool = False
    heeded: frozenset[str] = frozenset()
    keeps_conversations: bool = False
    problem: str | None = None
    at_once: bool = False

    @property
    def takes_items(self) -> bool:
        return True

    def heeds(self, model: str) -> frozenset[str]:
        return self.heeded

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        pass

    @asynccontextmanager
    async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
        self.prompts.append(prompt)
        script = self.answers.pop(0)
        answer = script(prompt) if callable(script) else script
        ended = False

        async def batches() -> AsyncIterator[Sequence[BackendEvent]]:
            nonlocal ended
            match answer:
                case BackendError():
                    ended = True
                    raise answer
                case str():
                    events: Events = [*pieces(answer, self.chunk), TurnEnded(USAGE)]
                case _:
                    events = answer
            if self.at_once:
                yield [event for event in events if not isinstance(event, BackendError)]
                events = []
            for event in events:
                if isinstance(event, BackendError):
                    ended = True
                    raise event
                yield [event]
            ended = True

        self.open_turns += 1
        try:
            yield batches()
        finally:
            self.open_turns -= 1
            self.left_early += not ended

    def holds(self, schema: str) -> bool:
        return self.holds_schemas

    async def models(self) -> Sequence[Model]:
        return [Model("scripted", 1_700_000_000, "tests")]

    async def health(self) -> Health:
        return Health(TagcallError(self.problem) if self.problem else None, "memory")

    def load(self) -> Load:
        return Load(self.open_turns, starts=1, interrupts=self.left_early)
