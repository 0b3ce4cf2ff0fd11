"""Requests over a transport. Each has a deadline, a few run at a time, and all fail when the transport ends.

Strategy: the reader never waits. Notifications go to a plain function, answers to futures. A writer stands behind a
queue, for lines that the transport does not take at once, so answering the other side does not block the reader either.
`RequestLimit` bounds our requests in that queue. If the other side asks and does not read the answers, it is cut off.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Self

import structlog
from structlog.typing import FilteringBoundLogger

from .connection import (
    Condense,
    ErrorResponse,
    LineSkipped,
    Notification,
    Request,
    RequestId,
    Response,
    RpcConnection,
    RpcObject,
    keep_all,
)
from .errors import RpcAnswerError, RpcBusyError, RpcClosedError, RpcDeadlineError, UnknownMethodError
from .transport import Transport

log: FilteringBoundLogger = structlog.get_logger(__name__)

# Requests at a time. A real app-server refuses the thousandth, and goes silent under more.
MAX_IN_FLIGHT = 32
# Requests that may wait for a place. A request takes a few milliseconds.
MAX_WAITING = 256
# Seconds that a request waits for its place.
MAX_WAIT = 10.0

# JSON-RPC's codes for "overloaded, try again later", and for a method that is not served.
OVERLOADED = -32001
METHOD_NOT_FOUND = -32601
# Times that a request is sent again after the first of these codes.
OVERLOAD_RETRIES = 7
# Seconds before the first retry. Each later one waits twice as long.
OVERLOAD_BACKOFF = 0.05

# Lines that the other side may leave unread. At most 32 of them are requests, all others are answers.
MAX_UNSENT = 4096
# Seconds in which queued lines may leave when the client is closed.
FLUSH_TIMEOUT = 2.0


def refuse(method: str, params: RpcObject) -> object:
    raise UnknownMethodError(method)


async def _within(deadline: float, method: str, answer: Awaitable[RpcObject]) -> RpcObject:
    try:
        async with asyncio.timeout(deadline):
            return await answer
    except TimeoutError:
        raise RpcDeadlineError(f"no answer to {method} within {deadline:g} s") from None


def ignore(reason: str) -> None:
    pass


def nothing() -> None:
    pass


class RequestLimit:
    """Places for a few requests at a time, with a short queue in front: first come, first served.

    Each `take` wants a `free`.
    """

    def __init__(self, places: int = MAX_IN_FLIGHT, queue: int = MAX_WAITING, patience: float = MAX_WAIT) -> None:
        self._places = asyncio.Semaphore(places)
        self._queue = queue
        self._patience = patience
        self._waiting = 0

    @property
    def is_reached(self) -> bool:
        return self._places.locked()

    async def take(self) -> None:
        """Raises `RpcBusyError` when the queue is full or does not move."""
        if self._places.locked():
            await self._wait()
        else:
            await self._places.acquire()  # at once

    def free(self) -> None:
        self._places.release()

    async def _wait(self) -> None:
        if self._waiting >= self._queue:
            raise RpcBusyError(f"{self._waiting} requests wait already")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._patience):
                await self._places.acquire()
        except TimeoutError:
            raise RpcBusyError(f"no place became free within {self._patience:g} s") from None
        finally:
            self._waiting -= 1


class SkipCounter:
    """Counts lines that are passed over. The first of each kind is a warning, all others are for `debug`.

    `event` is the name under which they are logged.
    """

    def __init__(self, event: str) -> None:
        self.counts: Counter[str] = Counter()
        self._event = event

    def add(self, kind: str, **details: object) -> None:
        self.counts[kind] += 1
        (log.warning if self.counts[kind] == 1 else log.debug)(self._event, kind=kind, **details)


class RpcClient:
    """Carries lines while it is `running`. Before and after that, nothing is read or answered.

    The reader calls `on_notification`, `answer` and `on_end`, so they must not block. `answer` returns the result for a
    request of the other side, or raises `UnknownMethodError`. `on_end` is called once, with the reason, as soon as
    requests are no longer possible. The transport is closed after that, which may take a while. `condense` may join
    messages that were read together, and `on_read` is called after all of these. Neither raises.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        on_notification: Callable[[str, RpcObject], None],
        answer: Callable[[str, RpcObject], object] = refuse,
        on_end: Callable[[str], None] = ignore,
        on_read: Callable[[], None] = nothing,
        condense: Condense = keep_all,
        limit: RequestLimit | None = None,
    ) -> None:
        self._now = asyncio.get_running_loop().time
        self.heard = self._now()
        """When the last bytes came, in the loop's time."""
        self.skipped = SkipCounter("rpc_line_skipped")
        self._transport = transport
        self._connection = RpcConnection(condense)
        self._on_notification = on_notification
        self._answer = answer
        self._on_end = on_end
        self._on_read = on_read
        self._limit = limit or RequestLimit()
        self._waiting: dict[RequestId, asyncio.Future[RpcObject]] = {}
        self._outbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._flushed = asyncio.Event()
        self._end: str | None = None

    # Its life

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Carries lines beside the body and closes after it. Errors of the body are raised as they are."""
        failure: Exception | None = None
        async with asyncio.TaskGroup() as group:
            group.create_task(self._run(), name="rpc connection")
            try:
                yield self
            except Exception as error:  # noqa: BLE001 -- raised below, where the group does not wrap it
                failure = error
            finally:
                await self.close()
        if failure is not None:
            raise failure

    async def close(self) -> None:
        """Fail every waiter, send what is queued, end the transport."""
        self._end_with("closed on this side")
        self._outbox.put_nowait(None)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_TIMEOUT):
                    await self._flushed.wait()
        finally:
            await self._transport.close()

    def abort(self, reason: str) -> None:
        """Fail every waiter and end the transport at once, if the other side does not react."""
        self._end_with(reason)
        self._transport.abort()

    async def _run(self) -> None:
        """Carry lines both ways until the transport ends."""
        try:
            async with asyncio.TaskGroup() as group:
                writer = group.create_task(self._write(), name="rpc writer")
                await self._read()
                writer.cancel()
        finally:
            self._end_with(self._transport.describe_end())
            await self._transport.close()

    def _end_with(self, reason: str) -> None:
        if self._end is not None:
            return
        self._end = reason
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(RpcClosedError(reason))
        self._on_end(reason)

    def _check_open(self) -> None:
        if self._end is not None:
            raise RpcClosedError(self._end)

    # Asking

    async def request(
        self, method: str, params: RpcObject | None = None, *, deadline: float, traceparent: str = ""
    ) -> RpcObject:
        """The result, within `deadline` seconds of the first sending. Raises `RpcError`.

        The request waits for a place, and is sent again while the other side is overloaded.
        """
        return await (await self.ask(method, params, deadline=deadline, traceparent=traceparent))

    @property
    def takes_at_once(self) -> bool:
        """Whether a request would be sent without a wait."""
        return self._end is None and not self._limit.is_reached

    async def ask(
        self, method: str, params: RpcObject | None = None, *, deadline: float, traceparent: str = ""
    ) -> Awaitable[RpcObject]:
        """Send a request once it has a place. Always await the answer that this returns: it is that of `request`."""
        await self._limit.take()
        try:
            sent = self._send(method, params, traceparent)
        except Exception:
            self._limit.free()
            raise
        return self._result(sent, deadline, method, params, traceparent)

    async def _result(
        self, sent: Awaitable[RpcObject], deadline: float, method: str, params: RpcObject | None, traceparent: str
    ) -> RpcObject:
        try:
            return await _within(deadline, method, self._patiently(sent, method, params, traceparent))
        finally:
            self._limit.free()

    async def request_at_once(self, method: str, params: RpcObject | None = None, *, deadline: float) -> RpcObject:
        """As `request`, but past the limit and without retries. For questions to which any answer will do."""
        return await _within(deadline, method, self._send(method, params))

    async def _patiently(
        self, answer: Awaitable[RpcObject], method: str, params: RpcObject | None, traceparent: str
    ) -> RpcObject:
        for retry in range(OVERLOAD_RETRIES):
            try:
                return await answer
            except RpcAnswerError as error:
                if error.code != OVERLOADED:
                    raise
            await asyncio.sleep(OVERLOAD_BACKOFF * 2**retry * random.uniform(0.5, 1.0))  # noqa: S311 -- jitter is no secret
            answer = self._send(method, params, traceparent)
        return await answer

    def _send(self, method: str, params: RpcObject | None, traceparent: str = "") -> Awaitable[RpcObject]:
        """Send a request. Always await the answer that this returns."""
        self._check_open()
        number, line = self._connection.send_request(method, params, traceparent)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        self._put(line)
        return self._answer_to(number)

    async def _answer_to(self, number: int) -> RpcObject:
        try:
            return await self._waiting[number]
        finally:
            del self._waiting[number]

    def post(self, method: str, params: RpcObject | None = None) -> None:
        """Send a request whose answer nobody needs, at once and past the limit. Raises `RpcClosedError`."""
        self._check_open()
        self._put(self._connection.send_request(method, params)[1])

    def notify(self, method: str, params: RpcObject | None = None) -> None:
        """Send a notification. Raises `RpcClosedError`."""
        self._check_open()
        self._put(self._connection.send_notification(method, params))

    def _put(self, line: bytes) -> None:
        if self._outbox.empty() and self._transport.offer(line):
            return
        self._outbox.put_nowait(line)
        if self._outbox.qsize() > MAX_UNSENT:
            self.abort("it asks and does not read the answers")

    async def _write(self) -> None:
        try:
            while (line := await self._outbox.get()) is not None:
                await self._transport.send(line)
        except ConnectionError as error:
            # The reader sees the same end, behind all lines that came before it.
            log.debug("rpc_write_failed", error=str(error))
        finally:
            self._flushed.set()

    # Hearing

    async def _read(self) -> None:
        try:
            await self._transport.hear(self._hear)
        except OSError as error:  # the end, like any other
            log.debug("rpc_read_failed", error=str(error))

    def _hear(self, data: bytes) -> None:
        self.heard = self._now()
        for event in self._connection.receive_data(data):
            try:
                if isinstance(event, Notification):  # most are
                    self._on_notification(event.method, event.params)
                else:
                    self._handle(event)
            except Exception:  # one line must not end the connection of all turns
                log.exception("rpc_line_crashed")
        self._on_read()

    def _handle(self, event: Request | Response | ErrorResponse | LineSkipped) -> None:
        match event:
            case Response(id, result):
                answer = self._waiting.get(id)
                if answer is not None and not answer.done():
                    answer.set_result(result)
            case ErrorResponse(id, code, message, data):
                answer = None if id is None else self._waiting.get(id)
                if answer is not None and not answer.done():
                    answer.set_exception(RpcAnswerError(code, message, data))
            case Request(id, method, params):
                self._put(self._reply(id, method, params))
            case LineSkipped(reason, size):
                self.skipped.add(reason, bytes=size)

    def _reply(self, id: RequestId, method: str, params: RpcObject) -> bytes:
        try:
            return self._connection.send_response(id, self._answer(method, params))
        except UnknownMethodError:
            log.warning("rpc_request_refused", method=method)
            return self._connection.send_error(id, METHOD_NOT_FOUND, f"{method} is not served here")
