"""The program: `python -m proxy.replay FOLDER`. The end of its input ends it at once, with status 0."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from .fixture import FixtureError, load_fixtures
from .playback import Speed, parse_speed
from .server import ReplayServer

_STDOUT = 1


def _write(data: bytes) -> None:
    # Unbuffered: a thread that dies with the process must not hold the lock of a buffer.
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(_STDOUT, rest) :]
    except BrokenPipeError:
        os._exit(0)  # nobody listens any more


def _note(file: Path, line: str) -> None:
    with file.open("a", encoding="utf-8") as lines:
        lines.write(f"{line}\n")


def _length(text: str) -> int:
    length = int(text)
    if length < 0:
        raise ValueError(text)
    return length


def _speed(text: str) -> Speed:
    try:
        return parse_speed(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m proxy.replay", description="Play recorded turns on stdin/stdout.")
    parser.add_argument("folder", type=Path, help="a folder of fixtures, or one fixture")
    parser.add_argument("--speed", type=_speed, default="fast", metavar="fast|recorded|20ms", help="default: fast")
    parser.add_argument("--chunk", type=_length, default=0, metavar="N", help="cut the text into N characters a delta")
    parser.add_argument("--played", type=Path, metavar="FILE", help="add the name of what answers each turn")
    options = parser.parse_args(arguments)
    try:
        fixtures = load_fixtures(options.folder)
    except FixtureError as error:
        print(error, file=sys.stderr)
        return 2
    played = {} if options.played is None else {"on_played": partial(_note, options.played)}
    server = ReplayServer(fixtures, _write, speed=options.speed, chunk=options.chunk, **played)
    for line in sys.stdin.buffer:
        server.receive(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
