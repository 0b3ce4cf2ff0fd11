"""What a conversation that keeps its thread costs, beside the relay that does no more, and beside `--lanes off`."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from aiohttp.test_utils import TestServer

from tests.support.long_loop import ROUNDS, long_loop
from tests.support.prompt_cache import RULES, bill
from tests.support.scripted_model import ScriptedModel
from tests.support.tagcall_server import tagcall_server

from .client import BrokenAnswerError, recipe, request, run
from .contestants import Contestant, tagcall
from .report import Row, difference, ratio
from .requests import HISTORY, body
from .starts import CLIENT_WORKS, STREAMS, idle_and_busy

CONVERSATIONS = 8
# Milliseconds that pass for nothing on a machine with other work.
LATER = 0.3
CONTINUED = re.compile(rb'tagcall_lanes_total{[^}]*state="continued"[^}]*} (\d+)')
KEYS = itertools.count()


def billed(folder: Path) -> Iterator[Row]:
    """Of a tool loop on the real codex program."""
    kept, fresh = (asyncio.run(_loop(folder / lanes, lanes)) for lanes in ("on", "off"))
    for models, rules in RULES.items():
        with_lanes, without = bill(kept, rules), bill(fresh, rules)
        what = f"a loop of {ROUNDS} requests, {models}: read"
        yield Row(what=what, figure=with_lanes.share, floor=without.share, unit="%", goal=75, at_least=True)
        yield ratio("  billed", with_lanes.billed / 1000, without.billed / 1000, "thousand tokens", 0.35)


async def _loop(home: Path, lanes: str) -> list[Any]:
    model = ScriptedModel()
    async with TestServer(model.app) as server:
        model.url = str(server.make_url("/v1"))
        async with tagcall_server(model, home, lanes=lanes) as url:
            return list(await long_loop(model, url))


def continued(ours: Contestant, floor: Contestant) -> Iterator[Row]:
    """Of requests that go on where an answer ended."""
    before = _continued(ours)
    took, least = _first_deltas(ours, floor, {})
    yield difference("first piece where a conversation goes on", took, least, "ms", 1)
    took, least = _first_deltas(ours, floor, _long())
    yield difference("  with 20 tools and 83 KB", took, least, "ms")
    if (seen := _continued(ours) - before) != 2 * CONVERSATIONS * (ROUNDS - 1):
        raise BrokenAnswerError(f"{seen} requests went on")


def beside_off(folder: Path) -> Iterator[Row]:
    with ExitStack() as stack:
        on, off = (stack.enter_context(tagcall(folder / lanes, "--lanes", lanes)) for lanes in ("on", "off"))
        (idle, busy), (idle_off, busy_off) = idle_and_busy(on), idle_and_busy(off)
        yield ratio("memory after the first answer", idle, idle_off, "MB", 1.02)
        yield ratio(f"  with {STREAMS} streams", busy, busy_off, "MB", 1.02)
        yield difference("first piece where a conversation goes on", *_first_deltas(on, off, {}), "ms", LATER)
        yield difference("  with 20 tools and 83 KB", *_first_deltas(on, off, _long()), "ms", LATER)
        yield difference("first piece of a lone request", *_lone(on, off), "ms", LATER)


def _long() -> dict[str, Any]:
    begun = body(40, HISTORY)
    return {**begun, "input": begun["input"][:-1]}


def _first_deltas(one: Contestant, other: Contestant, begun: dict[str, Any]) -> tuple[float, float]:
    """The least of many, taken in turn; the conversations begin as the request `begun`."""
    took: tuple[list[float], list[float]] = [], []
    for _ in range(CONVERSATIONS):
        for contestant, times in zip((one, other), took, strict=True):
            times.extend(_conversation(contestant, begun))
    first, second = map(min, took)
    return first, second


def _conversation(contestant: Contestant, begun: dict[str, Any]) -> Iterator[float]:
    """Milliseconds until the first piece of each answer but the first."""
    said = [*begun.get("input", ())]
    key = f"conversation {next(KEYS)}"
    for number in range(ROUNDS):
        said.append({"role": "user", "content": f"{key}: play 2 pieces every 1 ms"})
        asked = {"model": "bench", "stream": True, **begun, "input": said, "store": False, "prompt_cache_key": key}
        [answer] = run(contestant.port, request(asked))
        if number:
            yield answer.first_delta()
        said.append({"role": "assistant", "content": answer.text()})
        time.sleep(CLIENT_WORKS)


def _lone(one: Contestant, other: Contestant) -> tuple[float, float]:
    took: tuple[list[float], list[float]] = [], []
    for _ in range(CONVERSATIONS * ROUNDS):
        for contestant, times in zip((one, other), took, strict=True):
            times.append(run(contestant.port, recipe(2, 1, instructions="Be brief."))[0].first_delta())
            time.sleep(CLIENT_WORKS)
    first, second = map(min, took)
    return first, second


def _continued(contestant: Contestant) -> int:
    with urlopen(f"http://127.0.0.1:{contestant.port}/metrics") as answer:
        return sum(map(int, CONTINUED.findall(answer.read())))
