"""A server in front of a backend in memory, and a plain HTTP client for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from proxy.server import running_server
from proxy.settings import Settings

from .memory_backend import MemoryBackend, Script
from .patience import PATIENCE


@asynccontextmanager
async def client(*answers: Script, **settings: Any) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    """Yields a session and the server's base URL."""
    backend = MemoryBackend(list(answers))
    async with (
        running_server(Settings(port=0, **settings), backend) as url,
        aiohttp.ClientSession() as session,
    ):
        yield session, url


async def error_of(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """The error object of an OpenAI error body."""
    assert response.content_type == "application/json"
    body = await response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type", "param", "code"}
    error: dict[str, Any] = body["error"]
    return error


async def connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """To the server whose base URL this is, for bytes that no client library would send."""
    return await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port)


async def raw(url: str, request: bytes) -> bytes:
    """All that comes back for `request` before its connection is closed. No more is sent."""
    reader, writer = await connect(url)
    try:
        writer.write(request)
        async with asyncio.timeout(PATIENCE):
            return await reader.read()
    finally:
        writer.close()
