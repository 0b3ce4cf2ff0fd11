"""What a peer's parser costs on the texts of `tests.parser.bench`: `make bench-peers`. Figures, not tests.

SGLang reads the same notation, while it is written. Its package wants a GPU's libraries and its parser does not, so
that is loaded alone. Others have no row: llama.cpp's parser is only given what a model has written,
and LiteLLM reads no calls in text.
"""

from __future__ import annotations

import importlib
import math
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from parser import CallCompleted, SentinelParser
from tests.parser import bench
from tests.parser.reading import cut

REPEATS = 3
SIZE = 4
TOOLS = ("read_note", "write_note")

LOADS = {
    "100 KB of prose": bench.PROSE[:100_000],
    "64 calls in a row": bench.NEXT_CALL * 64,
    # SGLang reads all of an argument again at each delta: one of 100 KB takes it minutes.
    "string argument of 5 KB": bench.argument(5_000),
    "string argument of 10 KB": bench.argument(10_000),
}

# Takes a piece of text; returns how many calls began and how many characters of arguments came.
Take = Callable[[str], tuple[int, int]]


def sglang() -> Callable[[], Take]:
    """Makes SGLang's parser. Raises `ModuleNotFoundError`."""
    spec = find_spec("sglang")
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError("sglang")
    [root] = spec.submodule_search_locations
    for room in ("", ".srt", ".srt.function_call", ".srt.entrypoints", ".srt.entrypoints.openai"):
        bare = sys.modules[f"sglang{room}"] = ModuleType(f"sglang{room}")
        bare.__path__ = [root + room.replace(".", "/")]
    pydantic: Any = importlib.import_module("pydantic")
    function = pydantic.create_model("Function", name=str, parameters=(dict[str, object], {}))
    tool = pydantic.create_model("Tool", type=(str, "function"), function=function)
    protocol: Any = ModuleType("sglang.srt.entrypoints.openai.protocol")
    protocol.Tool, protocol.ToolChoice, protocol.Function = tool, object, function
    sys.modules[protocol.__name__] = protocol
    detector: Any = importlib.import_module("sglang.srt.function_call.hermes_detector").HermesDetector
    tools = [tool(function=function(name=name)) for name in TOOLS]

    def make() -> Take:
        reader = detector()

        def take(piece: str) -> tuple[int, int]:
            calls = reader.parse_streaming_increment(piece, tools).calls
            return sum(bool(call.name) for call in calls), sum(len(call.parameters) for call in calls)

        return take

    return make


def ours() -> Take:
    parser = SentinelParser()

    def take(piece: str) -> tuple[int, int]:
        whole = [event for event in parser.receive_text(piece) if isinstance(event, CallCompleted)]
        return len(whole), sum(len(event.arguments) for event in whole)

    return take


def cost(make: Callable[[], Take], pieces: list[str]) -> tuple[float, int, int]:
    """The least seconds of CPU, and how many calls and characters of their arguments came."""
    best, calls, characters = math.inf, 0, 0
    for _ in range(REPEATS):
        take = make()
        begun = time.process_time()
        counts = [take(piece) for piece in pieces]
        best = min(best, time.process_time() - begun)
        calls, characters = sum(count for count, _ in counts), sum(count for _, count in counts)
    return best, calls, characters


def main() -> None:
    try:
        theirs = sglang()
    except ModuleNotFoundError as error:
        sys.exit(f"There is no {error.name} here: call `make bench-peers`.")
    sys.stdout.write(
        f"{'CPU, ms, 4 characters a delta':32}{'tagcall':>10}{'SGLang':>10}{'':>8}{'calls':>12}{'arguments':>18}\n"
    )
    for what, text in LOADS.items():
        pieces = cut(text, SIZE)
        (own, *came), (peer, *came_there) = cost(ours, pieces), cost(theirs, pieces)
        told = "".join(f"{f'{one:,} {other:,}':>16}" for one, other in zip(came, came_there, strict=True))
        sys.stdout.write(f"{what:32}{own * 1e3:10.2f}{peer * 1e3:10.2f}{peer / own:7.1f}x{told}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
