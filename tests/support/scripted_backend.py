"""All that a backend takes: this one reads the note that its address names, and says that it did."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from parser import write_call
from proxy.backends import BackendKind, BackendSettings, Finding
from proxy.contracts import BackendEvent, Health, Load, Model, Prompt, TextBackend, TextPiece, TurnEnded, Usage


class ScriptedBackend(AbstractAsyncContextManager["ScriptedBackend"], TextBackend):
    def __init__(self, settings: BackendSettings) -> None:
        self._call = write_call("read", f'{{"note": "{settings.backend.partition(":")[2]}"}}')

    async def __aexit__(self, *exc: object) -> None: ...

    @asynccontextmanager
    async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
        yield self._batches("I have read it." if "[tool:" in str(prompt.parts) else self._call)

    async def _batches(self, text: str) -> AsyncIterator[Sequence[BackendEvent]]:
        yield [TextPiece(text), TurnEnded(Usage(input_tokens=100, output_tokens=9))]

    async def models(self) -> Sequence[Model]:
        return [Model("scripted", 0, "tests")]

    async def health(self) -> Health:
        return Health(None, "1.0")

    def load(self) -> Load:
        return Load()


async def check(settings: BackendSettings) -> Sequence[Finding]:
    return [Finding("note", True, f"{settings.backend} can be read")]


SCRIPTED = BackendKind(help="a script that reads a note", address="NOTE", make=ScriptedBackend, check_before=check)
