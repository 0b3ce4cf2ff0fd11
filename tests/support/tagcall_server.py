"""A real tagcall server with the codex program from PyPI in front of a scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from proxy.server import running_server
from proxy.settings import Settings

from .codex_programs import installed_programs
from .scripted_model import ScriptedModel


@asynccontextmanager
async def tagcall_server(model: ScriptedModel, home: Path, **settings: Any) -> AsyncIterator[str]:
    """Yields the base URL. What clients see does not depend on the codex program, so the required one is enough."""
    program = installed_programs()[0]
    assert program.path is not None, "openai-codex-cli-bin is not installed"
    chosen = Settings(port=0, codex_home=home, upstream=model.url, **{"codex": str(program.path), **settings})
    async with running_server(chosen) as url:
        yield url
