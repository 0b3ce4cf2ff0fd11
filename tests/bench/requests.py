"""What a request costs before the backend has it, and how that and a long answer grow with their size."""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Self

import orjson

from prompts import PROFILES
from proxy.backends.codex.requests import inject_params, thread_params, turn_params
from proxy.contracts import BackendEvent, Health, Load, Model, Prompt, TurnEnded, Usage
from proxy.turn import CallKeys, CallRelease, TurnOptions, TurnReport, run_turn
from proxy.wire.json_body import parse_json_object
from proxy.wire.responses.request import parse_responses_request
from proxy.wire.responses.responses_builder import ResponsesBuilder

from .app_server import piece
from .client import recipe, request, run
from .contestants import Contestant
from .report import Row

ROUNDS = 5
TOOLS = 20
# Characters.
HISTORY = 60_000
# The exponent of growth that passes for linear on a machine with other work.
LINEAR = 1.15
OPTIONS = TurnOptions(release=CallRelease("whole"), profile=PROFILES["frontier"], call_keys=CallKeys())


def tool(number: int, note: str = "", *, strict: bool = False) -> dict[str, Any]:
    """As a note plugin declares one: some members, an enumeration, an object and a list."""
    text = {"type": "string", "description": "A path in the vault, with its ending, as in notes/today.md."}
    return {
        "type": "function",
        "name": f"vault_tool_{number}",
        "description": f"Does one thing with the notes of a vault and tells what came of it. {note}" * 2,
        "parameters": {
            "type": "object",
            "properties": {
                "path": {**text, "title": note},
                "mode": {"type": "string", "enum": ["append", "prepend", "replace"], "description": "Where it goes."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "At most so many."},
                "range": {"type": "object", "properties": {"from": text, "to": text}, "additionalProperties": False},
                "tags": {"type": "array", "items": {"type": "string"}, "description": "All of these."},
            },
            "required": ["path"],
            "additionalProperties": False,
        },
        "strict": strict,
    }


def history(items: int, characters: int) -> list[dict[str, Any]]:
    """A conversation with calls and results, of about so many items and characters, and a recipe as its end."""
    line = "A line of a note, with `code`, a <tag> and words of the usual length.\n"
    text = line * max(1, 4 * characters // (3 * items * len(line)))
    turns: list[dict[str, Any]] = []
    for number in range(items // 4):
        arguments = orjson.dumps({"path": f"notes/{number}.md"}).decode()
        turns += [
            {"role": "user", "content": text},
            {"type": "function_call", "call_id": f"call_{number}", "name": "vault_tool_1", "arguments": arguments},
            {"type": "function_call_output", "call_id": f"call_{number}", "output": text},
            {"role": "assistant", "content": [{"type": "output_text", "text": text}]},
        ]
    return [*turns, {"role": "user", "content": "play 1 pieces every 0 ms"}]


def body(items: int, characters: int, note: str = "", *, strict: bool = False) -> dict[str, Any]:
    return {
        "model": "bench",
        "instructions": "You are a helpful assistant for notes. " * 50,
        "input": history(items, characters),
        "tools": [tool(number, note, strict=strict) for number in range(TOOLS)],
        "stream": True,
    }


class Sink:
    """A backend that makes the lines of a turn, as the one for codex does, ends it, and counts its tokens."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        pass

    @asynccontextmanager
    async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
        orjson.dumps(thread_params(prompt, "/", None))
        *old, asked = prompt.items
        orjson.dumps(inject_params("thread", old))
        orjson.dumps(turn_params("thread", prompt, asked.parts))
        yield self._end()

    async def _end(self) -> AsyncIterator[Sequence[BackendEvent]]:
        yield [TurnEnded(Usage(1, 0, 1))]

    def heeds(self, model: str) -> frozenset[str]:
        return frozenset()

    takes_items: bool = True
    keeps_conversations: bool = False

    def holds(self, schema: str) -> bool:
        return False

    async def models(self) -> Sequence[Model]:
        return ()

    async def health(self) -> Health:
        return Health(None)

    def load(self) -> Load:
        return Load()


async def _send(content: bytes) -> None:
    parsed = parse_responses_request(parse_json_object(content))
    ResponsesBuilder(parsed).start()
    async for _ in run_turn(parsed.turn, Sink(), OPTIONS, TurnReport()):
        pass


def sending() -> Iterator[Row]:
    notes = (f"Note {number}." for number in itertools.count())

    async def times(contents: list[bytes]) -> float:
        """The least of them, in milliseconds of CPU."""
        best = math.inf
        for content in contents:
            begun = time.process_time()
            await _send(content)
            best = min(best, time.process_time() - begun)
        return best * 1000

    for strict in (False, True):
        same = orjson.dumps(body(40, HISTORY, strict=strict))
        fresh = [orjson.dumps(body(40, HISTORY, next(notes), strict=strict)) for _ in range(3 * ROUNDS)]
        what = f"a request with {TOOLS} {'strict ' * strict}tools and {len(same) // 1000} KB until it is sent"
        yield Row(what=f"{what}: CPU", figure=asyncio.run(times([same] * 3 * ROUNDS)), unit="ms", goal=3)
        yield Row(what="  with tools never seen before", figure=asyncio.run(times(fresh)), unit="ms", goal=3)


def growth(ours: Contestant) -> Iterator[Row]:
    long_answers = {size * 1000: recipe(_pieces(size * 1000), 0, store=True) for size in (250, 500, 1000)}
    yield from _growth("an answer of {} characters", long_answers, ours)
    histories = {items: request({**body(items, items * 400), "store": False}) for items in (250, 500, 1000)}
    yield from _growth("a history of {} items of 300 characters", histories, ours)


def _pieces(characters: int) -> int:
    total = 0
    for number in itertools.count():
        if total >= characters:
            return number
        total += len(piece(number))
    raise AssertionError


def _growth(what: str, loads: dict[int, bytes], ours: Contestant) -> Iterator[Row]:
    took = {size: _least(ours, partial(run, ours.port, sent)) for size, sent in loads.items()}
    for size, cpu in took.items():
        yield Row(what=f"{what.format(f'{size:,}')}: CPU", figure=cpu, unit="ms")
    small, large = min(took), max(took)
    exponent = math.log(took[large] / took[small]) / math.log(large / small)
    yield Row(what="  growth, exponent", figure=exponent, goal=LINEAR)


def _least(ours: Contestant, act: Callable[[], object]) -> float:
    best = math.inf
    for _ in range(ROUNDS):
        before = ours.cpu()
        act()
        best = min(best, ours.cpu() - before)
    return best * 1000
