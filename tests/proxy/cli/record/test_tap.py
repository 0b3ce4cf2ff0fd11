"""Lines and the turns they belong to."""

from __future__ import annotations

from collections import deque
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from proxy.cli.record.tap import HeardTurn, Tap


class Pipe:
    """A transport that gives what it was given, and takes everything."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = deque(pieces)

    async def receive(self) -> bytes:
        return self._pieces.popleft() if self._pieces else b""

    async def send(self, line: bytes) -> None: ...

    async def close(self) -> None: ...

    def abort(self) -> None: ...

    def describe_end(self) -> str:
        return "it ended"

    async def resident_bytes(self) -> int | None:
        return None


def line(method: str, thread: str = "T", **params: Any) -> bytes:
    return orjson.dumps({"method": method, "params": {"threadId": thread, **params}}) + b"\n"


TURN = [
    line("turn/started"),
    line("turn/started", "other"),
    line("account/rateLimits/updated"),
    b"not json\n",
    line("item/completed"),
    line("turn/completed"),
    line("warning"),
]


async def heard(*pieces: bytes) -> HeardTurn:
    turn = HeardTurn()
    tap = Tap(Pipe(*pieces), lambda items: turn if items == ["mine"] else None)
    await tap.send(line("turn/start", "other", input=["another's"]))
    await tap.send(line("turn/start", input=["mine"]))
    while await tap.receive():
        pass
    return turn


@given(st.integers(1, 40))
async def test_a_turn_has_its_own_lines_however_they_arrive(size: int) -> None:
    data = b"".join(TURN)
    turn = await heard(*(data[begin : begin + size] for begin in range(0, len(data), size)))
    assert [(it.from_client, it.message["method"]) for it in turn.lines] == [
        (True, "turn/start"),
        (False, "turn/started"),
        (False, "item/completed"),
        (False, "turn/completed"),
    ]
    assert turn.completed


async def test_the_end_of_the_connection_ends_a_turn_that_is_not_complete() -> None:
    turn = await heard(*TURN[:3])
    assert turn.over.is_set()
    assert not turn.completed
