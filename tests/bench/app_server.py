"""An app-server that plays turns by the recipe in their input, with little work of its own.

    python app_server.py NOTES app-server

    play PIECES pieces every MILLISECONDS ms

Paced, each piece holds its number and the time at which it was written. Every 0 ms, the text is `piece(0)`,
`piece(1)` and so on as fast as it is read, `BURST` pieces of a turn and then of the next. An interrupted turn ends, and
the file NOTES gets the time. Stands alone: it starts fast and imports nothing of the project.
"""

from __future__ import annotations

import heapq
import itertools
import json
import os
import re
import select
import sys
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

Message = dict[str, Any]

RECIPE = re.compile(r"play (\d+) pieces every (\d+) ms")
BURST = 8
# Seconds. The real ones take 4 to 12 ms.
STARTING_A_THREAD = 0.005
STDIN, STDOUT = 0, 1
BLOCK = 2**16
TABLE = (
    "the same word ",
    "word ",
    "word ",
    "word ",
    "a line again\n",
    "a line again\n",
    '"quoted" \\ ',
    "caf\u00e9 \u2014 \U0001f600 ",
    "if a < b: ",
)
dumps = partial(json.dumps, ensure_ascii=False, separators=(",", ":"))


def piece(number: int) -> str:
    """Repeated words and lines, and what JSON writes differently."""
    return TABLE[number % len(TABLE)]


def stamped(number: int) -> str:
    return f" {number:06} {time.monotonic_ns():018}"


# From moment to moment: the lines of one, and the time of the next. A time that has passed means at once.
Playing = Iterator[tuple[bytes, float]]


class Server:
    """Plays what is due, first come, first served, and reads what it is asked in between."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Playing]] = []
        self._order = itertools.count()
        self._turns: dict[str, Generator[tuple[bytes, float], None, None]] = {}
        self._read = b""

    def run(self) -> None:
        while True:
            wait = max(0.0, self._due[0][0] - time.monotonic()) if self._due else None
            if select.select([STDIN], [], [], wait)[0]:
                data = os.read(STDIN, BLOCK)
                if not data:
                    return
                *lines, self._read = (self._read + data).split(b"\n")
                for line in lines:
                    self._receive(json.loads(line))
            self._play()

    def _play(self) -> None:
        now = time.monotonic()
        out: list[bytes] = []
        again: list[tuple[float, Playing]] = []
        while self._due and self._due[0][0] <= now:
            _, _, playing = heapq.heappop(self._due)
            if moment := next(playing, None):
                out.append(moment[0])
                again.append((moment[1], playing))
        for then, playing in again:
            self._schedule(then, playing)
        write(b"".join(out))

    def _schedule(self, at: float, playing: Playing) -> None:
        heapq.heappush(self._due, (at, next(self._order), playing))

    def _receive(self, message: Message) -> None:
        if "id" not in message:
            return
        method, params = message["method"], message.get("params") or {}
        if method == "thread/start":
            thread = {"id": str(uuid.uuid4()), "ephemeral": True}
            answer = line({"id": message["id"], "result": {"thread": thread}})
            self._schedule(time.monotonic() + STARTING_A_THREAD, iter([(answer, 0.0)]))
        elif method == "turn/start":
            turn_id = str(uuid.uuid4())
            turn = {"id": turn_id, "status": "inProgress"}
            write(line({"id": message["id"], "result": {"turn": turn}}))
            self._turns[params["threadId"]] = playing = play(params["threadId"], turn_id, params["input"])
            self._schedule(0.0, playing)
        else:
            write(line({"id": message["id"], "result": RESULTS.get(method, {})}))
            if method == "turn/interrupt" and (interrupted := self._turns.pop(params["threadId"], None)):
                with Path(sys.argv[1]).open("a") as notes:
                    notes.write(f"{time.monotonic_ns()}\n")
                interrupted.close()
                turn = {"id": params["turnId"], "status": "interrupted"}
                write(line({"method": "turn/completed", "params": {"threadId": params["threadId"], "turn": turn}}))


RESULTS: dict[str, Message] = {
    "initialize": {"userAgent": "tagcall/0.169.0 (bench)"},
    "account/read": {"account": None, "requiresOpenaiAuth": False},
    "model/list": {"data": [{"id": "bench", "model": "bench", "hidden": False}], "nextCursor": None},
}


def play(thread_id: str, turn_id: str, given: list[Message]) -> Generator[tuple[bytes, float], None, None]:
    recipe = RECIPE.findall(" ".join(part.get("text", "") for part in given))
    pieces, every = (int(recipe[-1][0]), int(recipe[-1][1]) / 1000) if recipe else (1, 0.0)
    at = {"threadId": thread_id, "turnId": turn_id}
    item = {"type": "agentMessage", "id": f"msg_{uuid.uuid4().hex}"}
    echo = {"type": "userMessage", "id": str(uuid.uuid4()), "content": given}
    head = [
        line({"method": "turn/started", "params": {"threadId": thread_id, "turn": {"id": turn_id}}}),
        *(line({"method": method, "params": {**at, "item": echo}}) for method in ("item/started", "item/completed")),
        line({"method": "item/started", "params": {**at, "item": {**item, "text": ""}}}),
    ]
    delta = dumps({"method": "item/agentMessage/delta", "params": {**at, "itemId": item["id"], "delta": ""}})
    begin, end = delta.removesuffix('""}}'), "}}\n"
    said: list[str] = []

    def deltas(make: Callable[[int], str], numbers: range) -> bytes:
        texts = [make(number) for number in numbers]
        said.extend(texts)
        return "".join([begin + dumps(text) + end for text in texts]).encode()

    yield b"".join(head), 0.0
    if every:
        start = time.monotonic()
        for number in range(pieces):
            yield deltas(stamped, range(number, number + 1)), start + (number + 1) * every
    else:
        for number in range(0, pieces, BURST):
            yield deltas(piece, range(number, min(pieces, number + BURST))), 0.0
    count = {"inputTokens": 100, "cachedInputTokens": 0, "outputTokens": pieces, "reasoningOutputTokens": 0}
    tail = [
        line({"method": "item/completed", "params": {**at, "item": {**item, "text": "".join(said)}}}),
        line({"method": "thread/tokenUsage/updated", "params": {**at, "tokenUsage": {"total": count}}}),
        line({"method": "turn/completed", "params": {**at, "turn": {"id": turn_id, "status": "completed"}}}),
    ]
    yield b"".join(tail), 0.0


def line(message: Message) -> bytes:
    return dumps(message).encode() + b"\n"


def write(data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(STDOUT, rest) :]


if __name__ == "__main__" and "app-server" in sys.argv:
    with suppress(BrokenPipeError):
        Server().run()
