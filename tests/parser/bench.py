"""What reading costs, as ratios to a floor over the same pieces, in one run: `python -m tests.parser.bench`.

The floor looks for `<` in each piece and appends it to a list. Ratios travel between machines; seconds do not.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from parser import SentinelParser, write_call

REPEATS = 7


class Floor:
    """The least that a parser could do."""

    def __init__(self) -> None:
        self.pieces: list[str] = []

    def receive_text(self, text: str) -> None:
        if text.find("<") < 0:
            self.pieces.append(text)


@dataclass(frozen=True)
class Load:
    """Text in pieces of `size`; the goal is a ratio to the floor."""

    name: str
    text: str
    size: int
    goal: float

    def pieces(self) -> list[str]:
        return [self.text[at : at + self.size] for at in range(0, len(self.text), self.size)]


def argument(size: int) -> str:
    line = "A line of a note, with words of the usual length. "
    return write_call("write_note", '{"path": "a.md", "content": "' + line * (size // len(line)) + '"}')


PROSE = "The quick brown fox jumps over the lazy dog.\nA new line, and so on: " * 15_000
LOADS = [
    Load("prose, 4 characters a delta", PROSE, 4, 2),
    Load("prose, 40 characters a delta", PROSE, 40, 2),
    Load("prose after a call, 4", write_call("get_time", "{}") + PROSE, 4, 2),
    Load("string argument of 100 KB, 4", argument(100_000), 4, 5),
    Load("64 calls in a row, 4", (write_call("read_note", '{"path": "a.md"}') + "\n") * 64, 4, 10),
    Load("dense in '<', 4", "a < b <c> <div> x<y <tr> " * 8_000, 4, 5),
    Load("markdown with code, 4", "Use `code` here:\n```python\nprint(1)\n```\nand *that*.\n" * 2_000, 4, math.inf),
]


def seconds(receive: Callable[[], Callable[[str], object]], pieces: list[str]) -> float:
    best = math.inf
    for _ in range(REPEATS):
        take = receive()
        started = time.process_time()
        for piece in pieces:
            take(piece)
        best = min(best, time.process_time() - started)
    return best


def main() -> None:
    out = sys.stdout
    out.write(f"{'load':34}{'ns a delta':>12}{'floor':>8}{'ratio':>8}{'goal':>8}\n")
    for load in LOADS:
        pieces = load.pieces()
        floor = seconds(lambda: Floor().receive_text, pieces)
        ours = seconds(lambda: SentinelParser().receive_text, pieces)
        nano = 1e9 / len(pieces)
        out.write(f"{load.name:34}{ours * nano:12.0f}{floor * nano:8.0f}{ours / floor:8.1f}{load.goal:8g}\n")
    sizes = (50_000, 100_000, 200_000, 400_000)
    costs = [seconds(lambda: SentinelParser().receive_text, Load("", argument(size), 4, 0).pieces()) for size in sizes]
    growth = math.log(costs[-1] / costs[0]) / math.log(sizes[-1] / sizes[0])
    out.write(f"growth of a string argument: exponent {growth:.2f}, goal 1.05\n")


if __name__ == "__main__":
    main()
