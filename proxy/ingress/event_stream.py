"""One event stream to a client: opened late, kept alive, each piece in one write.

The head waits for the first batch, so that a refusal of the backend becomes an HTTP error. It waits at most
`HEAD_WAIT`, because clients give up on silent servers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import NoReturn

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from ..errors import ApiError
from ..wire.builder import AnswerBuilder, WireEvent
from ..wire.sse import comment
from .state import REQUEST_LOG, WARNING, WIRE_FORMAT, WRITTEN

# Seconds until the head leaves without a first batch (clients expect a sign within about 2).
HEAD_WAIT = 2.0

# Seconds of silence after which a sign of life is sent. Clients and proxies cut a silent stream after 30 or more, those
# of an impatient API sooner.
HEARTBEAT = 10.0
SHORT_HEARTBEAT = 2.0

# Seconds that a write may wait for its client to read.
WRITE_DEADLINE = 15.0

# Bytes after which the writer waits until the client has read, as aiohttp does.
DRAINED_AFTER = 1 << 16

# Events that are encoded in one step. The last events of an answer repeat all of it. If it has more bytes than this,
# they are encoded one by one, and others are served in between.
ENCODED_AT_ONCE = 256
LONG_ANSWER = 1 << 20

# No proxy may store, compress or buffer an event stream.
STREAM_HEADERS = {
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
}

# Events that are made elsewhere. Each batch holds the bytes of whole events that came together.
Subscription = AsyncGenerator[list[bytes], None]


class _EventStreamResponse(web.StreamResponse):
    """Its head leaves in one write with the first events; in two, if aiohttp does not know this attribute."""

    _send_headers_immediately = False


class EventStream:
    """While it is `open`, `write` pieces of whole events, and `end` it. `begun`: a head is leaving or has left.

    It has the form of the request's API. Each method may raise `ConnectionError`: the client has gone, or has stopped
    reading.
    """

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self.format = request[WIRE_FORMAT]
        self._opening: Callable[[], Sequence[bytes]] = tuple
        self._pause = SHORT_HEARTBEAT if self.format.impatient else HEARTBEAT
        self._written = request.get(WRITTEN)
        self._lock = asyncio.Lock()
        self._now = asyncio.get_running_loop().time
        self._written_at = 0.0
        self._writing = False
        self._response: web.StreamResponse | None = None
        self._writer: AbstractStreamWriter | None = None
        # Chunks are written to this once the head has left.
        self._transport: asyncio.Transport | None = None
        self._drained_at = 0  # bytes
        self.begun = False
        self.sent = 0
        """Bytes."""

    @property
    def reply(self) -> web.StreamResponse:
        """The response that aiohttp wants once the stream is over."""
        return self._response or web.Response(status=499)

    @asynccontextmanager
    async def open(
        self,
        opening: Callable[[], Sequence[bytes]] = tuple,
        pulse: Callable[[], Sequence[bytes]] = tuple,
    ) -> AsyncIterator[None]:
        """Keeps the stream alive. `opening` makes the events that leave with the head. `pulse` makes the sign of life,
        if the format's own will not do.
        """
        self._opening = opening
        alive: list[asyncio.Task[None]] = []

        def keep_alive() -> None:
            name = f"keep alive {self._request[REQUEST_LOG].id}"
            alive.append(group.create_task(self._keep_alive(pulse), name=name))

        # Begun late: by then most answers have begun, and many are over.
        timer = asyncio.get_running_loop().call_later(HEAD_WAIT, keep_alive)
        try:
            async with asyncio.TaskGroup() as group:
                try:
                    yield
                finally:
                    timer.cancel()
                for task in alive:
                    task.cancel()
        except BaseExceptionGroup as errors:
            errors.__traceback__ = None  # it would hold its frame, and the frame holds it
            # If the client left and we have a fault, the fault is raised.
            raise min(errors.exceptions, key=lambda error: isinstance(error, ConnectionError)) from None

    async def _begin(self) -> web.StreamResponse:
        """The prepared response. Its head leaves with the opening events, or with the next write if there are none."""
        self.begun = True
        async with self._lock:
            if self._response is None:
                response = _EventStreamResponse(headers={**STREAM_HEADERS, "Content-Type": self.format.content_type})
                self._writer = await response.prepare(self._request)
                self._response = response
                self._written_at = self._now()
                if opening := self._opening():
                    await self._send(response, opening)
        return self._response

    async def write(self, pieces: Sequence[bytes]) -> None:
        response = await self._begin() if self._response is None else self._response
        self._written_at = self._now()
        self._writing = True
        await self._send(response, pieces)
        self._writing = False

    async def end(self) -> None:
        """Sends the end of the stream, behind a whole answer."""
        self._request[REQUEST_LOG].left_whole()  # before the end, because some clients hang up at `[DONE]`
        if end := self.format.end:
            await self.write([end])

    async def _send(self, response: web.StreamResponse, pieces: Sequence[bytes]) -> None:
        for piece in filter(None, pieces):
            self.sent += len(piece)
            if self._transport is None:
                await response.write(piece)
                if response.headers.get("Transfer-Encoding") == "chunked":
                    self._transport = self._request.transport
            elif self._transport.is_closing():
                raise ConnectionResetError("the client has gone")
            else:
                # The same bytes as aiohttp's, without its checks for each chunk.
                self._transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                if self.sent > self._drained_at + DRAINED_AFTER and self._writer is not None:
                    self._drained_at = self.sent
                    await self._writer.drain()
            if self._written is not None:
                self._written.append(piece)
        if not pieces and self._writer is not None:
            self._writer.send_headers()  # the head alone

    async def _keep_alive(self, pulse: Callable[[], Sequence[bytes]]) -> None:
        """Opens the stream, breaks each silence, and cuts off a client that has stopped reading.

        Runs until it is cancelled.
        """
        loop = asyncio.get_running_loop()
        if self._response is None:
            await self._send(await self._begin(), ())
        while True:
            quiet = loop.time() - self._written_at
            if not self._writing and quiet >= self._pause:
                try:
                    async with asyncio.timeout(WRITE_DEADLINE):
                        await self.write(pulse() or [self.format.pulse])
                except TimeoutError:
                    self._cut_off()
                quiet = 0.0
            if self._writing and quiet >= WRITE_DEADLINE:
                self._cut_off()
            await asyncio.sleep((WRITE_DEADLINE if self._writing else self._pause) - quiet)

    def _cut_off(self) -> NoReturn:
        if self._request.transport is not None:
            self._request.transport.abort()
        raise ConnectionResetError("the client does not read")


def _is_long(event: WireEvent) -> bool:
    """Whether `event` has so much text that the events behind it, which repeat the text, are long."""
    match event.get("delta"):
        case str(text):
            return len(text) > LONG_ANSWER
        case _:
            return False


class StreamSink:
    """The sink of an answer that leaves as an event stream. `warnings` leave as comments before its last events, if the
    format has comments.
    """

    def __init__(self, stream: EventStream, warnings: Sequence[str] = ()) -> None:
        self._stream = stream
        self._encode = stream.format.encode
        self._warnings = warnings if stream.format.comments else ()
        self._opening: Sequence[WireEvent] = ()
        # The bytes of the opening events, once they are made; None when they have left.
        self._ready: list[bytes] | None = None

    @property
    def begun(self) -> bool:
        return self._stream.begun

    def open(self, builder: AnswerBuilder) -> AbstractAsyncContextManager[None]:
        self._opening, self._ready = builder.start(), []
        # The opening events repeat the request. They are made after the loop's next turn, in which the model is asked.
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, self._make_ready)
        encode = self._encode
        return self._stream.open(lambda: self._next([]), lambda: encode(builder.pulse()))

    async def send(self, events: Sequence[WireEvent]) -> None:
        while len(events) > ENCODED_AT_ONCE:
            await self._stream.write(self._next(events[:ENCODED_AT_ONCE]))
            events = events[ENCODED_AT_ONCE:]
            await asyncio.sleep(0)
        await self._stream.write(self._next(events))

    def _next(self, events: Sequence[WireEvent]) -> list[bytes]:
        """The bytes of `events`, behind the opening events if these have not left yet."""
        if self._ready is None:
            return self._encode(events)
        self._make_ready()
        pieces, self._ready = [*self._ready, *self._encode(events)], None
        return [b"".join(pieces)] if pieces and self._stream.format.joins else pieces

    def _make_ready(self) -> None:
        if self._ready is not None and self._opening:
            self._ready, self._opening = self._encode(self._opening), ()

    async def finish(self, events: Sequence[WireEvent], error: ApiError | None) -> None:
        if self._warnings:
            told = [comment(f"{WARNING}: {sentence}") for sentence in self._warnings]
            await self._stream.write([*self._next([]), *told])
        long = self._stream.sent > LONG_ANSWER or any(map(_is_long, events))
        for some in ([event] for event in events) if long else [events]:
            await self.send(some)
            if long:
                await asyncio.sleep(0)
        await self._stream.end()


async def stream_subscription(request: web.Request, subscription: Subscription) -> web.StreamResponse:
    """Streams a subscription to its end. A reader that leaves ends nothing but its stream."""
    entry = request[REQUEST_LOG]
    stream = EventStream(request)
    try:
        async with aclosing(subscription), stream.open():
            await stream.write(())  # the head need not wait: nothing can become an HTTP error any more
            if request.method == "HEAD":
                return stream.reply  # a body would be read as the next answer
            async for pieces in subscription:
                entry.saw_first_event()
                await stream.write([b"".join(pieces)])
            await stream.end()
    except ConnectionError:
        entry.client_left()
    return stream.reply
