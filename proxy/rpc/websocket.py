"""The same lines as WebSocket messages: one frame, one message, without the LF."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

_LOGIN = re.compile(r"^(wss?://)[^/]*@")

# Seconds for the connection and its handshake.
OPEN_TIMEOUT = 10.0
# Seconds for the other side's half of the closing handshake.
CLOSE_TIMEOUT = 2.0
# As a pipe has it: messages of any length, as they are.
_MANNERS: dict[str, Any] = {
    "compression": None,
    "max_size": None,
    "max_queue": None,
    "open_timeout": OPEN_TIMEOUT,
    "close_timeout": CLOSE_TIMEOUT,
}


def without_login(address: str) -> str:
    """An address as it may be told to anybody."""
    return _LOGIN.sub(r"\1", address)


class WebSocketTransport:
    """The `Transport` over a connection to `ws://HOST:PORT`, `wss://...` or `unix:PATH`. Made by `connect`."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    @classmethod
    async def connect(cls, address: str) -> Self:
        """Raises `OSError` when nobody answers as hoped."""
        try:
            if address.startswith("unix:"):
                path = "/" + address.removeprefix("unix:").lstrip("/") if "//" in address else address[5:]
                connection = await unix_connect(path, "ws://localhost/", **_MANNERS)
            else:
                connection = await connect(address, proxy=None, **_MANNERS)
        except (InvalidHandshake, InvalidURI, TimeoutError) as error:
            said = str(error).replace(address, without_login(address))
            raise ConnectionError(f"{urlsplit(without_login(address)).netloc or address}: {said}") from error
        return cls(connection)

    async def hear(self, take: Callable[[bytes], None]) -> None:
        with suppress(ConnectionClosed):
            while True:
                take(await self._connection.recv(decode=False) + b"\n")

    def offer(self, line: bytes) -> bool:
        return False  # the library only sends what it can wait for

    async def send(self, line: bytes) -> None:
        try:
            await self._connection.send(line.removesuffix(b"\n"), text=True)
        except ConnectionClosed as error:
            raise ConnectionResetError(str(error)) from error

    async def close(self) -> None:
        await self._connection.close()

    def abort(self) -> None:
        self._connection.transport.abort()

    async def resident_bytes(self) -> int | None:
        return None

    def describe_end(self) -> str:
        code, reason = self._connection.close_code, self._connection.close_reason
        return f"the connection closed ({code or 'no code'}{': ' + reason if reason else ''})"
