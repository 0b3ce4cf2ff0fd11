"""A real tagcall server, by default with the codex program from PyPI, in front of a scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from proxy.server import running_server
from proxy.settings import Settings

from .backends import BACKENDS_UNDER_TEST, TestBackend
from .scripted_model import ScriptedModel


@asynccontextmanager
async def tagcall_server(
    model: ScriptedModel, home: Path, backend: TestBackend = BACKENDS_UNDER_TEST[0], **settings: Any
) -> AsyncIterator[str]:
    """Yields the base URL. What clients see does not depend on the codex program, so the required one is enough."""
    chosen = Settings(port=0, **{**backend.settings(model, home), **settings})
    async with running_server(chosen) as url:
        yield url
