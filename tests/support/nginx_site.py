"""Two servers behind a real nginx, as the how-to sets it up: in this process, or two processes that share a Redis.

async with nginx_site(folder) as site:
    await site.post("responses", input="hi")
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from proxy.server import running_server
from proxy.settings import Settings

from .codex_programs import ROOT
from .machine import Machine
from .memory_backend import MemoryBackend
from .nginx import nginx
from .ports import free_port
from .redis_server import redis_server
from .scripted_model import ScriptedModel

CONFIGURATION = (ROOT / "docs/howto/many-machines/nginx.conf").read_text("utf-8")

# As they are called there, at the port that they have.
NAMES = ("tagcall-1:8787", "tagcall-2:8787")


@dataclass
class NginxSite:
    """`url` is the base URL that nginx has; `backends` play what a test gives them."""

    url: str
    session: aiohttp.ClientSession
    backends: list[MemoryBackend]

    @property
    def asked(self) -> tuple[int, ...]:
        """How many turns each has been asked for."""
        return tuple(len(backend.prompts) for backend in self.backends)

    async def post(self, path: str, **body: Any) -> tuple[int, Any]:
        async with self.session.post(f"{self.url}/{path}", json={"model": "m", **body}) as response:
            return response.status, await response.json()


def address_of(url: str) -> str:
    return url.removeprefix("http://").removesuffix("/v1")


@asynccontextmanager
async def nginx_site(folder: Path, store: str = "memory") -> AsyncIterator[NginxSite]:
    async with AsyncExitStack() as stack:
        configuration, backends = CONFIGURATION, [MemoryBackend([]) for _ in NAMES]
        for name, backend in zip(NAMES, backends, strict=True):
            url = await stack.enter_async_context(running_server(Settings(port=0, store=store), backend))
            configuration = configuration.replace(name, address_of(url))
        base = await stack.enter_async_context(listening(configuration, folder))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield NginxSite(base, session, backends)


@asynccontextmanager
async def machines_behind_nginx(
    configuration: str, models: Sequence[ScriptedModel], folder: Path
) -> AsyncIterator[tuple[str, list[Machine]]]:
    """The base URL of nginx, and a process in front of each of `models`."""
    async with redis_server() as redis, AsyncExitStack() as stack:
        shared = ["--store", redis.url, "--call-key-secret", str(folder / "call-key")]
        machines = []
        for number, (name, model) in enumerate(zip(NAMES, models, strict=True), 1):
            home = folder / f"machine-{number}"
            home.mkdir()
            machine = Machine(model, shared, home)
            await machine.start()
            stack.push_async_callback(machine.stop)
            configuration = configuration.replace(name, f"127.0.0.1:{machine.port}")
            machines.append(machine)
        yield await stack.enter_async_context(listening(configuration, folder)), machines


@asynccontextmanager
async def listening(configuration: str, folder: Path) -> AsyncIterator[str]:
    """nginx on a free port; its base URL."""
    port = free_port()
    async with nginx(configuration.replace("listen 8787", f"listen 127.0.0.1:{port}"), folder):
        yield f"http://127.0.0.1:{port}/v1"
