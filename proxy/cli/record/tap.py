"""The lines of each turn, heard where they pass: between the client and whatever carries its lines."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import orjson

from ...rpc import JsonObject, Transport

_START = "turn/start"
_END = "turn/completed"

# Said to all, about no turn, or said twice by old versions.
_NOISE = ("account/", "codex/event/", "thread/started", "thread/settings/", "remoteControl/")


@dataclass(frozen=True, slots=True)
class HeardLine:
    """`at` is in seconds on the monotonic clock."""

    at: float
    from_client: bool
    message: JsonObject


@dataclass(slots=True, eq=False)
class HeardTurn:
    """`over` is set by its end, or by the end of its connection; only then it may be not `completed`."""

    lines: list[HeardLine] = field(default_factory=list)
    completed: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Tap:
    """A `Transport` around another one. `claim` gives the turn with that input, None when nobody wants it."""

    def __init__(self, transport: Transport, claim: Callable[[object], HeardTurn | None]) -> None:
        self._transport = transport
        self._claim = claim
        self._begun = b""
        self._turns: dict[str, HeardTurn] = {}  # by thread: one runs on each

    async def send(self, line: bytes) -> None:
        self._hear(line, from_client=True)
        await self._transport.send(line)

    async def receive(self) -> bytes:
        data = await self._transport.receive()
        *lines, self._begun = (self._begun + data).split(b"\n")
        for line in lines:
            self._hear(line, from_client=False)
        if not data:
            self._end_all()
        return data

    async def close(self) -> None:
        await self._transport.close()
        self._end_all()

    def abort(self) -> None:
        self._transport.abort()

    def describe_end(self) -> str:
        return self._transport.describe_end()

    async def resident_bytes(self) -> int | None:
        return await self._transport.resident_bytes()

    def _hear(self, line: bytes, *, from_client: bool) -> None:
        at = time.monotonic()
        try:
            message = orjson.loads(line)
        except orjson.JSONDecodeError:
            return
        match message:
            case {"method": str(method), "params": {"threadId": str(thread), **params}} if not method.startswith(
                _NOISE
            ):
                if from_client and method == _START and (claimed := self._claim(params.get("input"))) is not None:
                    self._turns[thread] = claimed
                if (turn := self._turns.get(thread)) is not None:
                    turn.lines.append(HeardLine(at, from_client, message))
                    if method == _END:
                        turn.completed = True
                        turn.over.set()
                        del self._turns[thread]
            case _:
                pass

    def _end_all(self) -> None:
        for turn in self._turns.values():
            turn.over.set()
        self._turns.clear()
