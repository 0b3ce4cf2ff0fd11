"""Attacks on a whole tagcall with its limits as shipped, from one address. By hand, and in front of `make soak`.

    attackers, and a client that is none  --HTTP-->  tagcall serve  -->  codex, or no program  -->  scripted model
    (this process)                                   (its process)                                  (this process)

    python -m tests.attacks

Tests hold each bound in steps. This shows what they come to in a server's memory, sockets and CPU time. What is not as
promised ends in exit status 1:

- a model that never ends costs a bounded amount of memory, whatever it writes, and each answer is cut
- beside 300 bodies that stall and 1,000 WebSockets without a turn a client of the same address is served in a second
- through a trusted proxy 300 streams are served at a time, and none is refused
- headers that a model writes thousands of times over a long note take less than half a second of CPU time
- an event of half a million choices holds nobody else up for a second
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import psutil
from aiohttp.test_utils import TestServer

from tests.soak import Target, megabytes, quiet, running
from tests.support.scripted_chat import ScriptedChat
from tests.support.scripted_model import Message, Reasoning, Reply, ScriptedModel

# Characters of an answer that is never heard to its end.
ENDLESS = 48 << 20
# Characters of each of its deltas.
DELTA = 1024
# MB that tagcall may grow: 16 times `--max-answer`. The last events hold an answer several times, as text and as bytes.
GROWTH = 256
# Seconds between two looks at its memory, and between two requests of the client that is no attacker.
LOOK = 0.02
BESIDE = 0.2
# Seconds in which that one is served, and in which nobody gives way who has just come.
SERVED = 1.0
IDLE = 1.0
# Of CPU time for 30 kB of headers over a note of 500 kB, and for 440 kB of tags in each of two answers.
HEADERS, TAGS = 0.5, 2.0

BODIES, SOCKETS, STREAMS = 300, 1_000, 300
STALLED = b"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
UPGRADE = (
    b"GET /v1/responses HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
QUESTION: dict[str, Any] = {"model": "gpt-5.5", "input": "hi"}
TOOLS = [{"type": "function", "name": "read_note", "parameters": {"type": "object"}, "strict": False}]

# What a model does without an end.
KINDS: dict[str, Callable[[], Message | Reasoning]] = {
    "text": lambda: Message("word " * (ENDLESS // 5)),
    "thoughts": lambda: Reasoning(["word " * (ENDLESS // 5)]),
    "an open call": lambda: Message('<tool_call>{"name": "read_note", "arguments": {"path": "' + "x" * ENDLESS),
}


class Verdict:
    """What was seen, a line each, and whether all of it is as promised."""

    def __init__(self) -> None:
        self.as_promised = True

    def say(self, what: str, *, right: bool) -> None:
        self.as_promised = self.as_promised and right
        print(f"{'' if right else 'NOT AS PROMISED: '}{what}", flush=True)


@asynccontextmanager
async def served(model: ScriptedModel, *arguments: str, codex: bool = False) -> AsyncIterator[Target]:
    """A tagcall of its own in front of `model`."""
    with tempfile.TemporaryDirectory() as folder:
        async with TestServer(model.app) as server:
            model.url = str(server.make_url("/v1"))
            backend = ["--upstream", model.url] if codex else ["--backend", model.url]
            async with running(Path(folder), *backend, *arguments) as target:
                yield target


async def ask(target: Target, given: object = "hi", **more: Any) -> dict[str, Any]:
    body = {**QUESTION, "input": given, **more}
    async with target.http.post(f"{target.url}/v1/responses", json=body) as response:
        answer: dict[str, Any] = await response.json()
    return answer


@asynccontextmanager
async def beside(
    watch: Callable[[Target, asyncio.Event], Coroutine[Any, Any, float]], target: Target
) -> AsyncIterator[asyncio.Task[float]]:
    """Watches as long as the body runs; its result is there then."""
    over = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(watch(target, over), name="watch")
        try:
            yield task
        finally:
            over.set()


# Memory


async def most_memory(target: Target, over: asyncio.Event) -> float:
    """MB."""
    most = 0.0
    while not over.is_set():
        most = max(most, megabytes(target.pid))
        await asyncio.sleep(LOOK)
    return most


async def endless(verdict: Verdict, *, codex: bool) -> None:
    """Each kind with a server of its own: what one has freed is there for the next one."""
    where = "codex" if codex else "a Chat server"
    for kind, item in KINDS.items():
        for stream in (True, False):
            model = ScriptedModel() if codex else ScriptedChat()
            async with served(model, codex=codex) as target:
                await ask(target)
                model.push(Reply([item()], chunk=DELTA))
                before = megabytes(target.pid)
                wanted = {"tools": TOOLS, "stream": stream, "reasoning": {"summary": "auto"}}
                async with (
                    beside(most_memory, target) as most,
                    target.http.post(f"{target.url}/v1/responses", json={**QUESTION, **wanted}) as response,
                ):
                    told = await response.read()
                grown, after = most.result() - before, megabytes(target.pid) - before
                open_turns, _ = await quiet(target)
            # A codex that is faster than its client ends with what may wait.
            cut = b'"status":"incomplete"' in told or b"is not read as fast as it comes" in told
            said = f"{kind} without an end from {where}, {'streamed' if stream else 'whole'}: {grown:+.0f} MB at most"
            end = f"{'cut' if cut else told[-500:]!r}; then {after:+.0f} MB, {open_turns} open turns"
            verdict.say(f"{said}, {end}", right=cut and grown < GROWTH and not open_turns)


# Sockets


async def longest_wait(target: Target, over: asyncio.Event) -> float:
    """Seconds until a client is served. It comes again and again, and at once where it is refused: each time anew."""
    longest = 0.0
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as http:
        while not over.is_set():
            began, status = time.monotonic(), 0
            while status != 200:
                try:
                    async with http.get(f"{target.url}/v1/models") as response:
                        status = response.status
                        await response.read()
                except aiohttp.ClientError:  # one of too many that are told so
                    status = 503
                await asyncio.sleep(LOOK)
            longest = max(longest, time.monotonic() - began)
            await asyncio.sleep(BESIDE)
    return longest


async def sockets(verdict: Verdict) -> None:
    async with served(ScriptedChat()) as target, AsyncExitStack() as open_ones:
        address = urlsplit(target.url)
        for what, count, request in (("bodies that stall", BODIES, STALLED), ("idle WebSockets", SOCKETS, UPGRADE)):
            async with beside(longest_wait, target) as coming:
                for _ in range(count):
                    _, writer = await asyncio.open_connection(address.hostname, address.port)
                    open_ones.callback(writer.close)
                    writer.write(request)
                await asyncio.sleep(IDLE)
            async with beside(longest_wait, target) as there:
                await asyncio.sleep(3 * SERVED)
            said = f"a client waits for {there.result():.2f} s at most beside {count:,} {what} of its address"
            verdict.say(f"{said}, for {coming.result():.2f} s while they come", right=there.result() < SERVED)
            verdict.as_promised &= coming.result() < IDLE + SERVED


async def streams(verdict: Verdict) -> None:
    gate = asyncio.Event()
    model = ScriptedChat()
    model.choose = lambda _: Reply([Message("word " * 20)], hold_after=1, gate=gate)
    async with served(model, "--trusted-proxy", "127.0.0.1") as target:
        begun: list[None] = []

        async def one(number: int) -> str:
            headers = {"X-Forwarded-For": f"10.0.{number // 100}.{number % 100}"}
            asked = target.http.post(f"{target.url}/v1/responses", json={**QUESTION, "stream": True}, headers=headers)
            async with asked as response:
                first = await response.content.readany()
                begun.append(None)
                if len(begun) == STREAMS:
                    gate.set()
                rest = await response.read()
            return (
                "served" if response.status == 200 and b"response.completed" in first + rest else str(response.status)
            )

        async with asyncio.timeout(120):
            ends = Counter(await asyncio.gather(*map(one, range(STREAMS))))
        verdict.say(
            f"{STREAMS} streams at a time through a trusted proxy: {dict(ends)}", right=ends["served"] == STREAMS
        )


# CPU time


def cpu_seconds(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


async def repeats(verdict: Verdict) -> None:
    """A history with a note of 500 kB in it, and a model that writes what is looked for in it."""
    note = "Beans want sun. " * 32_000
    call = {"type": "function_call", "call_id": "c1", "name": "read_note", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c1", "output": note}
    history: list[Any] = [{"role": "user", "content": "Read"}, call, result]
    model = ScriptedChat()
    async with served(model) as target:
        await ask(target)
        for written, most in (
            ("So.", HEADERS), ("[tool:c1] " * 3_000, HEADERS), ("\n[tool:c1] " * 3_000, HEADERS),
            ("<tool_call>" * 40_000, TAGS),
        ):  # fmt: skip
            model.push(*[Reply([Message(written)], chunk=DELTA)] * 3)
            before = cpu_seconds(target.pid)
            await ask(target, history, tools=TOOLS)
            spent = cpu_seconds(target.pid) - before
            said = f"{len(written):,} characters of {written[:12]!r} over a note of {len(note):,}: {spent:.2f} CPU s"
            verdict.say(said, right=spent < most)
            model._script.clear()


class Wide(ScriptedChat):
    """Its first event has half a million choices."""

    def _lines(self, reply: Reply) -> Any:
        choice = {"index": 1, "delta": {"content": "x"}}
        yield b"data: " + json.dumps({"choices": [choice] * 500_000}).encode() + b"\n\n", False
        yield from super()._lines(reply)


async def longest_look(target: Target, over: asyncio.Event) -> float:
    """Seconds in which the server says that it is there."""
    longest = 0.0
    while not over.is_set():
        began = time.monotonic()
        async with target.http.get(f"{target.url}/healthz") as response:
            await response.read()
        longest = max(longest, time.monotonic() - began)
        await asyncio.sleep(LOOK)
    return longest


async def choices(verdict: Verdict) -> None:
    async with served(Wide()) as target:
        async with beside(longest_look, target) as waited:
            await ask(target)
        said = f"beside an event of 500,000 choices the server is silent for {waited.result():.2f} s at most"
        verdict.say(said, right=waited.result() < SERVED)


async def attacks() -> bool:
    """Whether all is as promised."""
    verdict = Verdict()
    await sockets(verdict)
    await streams(verdict)
    await repeats(verdict)
    await choices(verdict)
    for codex in (False, True):
        await endless(verdict, codex=codex)
    return verdict.as_promised


def main() -> None:
    sys.exit(0 if asyncio.run(attacks()) else 1)


if __name__ == "__main__":
    main()
