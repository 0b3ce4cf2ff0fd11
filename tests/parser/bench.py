"""What reading costs, for `make bench`. Each row is a figure and its goal; a row over its goal is marked, no more.

Times are ratios to a floor over the same pieces in the same run, since ratios travel between machines and
seconds do not. The floor looks for `<` in each piece, appends it to a list and returns it in one.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from parser import SentinelParser, write_call
from tests.parser.reading import cut

REPEATS = 7


@dataclass(frozen=True)
class Row:
    what: str
    figure: float
    goal: float = math.inf

    def __str__(self) -> str:
        goal = "" if self.goal == math.inf else f"{self.goal:g}"
        return f"{self.what:62}{self.figure:8.2f}{goal:>8}{'  over' if self.figure > self.goal else ''}"


class Floor:
    """The least that a method could do which reads text and returns a list of events."""

    def __init__(self) -> None:
        self.pieces: list[str] = []

    def receive_text(self, text: str) -> list[str]:
        if text.find("<") < 0:
            self.pieces.append(text)
        return [text]


def argument(size: int, line: str = "A line of a note, with words of the usual length. ") -> str:
    return write_call("write_note", '{"path": "a.md", "content": "' + line * (size // len(line)) + '"}')


PROSE = "The quick brown fox jumps over the lazy dog.\nA new line, and so on: " * 15_000
MARKDOWN = "Use `code` here:\n```python\nprint(1)\n```\nand *that*.\n" * 2_000
CODE = r"def f(x):\n    return x[\"a\"] + '\\n'\n\n"
TAGS_BEGUN = "Now a <b <tool <tool_call_ <Tool_calls [x](y) <think <thin k `<tool_c` </tool_call> and so on.\n"
NEXT_CALL = write_call("read_note", '{"path": "a.md"}') + "\n"
KEYED_CALL = write_call("read_note", '{"path": "a.md"}', key="7qhvxmrtbz") + "\n"

# What is read, in pieces of how many characters, and the goal as a multiple of the floor.
LOADS: list[tuple[str, str, int, float]] = [
    ("1 MB of prose, 4 characters a delta", PROSE, 4, 1.2),
    ("1 MB of prose, 40 characters", PROSE, 40, 1.2),
    ("prose after a call, 4", write_call("get_time", "{}") + PROSE, 4, math.inf),
    ("string argument of 100 KB, 4", argument(100_000), 4, 3),
    ("text dense in '<', 4", "a < b <c> <div> x<y <tr> " * 8_000, 4, 4),
    ("64 calls in a row, 4", NEXT_CALL * 64, 4, 12),
    ("64 calls in a row, each with a key, 4", KEYED_CALL * 64, 4, math.inf),
    ("prose with much code, 4", MARKDOWN, 4, math.inf),
    ("100 KB of code in an argument, 4", argument(100_000, CODE), 4, math.inf),
    ("reasoning in think tags, 4", "<think>" + PROSE, 4, math.inf),
]
# The same where nobody reads arguments before their call is whole, as in `--calls whole`.
UNTOLD = ("string argument of 100 KB, 4", "64 calls in a row, each with a key, 4")


def fastest(makers: list[Callable[[], Callable[[str], object]]], pieces: list[str]) -> list[float]:
    """The best time of each, taken in turn."""
    best = [math.inf] * len(makers)
    for _ in range(REPEATS):
        for which, maker in enumerate(makers):
            take = maker()
            started = time.process_time()
            for piece in pieces:
                take(piece)
            best[which] = min(best[which], time.process_time() - started)
    return best


def ours() -> Callable[[str], object]:
    return SentinelParser().receive_text


def untold() -> Callable[[str], object]:
    return SentinelParser(arguments=False).receive_text


def costs() -> Iterator[Row]:
    for what, text, size, goal in LOADS:
        floor, *readings = fastest(
            [lambda: Floor().receive_text, ours, *([untold] if what in UNTOLD else [])], cut(text, size)
        )
        for reading, how in zip(readings, ("", ", not told"), strict=False):
            yield Row(what + how, reading / floor, goal)


def growth() -> Iterator[Row]:
    sizes = (50_000, 100_000, 200_000, 400_000)
    seconds = [fastest([ours], cut(argument(size), 4))[0] for size in sizes]
    exponent = math.log(seconds[-1] / seconds[0]) / math.log(sizes[-1] / sizes[0])
    yield Row("growth with the size of a string argument, exponent", exponent, 1.05)


def spread() -> Iterator[Row]:
    """Single feeds. The least of several runs at each place, since the rest of a time is other work's."""
    pieces = cut(argument(100_000), 4)
    runs = []
    for _ in range(REPEATS):
        take = ours()
        stamps = [time.perf_counter_ns()]
        for piece in pieces:
            take(piece)
            stamps.append(time.perf_counter_ns())
        runs.append([end - start for start, end in pairwise(stamps)])
    feeds = sorted(map(min, zip(*runs, strict=True)))
    yield Row(
        "a feed in that argument, 99th percentile to median",
        feeds[len(feeds) * 99 // 100] / statistics.median(feeds),
        10,
    )


def delays() -> Iterator[Row]:
    text = NEXT_CALL
    begun = text.index('{"path"')
    late = 0
    take = SentinelParser().receive_text
    for at, char in enumerate(text):
        if any(isinstance(event, str) for event in take(char)):
            late = at - begun
            break
    yield Row("feeds until the first arguments are told", late, 0)

    held = astray = told = 0
    take = SentinelParser().receive_text
    for at, char in enumerate(TAGS_BEGUN, 1):
        told += sum(len(event) for event in take(char) if isinstance(event, str))
        held = max(held, at - told)
        astray += told < at and TAGS_BEGUN[told] != "<"
    yield Row("characters of text held back, at most", held, 10)
    yield Row("times that they did not begin like a tag", astray, 0)


def memory() -> Iterator[Row]:
    prose, calls = cut(PROSE, 4), cut(argument(10_000) * 100, 4)
    call = cut(argument(1_000_000), 4)[: 1_000_000 // 4]
    for what, pieces, goal in (("text", prose, 0.1), ("calls", calls, 0.1), ("one unfinished call", call, math.inf)):
        take = SentinelParser().receive_text
        for piece in pieces[:25_000]:
            take(piece)
        tracemalloc.start()
        for piece in pieces[25_000:]:
            take(piece)
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        yield Row(f"bytes kept for each character told of {what}", kept / len("".join(pieces[25_000:])), goal)


def main() -> None:
    sys.stdout.write(f"{'':62}{'figure':>8}{'goal':>8}\n")
    for rows in (costs, growth, spread, delays, memory):
        for row in rows():
            sys.stdout.write(f"{row}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
