"""llama.cpp's own HTTP server as a process of its own. Needs the extra `model`.

python -m tests.support.llama_server MODEL NAME=VALUE ...    says its address; names of `xllamacpp.CommonParams`
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from .patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class LlamaServer:
    """`url` is where its Chat Completions API is."""

    url: str
    process: asyncio.subprocess.Process

    async def busy_slots(self) -> int:
        """How many answers it is working on."""
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self.url.removesuffix('/v1')}/slots") as response,
        ):
            slots: list[dict[str, Any]] = await response.json()
        return sum(slot["is_processing"] for slot in slots)


@asynccontextmanager
async def llama_server(model: Path, **settings: object) -> AsyncIterator[LlamaServer]:
    """Has started, and is killed in the end."""
    words = [f"{name}={value}" for name, value in settings.items()]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.llama_server", str(model), *words,
        cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            address = (await process.stdout.readline()).decode().strip()
        assert address, "llama.cpp's server does not start"
        yield LlamaServer(f"{address}/v1", process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def main(model: str, *settings: str) -> None:
    import xllamacpp  # noqa: PLC0415 -- an extra that only this process needs

    wanted = xllamacpp.CommonParams()
    wanted.model.path = model
    wanted.hostnames = ["127.0.0.1"]
    wanted.port = 0
    wanted.n_ctx = 2**15
    wanted.n_parallel = 2
    wanted.endpoint_slots = True
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = 1
    wanted.warmup = False
    # In each run a request has the same answer, whatever the temperature.
    wanted.sampling.seed = 1
    wanted.verbosity = -1
    for setting in settings:
        name, _, value = setting.partition("=")
        setattr(wanted, name, type(getattr(wanted, name))(int(value) if value.isdigit() else value))
    server = xllamacpp.Server(wanted)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
