"""What a conversation that goes on costs until only what is new is sent, by how much was said before."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from hashlib import blake2b

import orjson

from prompts import PROFILES
from proxy.backends.codex.lanes import HeldThread, Lanes, identity
from proxy.backends.codex.options import LaneBounds
from proxy.backends.codex.requests import turn_params
from proxy.backends.codex.spare_threads import Started
from proxy.contracts import BackendEvent, Prompt, TextPiece, TurnEnded, Usage
from proxy.turn import CallKeys, CallRelease, TurnOptions, TurnReport, run_turn
from proxy.wire.json_body import parse_json_object
from proxy.wire.responses.request import parse_responses_request
from proxy.wire.responses.responses_builder import ResponsesBuilder

from .report import Row, ratio
from .requests import Sink, body

REQUESTS = 40
# Characters of an item, about.
ITEM = 300
ANSWER = "Answered."
OPTIONS = TurnOptions(release=CallRelease.WHOLE, profile=PROFILES["frontier"], call_keys=CallKeys())


class Keeping(Sink):
    """Keeps the conversation, as the backend for codex does."""

    keeps_conversations = True

    def __init__(self) -> None:
        self._lanes = Lanes(LaneBounds())
        self.sent = 0.0
        """CPU time when the newest prompt was."""

    @asynccontextmanager
    async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
        lane = self._lanes.take(prompt) or HeldThread(identity(prompt), Started("thread", ephemeral=True))
        orjson.dumps(turn_params("thread", prompt, lane.say(prompt).newest))
        self.sent = time.process_time()

        def resume(meanings: frozenset[bytes] | None) -> None:
            if meanings is not None:
                lane.hold(prompt, meanings, Usage())
                self._lanes.keep(lane, 0.0)

        prompt.continuation.resume = resume
        yield self._end()

    async def _end(self) -> AsyncIterator[Sequence[BackendEvent]]:
        yield [TextPiece(ANSWER), TurnEnded(Usage(1, 0, 1))]


async def _going_on(items: int) -> float:
    """Milliseconds of CPU of a request, but for reading its JSON and one digest of its bytes: the least of many, less
    the least that a digest took.
    """
    begun = body(items, items * ITEM * 4 // 3)
    said, backend = begun["input"][:-1], Keeping()
    least = digest = math.inf
    for number in range(REQUESTS):
        said.append({"role": "user", "content": f"Question {number}?"})
        content = orjson.dumps({**begun, "input": said})
        read = parse_json_object(content)
        begun_at = time.process_time()
        blake2b(content).digest()
        digested = time.process_time()
        parsed = parse_responses_request(read)
        ResponsesBuilder(parsed).start()
        async for _ in run_turn(parsed.turn, backend, OPTIONS, TurnReport()):
            pass
        if number:
            least, digest = min(least, backend.sent - digested), min(digest, digested - begun_at)
        said.append({"role": "assistant", "content": ANSWER})
        del read, parsed  # before the next is measured
    return (least - digest) * 1000


def rows() -> Iterator[Row]:
    few, many = (asyncio.run(_going_on(items)) for items in (10, 1000))
    yield ratio("a conversation of 1,000 items goes on, to one of 10: CPU", many, few, "ms", 2)
