"""What a start costs: of the process, and of an answer. And the memory that it takes then."""

from __future__ import annotations

import asyncio
import math
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, Self

import orjson

from .client import recipe, run
from .contestants import Contestant, app_server_program
from .report import Row, difference, ratio

STARTS = 5
ANSWERS = 40
STREAMS = 64
# Seconds between an answer and the next request of the same client.
CLIENT_WORKS = 0.05
Start = Callable[[], AbstractContextManager[Contestant]]


def cold_starts(ours: Start, floor: Start) -> Iterator[Row]:
    least: list[tuple[float, float]] = [(math.inf, math.inf)] * 2
    for _ in range(STARTS):
        for which, start in enumerate((ours, floor)):
            with start() as contestant:
                cpu = contestant.cpu()
                least[which] = min(least[which][0], contestant.cold_start), min(least[which][1], cpu)
    (took, used), (least_took, least_used) = least
    yield ratio("from the command to readiness", took, least_took, "s")
    yield ratio("  CPU until then", used, least_used, "s", 1.8)


def memory(ours: Contestant, floor: Contestant) -> Iterator[Row]:
    (idle, busy), (least, least_busy) = idle_and_busy(ours), idle_and_busy(floor)
    yield ratio("memory after the first answer", idle, least, "MB", 1.35)
    yield Row(what=f"  more with {STREAMS} streams", figure=busy - idle, floor=least_busy - least, unit="MB", goal=15)


def idle_and_busy(contestant: Contestant) -> tuple[float, float]:
    """Megabytes after one answer, and in the middle of many."""
    run(contestant.port, recipe(2, 0))
    idle = contestant.megabytes()
    sizes: list[float] = []
    run(contestant.port, recipe(50, 20), STREAMS, watch=partial(_weigh, contestant, sizes))
    return idle, sizes[0]


async def _weigh(contestant: Contestant, sizes: list[float]) -> None:
    await asyncio.sleep(0.5)  # in mid-stream
    sizes.append(contestant.megabytes())


def first_deltas(ours: Contestant, floor: Contestant, folder: Path) -> Iterator[Row]:
    """The app-server alone is asked on a thread that it has already."""
    told = [f"Be brief. This is the first turn of client {number}." for number in range(ANSWERS)]
    with AppServerAlone(folder) as alone:
        again, first, plain, least = [], [], [], []
        for text in told:
            least.append(alone.first_delta())
            plain.append(_first_delta(floor, "Be brief."))
            first.append(_first_delta(ours, text))
            time.sleep(CLIENT_WORKS)
            again.append(_first_delta(ours, text))
    begun = statistics.median(least)
    yield difference("first piece of an answer, instructions as before", statistics.median(again), begun, "ms", 2)
    yield difference("  new instructions, hence a thread made for them", statistics.median(first), begun, "ms")
    yield difference("  the relay, which makes a thread too", statistics.median(plain), begun, "ms")


def _first_delta(contestant: Contestant, instructions: str) -> float:
    return run(contestant.port, recipe(2, 1, instructions=instructions))[0].first_delta()


class AppServerAlone:
    """Its pipes, and nobody in between."""

    def __init__(self, folder: Path) -> None:
        command = [str(app_server_program(folder)), "app-server"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.communicate()

    def first_delta(self) -> float:
        """Milliseconds from the request for a turn."""
        self._write("thread/start", {})
        thread = self._read_until(lambda line: "result" in line)["result"]["thread"]["id"]
        begun = time.perf_counter()
        self._write("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "play 2 pieces every 1 ms"}]})
        self._read_until(lambda line: line.get("method") == "item/agentMessage/delta")
        took = time.perf_counter() - begun
        self._read_until(lambda line: line.get("method") == "turn/completed")
        return took * 1000

    def _write(self, method: str, params: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(orjson.dumps({"id": 1, "method": method, "params": params}) + b"\n")
        self._process.stdin.flush()

    def _read_until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        assert self._process.stdout is not None
        line: dict[str, Any] = {}
        while not wanted(line):
            line = orjson.loads(self._process.stdout.readline())
        return line
