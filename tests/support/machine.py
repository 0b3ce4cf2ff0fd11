"""A tagcall process with a codex program of its own, always on the same port, which can be killed and started again."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from .codex_programs import installed_programs
from .patience import PATIENCE
from .ports import free_port
from .scripted_model import ScriptedModel
from .tagcall_server import tagcall_process


@dataclass
class Machine:
    """In front of `model`, with more `arguments` of `serve`."""

    model: ScriptedModel
    arguments: list[str]
    folder: Path
    port: int = field(default_factory=free_port)
    _running: AsyncExitStack = field(default_factory=AsyncExitStack)
    _process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        program = installed_programs()[0]
        arguments = [
            "serve", "--port", str(self.port), "--upstream", self.model.url, *self.arguments,
            "--codex", str(program.path), "--codex-home", str(self.folder / "codex"),
        ]  # fmt: skip
        self._process, _ = await self._running.enter_async_context(tagcall_process(arguments, self.folder))

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Waits for its end."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(how)
            async with asyncio.timeout(PATIENCE):
                await self._process.wait()
        await self._running.aclose()
