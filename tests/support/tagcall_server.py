"""A real tagcall server, by default with the codex program from PyPI, in front of a scripted model."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from proxy.server import running_server
from proxy.settings import Settings

from .backends import BACKENDS_UNDER_TEST, TestBackend
from .codex_programs import ROOT, child_environment
from .patience import PATIENCE
from .scripted_model import ScriptedModel


@asynccontextmanager
async def tagcall_server(
    model: ScriptedModel, home: Path, backend: TestBackend = BACKENDS_UNDER_TEST[0], **settings: Any
) -> AsyncIterator[str]:
    """Yields the base URL. What clients see does not depend on the codex program, so the required one is enough."""
    chosen = Settings(port=0, **{**backend.settings(model, home), **settings})
    async with running_server(chosen) as url:
        yield url


@asynccontextmanager
async def tagcall_process(arguments: list[str], home: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """`tagcall` with these arguments in a process of its own, and its base URL."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "proxy.cli", *arguments,
        cwd=ROOT, env=child_environment(home), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE):
            line = (await process.stdout.readline()).decode()
        yield process, line.split()[-1]
    finally:
        if process.returncode is None:
            process.terminate()
            async with asyncio.timeout(PATIENCE):
                await process.wait()
