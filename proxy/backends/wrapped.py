"""A backend in front of another, for listeners. It passes on everything that they do not override."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Self

from ..contracts import BackendEvent, Health, Load, Model, Prompt, TextBackend


class WrappedBackend:
    """Any `TextBackend`."""

    def __init__(self, backend: TextBackend) -> None:
        self._backend = backend

    async def __aenter__(self) -> Self:
        await self._backend.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._backend.__aexit__(*exc)

    def stream(self, prompt: Prompt) -> AbstractAsyncContextManager[AsyncIterator[Sequence[BackendEvent]]]:
        return self._backend.stream(prompt)

    def heeds(self, model: str) -> frozenset[str]:
        return self._backend.heeds(model)

    @property
    def takes_items(self) -> bool:
        return self._backend.takes_items

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
