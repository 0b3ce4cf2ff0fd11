"""The other end of an `RpcClient`, in memory: a `Transport` that answers as a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import orjson

from proxy.rpc import RpcObject

from .patience import PATIENCE

Handler = Callable[[RpcObject], RpcObject | None]


class RefusedError(Exception):
    """Raised by a handler to answer with an error."""

    def __init__(self, code: int, message: str = "no", data: object = None) -> None:
        self.error = {"code": code, "message": message, "data": data}
        super().__init__(message)


class FakeAppServer:
    """`handlers` answer by method: with a result, by raising `RefusedError`, or not at all when they return None.

    A method without a handler gets an empty result. `received` has every message that came, in order; `size`
    is the memory that it claims to take, `patience` how many seconds a test waits for a request.
    """

    def __init__(self, **handlers: Handler) -> None:
        self.handlers: dict[str, Handler] = dict(handlers)
        self.received: list[dict[str, Any]] = []
        self.patience = PATIENCE
        self.closed = asyncio.Event()
        self.aborted = False
        self.size: int | None = None
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        self._arrival = asyncio.Event()

    def tell(self, method: str, **params: object) -> None:
        """Send a notification."""
        self.write({"method": method, "params": params})

    def write(self, *messages: object) -> None:
        """Send messages as one read."""
        self._lines.put_nowait(b"".join(orjson.dumps(message) + b"\n" for message in messages))

    def end(self) -> None:
        self._lines.put_nowait(b"")

    def requests(self, method: str) -> list[dict[str, Any]]:
        return [message for message in self.received if message.get("method") == method]

    async def wait_for(self, method: str, count: int = 1) -> dict[str, Any]:
        """The newest of `count` requests for `method`."""
        async with asyncio.timeout(self.patience):
            while len(self.requests(method)) < count:
                self._arrival.clear()
                await self._arrival.wait()
        return self.requests(method)[-1]

    # The transport's side

    async def hear(self, take: Callable[[bytes], None]) -> None:
        while data := await self.receive():
            take(data)

    async def receive(self) -> bytes:
        """One read of the client's."""
        return b"" if self.closed.is_set() else await self._lines.get()

    def offer(self, line: bytes) -> bool:
        return False

    async def send(self, line: bytes) -> None:
        if self.closed.is_set():
            raise ConnectionResetError
        message = orjson.loads(line)
        self.received.append(message)
        self._arrival.set()
        if "id" not in message or "method" not in message:
            return
        try:
            handler = self.handlers.get(message["method"])
            result = {} if handler is None else handler(message.get("params") or {})
        except RefusedError as refused:
            self.write({"id": message["id"], "error": refused.error})
        else:
            if result is not None:
                self.write({"id": message["id"], "result": result})

    async def close(self) -> None:
        self.closed.set()
        self.end()

    def abort(self) -> None:
        self.aborted = True
        self.closed.set()
        self.end()

    async def resident_bytes(self) -> int | None:
        return self.size

    def describe_end(self) -> str:
        return "the fake ended"
