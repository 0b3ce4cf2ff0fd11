"""What it costs that somebody looks on: `--inspect` with a page open, beside a server that nobody looks at."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .contestants import Contestant, tagcall
from .deltas import at_once, paced
from .report import Row, ratio

STREAMS = 16
# Of both, in turn; the least of them is what it takes.
ROUNDS = 5
GOAL = 1.15


def rows(folder: Path, other: Path) -> Iterator[Row]:
    with tagcall(folder, "--inspect") as watched, tagcall(other) as alone, _page(watched):
        for load, how in ((paced, "50 a second"), (at_once, "saturated")):
            rounds = [(load(watched, STREAMS).cpu, load(alone, STREAMS).cpu) for _ in range(ROUNDS)]
            cpu, least = map(min, zip(*rounds, strict=True))
            yield ratio(f"{STREAMS} streams, {how}: CPU for 1000 pieces", cpu, least, "ms", GOAL)


@contextmanager
def _page(server: Contestant) -> Iterator[None]:
    """One that follows the turns, and reads all that comes."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"GET /inspect/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        reader = threading.Thread(target=_read, args=(connection,))
        reader.start()
        try:
            yield
        finally:
            connection.shutdown(socket.SHUT_RDWR)
            reader.join()


def _read(connection: socket.socket) -> None:
    while connection.recv(2**16):
        pass
