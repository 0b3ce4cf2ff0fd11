"""Two servers in this process behind a real nginx, as the how-to sets it up.

async with nginx_site(folder) as site:
    await site.post("responses", input="hi")
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from proxy.server import running_server
from proxy.settings import Settings

from .codex_programs import ROOT
from .memory_backend import MemoryBackend
from .nginx import nginx
from .ports import free_port

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
async def listening(configuration: str, folder: Path) -> AsyncIterator[str]:
    """nginx on a free port; its base URL."""
    port = free_port()
    async with nginx(configuration.replace("listen 8787", f"listen 127.0.0.1:{port}"), folder):
        yield f"http://127.0.0.1:{port}/v1"
