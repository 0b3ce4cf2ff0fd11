"""What a piece of text costs on its way: paced as a model writes, and as fast as it is read."""

from __future__ import annotations

import asyncio
import math
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .client import check_text, recipe, run
from .contestants import Contestant
from .report import Row, difference, ratio

ROUNDS = 3
# Streams, and how many pieces each of them has when they come at once: enough to hide what a request costs.
AT_ONCE = {1: 40_000, 16: 6_000, 64: 2_000}
# Milliseconds: 50 pieces a second.
EVERY = 20
# Pieces of each stream.
PACED = 100
# Seconds: from when on paced streams are looked at, since a request has costs of its own; and for how long.
STEADY = 0.3, 1.4


@dataclass(frozen=True, slots=True)
class Load:
    """Of one round: milliseconds of CPU for 1000 pieces, pieces a second, milliseconds that a piece took."""

    cpu: float
    rate: float
    median: float = 0.0
    late: float = 0.0


def paced(contestant: Contestant, streams: int) -> Load:
    seen: list[tuple[int, float]] = []

    async def watch() -> None:
        for pause in STEADY:
            await asyncio.sleep(pause)
            seen.append((time.monotonic_ns(), contestant.cpu()))

    answers = run(contestant.port, recipe(PACED, EVERY), streams, spread=EVERY / 1000, watch=watch)
    (begin, before), (end, after) = seen
    pieces = [piece for answer in answers for piece in answer.pieces(PACED)]
    took = sorted((came - written) / 1e6 for written, came in pieces if begin <= written < end)
    cpu = (after - before) * 1e6 / len(took)
    return Load(cpu, 0.0, statistics.median(took), took[len(took) * 99 // 100])


def at_once(contestant: Contestant, streams: int) -> Load:
    pieces = AT_ONCE[streams]
    before = contestant.cpu()
    answers = run(contestant.port, recipe(pieces, 0), streams)
    used = contestant.cpu() - before
    check_text(answers, pieces)
    begun, ended = zip(*(answer.span() for answer in answers), strict=True)
    total = pieces * streams
    return Load(used * 1e6 / total, total * 1e9 / (max(ended) - min(begun)))


def rows(ours: Contestant, floor: Contestant) -> Iterator[Row]:
    for streams in AT_ONCE:
        both = _rounds(paced, ours, floor, streams)
        cpu, least = (statistics.median(load.cpu for load in loads) for loads in both)
        goal = 1.3 if streams > 1 else math.inf
        yield ratio(f"{_named(streams)}, 50 a second: CPU for 1000 pieces", cpu, least, "ms", goal)
        took, least = (statistics.median(load.median for load in loads) for loads in both)
        yield difference("  time that a piece takes, median", took, least, "ms", 0.3 if streams < 64 else math.inf)
        took, least = (statistics.median(load.late for load in loads) for loads in both)
        yield difference("  99th percentile", took, least, "ms")
    for streams in AT_ONCE:
        both = _rounds(at_once, ours, floor, streams)
        cpu, least = (min(load.cpu for load in loads) for loads in both)
        yield ratio(f"{_named(streams)}, saturated: CPU for 1000 pieces", cpu, least, "ms", 2.5)
        rate, most = (max(load.rate for load in loads) for loads in both)
        yield ratio("  pieces a second; every byte came", rate, most, "", 0.5, at_least=True)


def _named(streams: int) -> str:
    return f"{streams} streams" if streams > 1 else "1 stream"


def _rounds(
    load: Callable[[Contestant, int], Load], ours: Contestant, floor: Contestant, streams: int
) -> tuple[list[Load], list[Load]]:
    """Of both, taken in turn."""
    rounds = [(load(ours, streams), load(floor, streams)) for _ in range(ROUNDS)]
    return [one for one, _ in rounds], [other for _, other in rounds]
