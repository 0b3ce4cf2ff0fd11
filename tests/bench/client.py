"""Many streams at once, read as cheaply as possible: what came is only kept, and looked at when all is over."""

from __future__ import annotations

import asyncio
import re
import time
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

import orjson

from .app_server import piece

# Seconds for all streams together.
PATIENCE = 60.0
# Seconds until a connection is there on the other side too, as those are that clients keep.
ACCEPTED = 0.01
STAMP = re.compile(rb" (\d{6}) (\d{18})")
FIRST_DELTA = b"event: response.output_text.delta"
TEXT_IS_OVER = b"event: response.output_text.done"
DELTA = b'data: {"type":"response.output_text.delta"'


class BrokenAnswerError(Exception):
    """An answer is not what was played."""


@dataclass
class Stream(asyncio.Protocol):
    """One request on a connection of its own, to the connection's end. Times are the clock's nanoseconds."""

    request: bytes
    over: asyncio.Future[None]
    transport: asyncio.Transport | None = None
    begun: int = 0
    times: list[int] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def ask(self) -> None:
        assert self.transport is not None
        self.begun = time.monotonic_ns()
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        self.times.append(time.monotonic_ns())
        self.data.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.over.done():
            self.over.set_result(None)

    # Looked at afterwards.

    def first_delta(self) -> float:
        """Milliseconds from the request."""
        whole = b"".join(self.data)
        at = whole.find(FIRST_DELTA)
        if at < 0:
            raise BrokenAnswerError(f"no text came: {whole[:300]!r}")
        ends = list(accumulate(map(len, self.data)))
        return (self.times[bisect_left(ends, at + len(FIRST_DELTA))] - self.begun) / 1e6

    def span(self) -> tuple[int, int]:
        """When it was asked, and when the last of it came."""
        return self.begun, self.times[-1]

    def pieces(self, count: int) -> list[tuple[int, int]]:
        """When each piece was written and when it came. Raises `BrokenAnswerError` unless all came, in order."""
        whole = b"".join(self.data).partition(TEXT_IS_OVER)[0]
        ends = list(accumulate(map(len, self.data)))
        found = list(STAMP.finditer(whole))
        if [int(stamp[1]) for stamp in found] != list(range(count)):
            raise BrokenAnswerError("pieces of a paced stream are missing or out of order")
        return [(int(stamp[2]), self.times[bisect_left(ends, stamp.end())]) for stamp in found]

    def text(self) -> str:
        """All of the deltas."""
        lines = unchunked(b"".join(self.data)).split(b"\n")
        return "".join(orjson.loads(line[6:])["delta"] for line in lines if line.startswith(DELTA))


def unchunked(answer: bytes) -> bytes:
    """The body of a chunked HTTP answer."""
    _, _, rest = answer.partition(b"\r\n\r\n")
    body: list[bytes] = []
    at = 0
    while at < len(rest):
        end = rest.index(b"\r\n", at)
        size = int(rest[at:end], 16)
        body.append(rest[end + 2 : end + 2 + size])
        at = end + 2 + size + 2
    return b"".join(body)


def request(body: Mapping[str, object]) -> bytes:
    content = orjson.dumps(body)
    head = (
        "POST /v1/responses HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Connection: close\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def recipe(pieces: int, every: int, **members: object) -> bytes:
    """The request for a turn of so many pieces, `every` so many milliseconds."""
    return request(
        {
            "model": "bench",
            "input": f"play {pieces} pieces every {every} ms",
            "stream": True,
            "store": False,
            **members,
        }
    )


Watch = Callable[[], Awaitable[None]]


async def _nothing() -> None:
    pass


def run(port: int, sent: bytes, streams: int = 1, *, spread: float = 0.0, watch: Watch = _nothing) -> list[Stream]:
    """The same request on so many connections, begun over `spread` seconds; `watch` runs beside them from then on."""
    return asyncio.run(_run(port, sent, streams, spread, watch))


async def _run(port: int, sent: bytes, streams: int, spread: float, watch: Watch) -> list[Stream]:
    loop = asyncio.get_running_loop()
    opened: list[Stream] = []
    async with asyncio.timeout(PATIENCE):
        for _ in range(streams):
            _, stream = await loop.create_connection(lambda: Stream(sent, loop.create_future()), "127.0.0.1", port)
            opened.append(stream)
        await asyncio.sleep(ACCEPTED)
        for stream in opened:
            stream.ask()
            await asyncio.sleep(spread / streams)
        await watch()
        for stream in opened:
            await stream.over
    return opened


def check_text(streams: list[Stream], pieces: int) -> None:
    """Raises `BrokenAnswerError` unless every stream brought every byte."""
    told = "".join(map(piece, range(pieces)))
    for stream in streams:
        if (text := stream.text()) != told:
            raise BrokenAnswerError(f"{len(text)} characters came of {len(told)}, or others")
