"""A WebSocket client for tests: what is sent, what comes, and what the server was shown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from proxy.server import running_server
from proxy.settings import Settings

from .memory_backend import MemoryBackend, Script
from .patience import PATIENCE


class Talk:
    """One connection. `received` are all events, in order."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.received: list[dict[str, Any]] = []

    async def say(self, type: str, **members: object) -> None:
        await self.socket.send_json({"type": type, **members})

    async def hear(self) -> dict[str, Any]:
        """The next event."""
        async with asyncio.timeout(PATIENCE):
            event: dict[str, Any] = json.loads(await self.socket.receive_str())
        self.received.append(event)
        return event

    async def hear_until(self, *types: str) -> list[dict[str, Any]]:
        """The next events, up to one of these types."""
        events = [await self.hear()]
        while events[-1]["type"] not in types:
            events.append(await self.hear())
        return events

    async def ended(self) -> int | None:
        """The code that the connection was closed with."""
        async with asyncio.timeout(PATIENCE):
            while (await self.socket.receive()).type not in {
                aiohttp.WSMsgType.CLOSE,
                aiohttp.WSMsgType.CLOSED,
                aiohttp.WSMsgType.CLOSING,
                aiohttp.WSMsgType.ERROR,
            }:
                pass
        return self.socket.close_code


@asynccontextmanager
async def talk(url: str, path: str, headers: Mapping[str, str] | None = None) -> AsyncIterator[Talk]:
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(url + path, headers=headers, max_msg_size=0) as socket,
    ):
        yield Talk(socket)


@asynccontextmanager
async def socket_to(
    path: str,
    *answers: Script,
    backend: MemoryBackend | None = None,
    headers: Mapping[str, str] | None = None,
    store: str = "memory",
    **settings: Any,
) -> AsyncIterator[tuple[Talk, MemoryBackend]]:
    """A server with a backend in memory, and one connection to it."""
    backend = backend or MemoryBackend(list(answers))
    async with running_server(Settings(port=0, store=store, **settings), backend) as url:
        async with talk(url, path, headers) as open_talk:
            yield open_talk, backend
