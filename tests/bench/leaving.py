"""How soon the turn of a client that leaves is interrupted: the app-server notes when it hears of it."""

from __future__ import annotations

import socket
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from .client import FIRST_DELTA, recipe
from .contestants import Contestant, interrupts_in
from .report import Row

LEAVERS = 40
# Seconds until the app-server must have heard of it, and between two looks at its notes.
PATIENCE, LOOK = 10.0, 0.005


def rows(ours: Contestant, folder: Path) -> Iterator[Row]:
    took = sorted(_leave(ours, interrupts_in(folder)) for _ in range(LEAVERS))
    yield Row(what="a client leaves: until its turn is interrupted", figure=statistics.median(took), unit="ms", goal=50)
    yield Row(what="  the slowest of 40", figure=took[-1], unit="ms", goal=1000)


def _leave(ours: Contestant, notes: Path) -> float:
    """Milliseconds from its leaving in mid-answer."""
    before = _stamps(notes)
    with socket.create_connection(("127.0.0.1", ours.port)) as connection:
        connection.sendall(recipe(10_000, 10))
        said = b""
        while FIRST_DELTA not in said:
            said += connection.recv(2**16)
        left = time.monotonic_ns()
    while len(stamps := _stamps(notes)) == len(before):
        if time.monotonic_ns() - left > PATIENCE * 1e9:
            raise TimeoutError("no turn was interrupted")
        time.sleep(LOOK)
    return (stamps[len(before)] - left) / 1e6


def _stamps(notes: Path) -> list[int]:
    return [int(line) for line in notes.read_text().splitlines()] if notes.exists() else []
