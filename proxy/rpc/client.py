"""Requests over a transport: each has a deadline, a few at a time, and all fail at once when the transport ends.

Strategy: a reader that never waits (notifications go to a plain function, answers to futures), and one
writer behind an unbounded queue, so that answering the other side never blocks the reader either. What
bounds the queue is the number of requests in flight.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol, Self

import structlog

from .connection import (
    ErrorResponse,
    Event,
    JsonObject,
    LineSkipped,
    Notification,
    Request,
    RequestId,
    Response,
    RpcConnection,
)

log = structlog.get_logger(__name__)

MAX_IN_FLIGHT = 32
"""Requests. A real app-server refuses the thousandth and goes silent under more."""

OVERLOADED = -32001
METHOD_NOT_FOUND = -32601
OVERLOAD_RETRIES = 7
OVERLOAD_BACKOFF = 0.05
"""Seconds before the first of these retries; each later one doubles it."""

FLUSH_TIMEOUT = 2.0
"""Seconds for lines that are still queued when the client is closed."""


class RpcError(Exception):
    """A request got no result.

    RpcError
    ├── RpcAnswerError    the other side answered with an error
    ├── RpcDeadlineError  it did not answer in time
    └── RpcClosedError    the connection ended
    """


class RpcAnswerError(RpcError):
    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data


class RpcDeadlineError(RpcError):
    """No answer in time. Whether the request was carried out is unknown."""


class RpcClosedError(RpcError):
    """The connection has ended. Whether the request was carried out is unknown."""


class Transport(Protocol):
    """Carries lines. Only the client that owns it may use it."""

    async def receive(self) -> bytes:
        """What has arrived since the last call, at least one byte; b"" once nothing will come any more."""
        ...

    async def send(self, line: bytes) -> None:
        """Hand one line over, waiting while the other side does not read. Raises `ConnectionError` at the end."""
        ...

    async def close(self) -> None:
        """End it for good, in bounded time. May be called again."""
        ...

    def describe_end(self) -> str:
        """For a log or a person: why it ended, as far as is known."""
        ...


class UnknownMethodError(Exception):
    """Raised by the function that answers requests for a method it does not serve."""


def refuse(method: str, params: JsonObject) -> object:
    raise UnknownMethodError(method)


class RpcClient:
    """Carries lines while it is `running`; otherwise nothing is sent or answered.

    `on_notification` and `answer` are called by the reader, so they must not block; `answer` returns the
    result for a request of the other side or raises `UnknownMethodError`.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        on_notification: Callable[[str, JsonObject], None],
        answer: Callable[[str, JsonObject], object] = refuse,
        max_in_flight: int = MAX_IN_FLIGHT,
    ) -> None:
        self._transport = transport
        self._connection = RpcConnection()
        self._on_notification = on_notification
        self._answer = answer
        self._slots = asyncio.Semaphore(max_in_flight)
        self._waiting: dict[RequestId, asyncio.Future[JsonObject]] = {}
        self._outbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._flushed = asyncio.Event()
        self._end: str | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Carries lines beside the body and closes after it. What the body raises comes out as it is."""
        failure: Exception | None = None
        async with asyncio.TaskGroup() as group:
            group.create_task(self.run(), name="rpc connection")
            try:
                yield self
            except Exception as error:  # noqa: BLE001 -- raised below, where the group does not wrap it
                failure = error
            finally:
                await self.close()
        if failure is not None:
            raise failure

    async def run(self) -> None:
        """Carry lines both ways until the transport ends or this is cancelled; then close it."""
        try:
            async with asyncio.TaskGroup() as group:
                writer = group.create_task(self._write(), name="rpc writer")
                await self._read()
                writer.cancel()
        finally:
            self._fail_all(self._transport.describe_end())
            await self._transport.close()

    async def request(self, method: str, params: JsonObject | None = None, *, deadline: float) -> JsonObject:
        """The result, within `deadline` seconds from now, waiting for a free slot included. Raises `RpcError`."""
        try:
            async with asyncio.timeout(deadline), self._slots:
                for retry in range(OVERLOAD_RETRIES):
                    try:
                        return await self._request_once(method, params)
                    except RpcAnswerError as error:
                        if error.code != OVERLOADED:
                            raise
                    await asyncio.sleep(OVERLOAD_BACKOFF * 2**retry * random.uniform(0.5, 1.0))  # noqa: S311 -- jitter is no secret
                return await self._request_once(method, params)
        except TimeoutError:
            raise RpcDeadlineError(f"no answer to {method} within {deadline:g} s") from None

    async def _request_once(self, method: str, params: JsonObject | None) -> JsonObject:
        self._check_open()
        number, line = self._connection.send_request(method, params)
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._outbox.put_nowait(line)
        try:
            return await answer
        finally:
            del self._waiting[number]

    def post(self, method: str, params: JsonObject | None = None) -> None:
        """Send a request whose answer nobody needs: at once, without a slot. Raises `RpcClosedError`."""
        self._check_open()
        self._outbox.put_nowait(self._connection.send_request(method, params)[1])

    def notify(self, method: str, params: JsonObject | None = None) -> None:
        """Send a notification. Raises `RpcClosedError`."""
        self._check_open()
        self._outbox.put_nowait(self._connection.send_notification(method, params))

    async def close(self) -> None:
        """Fail every waiter, send what is queued, end the transport; `run` then returns."""
        self._fail_all("closed on this side")
        self._outbox.put_nowait(None)
        try:
            async with asyncio.timeout(FLUSH_TIMEOUT):
                await self._flushed.wait()
        except TimeoutError:
            log.debug("rpc_flush_timed_out")
        await self._transport.close()

    def _check_open(self) -> None:
        if self._end is not None:
            raise RpcClosedError(self._end)

    def _fail_all(self, reason: str) -> None:
        if self._end is None:
            self._end = reason
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(RpcClosedError(self._end))

    async def _write(self) -> None:
        try:
            while (line := await self._outbox.get()) is not None:
                await self._transport.send(line)
        except ConnectionError as error:
            # The reader sees the same end, and all the lines that came before it.
            log.debug("rpc_write_failed", error=str(error))
        finally:
            self._flushed.set()

    async def _read(self) -> None:
        try:
            while data := await self._transport.receive():
                for event in self._connection.receive_data(data):
                    self._handle(event)
        except OSError as error:  # an end like any other
            log.debug("rpc_read_failed", error=str(error))

    def _handle(self, event: Event) -> None:
        match event:
            case Notification(method, params):
                self._on_notification(method, params)
            case Response(id, result):
                answer = self._waiting.get(id)
                if answer is not None and not answer.done():
                    answer.set_result(result)
            case ErrorResponse(id, code, message, data):
                answer = None if id is None else self._waiting.get(id)
                if answer is not None and not answer.done():
                    answer.set_exception(RpcAnswerError(code, message, data))
            case Request(id, method, params):
                self._outbox.put_nowait(self._reply(id, method, params))
            case LineSkipped(reason, size):
                log.warning("rpc_line_skipped", reason=reason, bytes=size)

    def _reply(self, id: RequestId, method: str, params: JsonObject) -> bytes:
        try:
            return self._connection.send_response(id, self._answer(method, params))
        except UnknownMethodError:
            log.warning("rpc_request_refused", method=method)
            return self._connection.send_error(id, METHOD_NOT_FOUND, f"{method} is not served here")
