"""A soak: the whole of tagcall for many minutes, with clients that leave and an app-server that is killed. By hand.

    load, checks  --HTTP-->  tagcall serve  --JSON-RPC-->  codex app-server  --HTTP-->  scripted model
    (this process)           (its process)                 (its child)                  (this process)

    python -m tests.soak --minutes 15          # or `make soak`

Each answer has a mark of its own and is held to it, whole. A failure is right around a crash only, and then what came
before it has to be the begin of the right answer. Crashes come in the first two of every four minutes, so that in the
others an app-server wears out and is replaced. What is not as promised ends in exit status 1:

- no wrong answer
- tagcall's memory grows by less than 1 MB in 10 minutes, by least squares after the first two
- at the end no turn is open, and as many descriptors as at the begin
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import psutil
from aiohttp.test_utils import TestServer

from parser import write_call
from proxy.rpc.processes import resident_bytes
from tests.support.codex_programs import child_environment, installed_programs
from tests.support.processes import app_servers
from tests.support.responses_grammar import check_events
from tests.support.scripted_model import Message, Reasoning, Reply, ScriptedModel

ROOT = Path(__file__).resolve().parents[1]
READY = re.compile(rb"ready on (http://127\.0\.0\.1:\d+)/v1")

# Requests a second.
RATE = 5.0
# The share of streams whose client leaves.
LEAVING = 0.1
# The share of requests beside which the app-server is killed, in a minute with crashes.
CRASHES = 0.02
# Requests of a conversation, on average: a tool loop has two.
REQUESTS_EACH = 1.45
# Seconds between two events of the model.
PACE = 0.02
# Seconds after a crash in which a request may fail.
AFTERMATH = 5.0
# Seconds for any answer.
PATIENCE = 60.0
# Seconds that our idle connections stay open.
KEPT = 2.0
# Seconds after which growth counts.
WARM = 120.0
# MB in 10 minutes.
GROWTH = 1.0

LEVEL = re.compile(r'"level": ?"(\w+)"')
# Around a crash; the last is what a Response may say of the others.
RIGHT_FAILURES = {"backend_disconnected", "backend_unavailable", "server_error"}

ASKED = re.compile(r"Mark (m\d+), (\d+) pieces(, from its note)?\.")
OPENING = "I look it up."
TOOL = {
    "name": "read_note",
    "description": "Read a note.",
    "parameters": {"type": "object", "properties": {"mark": {"type": "string"}}, "required": ["mark"]},
}


@dataclass(frozen=True, slots=True)
class Ask:
    """One conversation. `by_id`: its second request continues the stored response."""

    mark: str
    pieces: int
    chat: bool
    stream: bool
    loop: bool
    by_id: bool

    @property
    def prompt(self) -> str:
        return f"Mark {self.mark}, {self.pieces} pieces{', from its note' if self.loop else ''}."

    @property
    def note(self) -> str:
        return f"The note of {self.mark}."

    @property
    def answer(self) -> str:
        return answer(self.mark, self.pieces)


def answer(mark: str, pieces: int) -> str:
    return "".join(f"{mark}, piece {number}. " for number in range(pieces)) + "The end."


def opening(mark: str) -> str:
    """The text with the call."""
    return f"{OPENING}\n{write_call('read_note', json.dumps({'mark': mark}))}"


def model_reply(body: Mapping[str, Any]) -> Reply:
    """What the model says to a prompt: a call first where it is to look into the note, which has not come yet."""
    shown = json.dumps(body["input"])
    mark, pieces, loop = ASKED.findall(shown)[-1]
    if loop and f"The note of {mark}." not in shown:
        return Reply([Message(opening(mark))], pace=PACE)
    text = answer(mark, int(pieces))
    return Reply([Reasoning([f"On {mark}."]), Message(text)], chunk=len(text) // int(pieces), pace=PACE)


@dataclass(frozen=True, slots=True)
class Call:
    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Said:
    """An answer, whichever its wire. `error` is the code of a failure; `id` that of a response."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    error: str | None = None
    id: str = ""


def said_by_response(response: Mapping[str, Any]) -> Said:
    parts = [part for item in response["output"] if item["type"] == "message" for part in item["content"]]
    calls = [item for item in response["output"] if item["type"] == "function_call"]
    return Said(
        "".join(part["text"] for part in parts),
        tuple(Call(call["call_id"], call["name"], call["arguments"]) for call in calls),
        response["error"] and response["error"]["code"],
        response["id"],
    )


def said_by_chunks(chunks: Sequence[Mapping[str, Any]]) -> Said:
    """Adds them up; exactly one, the last, says how it ended."""
    text: list[str] = []
    calls: list[list[str]] = []
    for chunk in chunks:
        for choice in chunk.get("choices", ()):
            text.append(choice["delta"].get("content") or "")
            for call in choice["delta"].get("tool_calls", ()):
                if "id" in call:
                    calls.append([call["id"], call["function"]["name"], ""])
                calls[call["index"]][2] += call["function"]["arguments"]
    ends = ["error" in chunk or bool(chunk["choices"][0]["finish_reason"]) for chunk in chunks]
    assert ends.index(True) == len(ends) - 1, "a stream has one end, which is its last chunk"
    error = chunks[-1]["error"]["code"] if "error" in chunks[-1] else None
    return Said("".join(text), tuple(Call(*call) for call in calls), error)


def said_by_completion(completion: Mapping[str, Any]) -> Said:
    message = completion["choices"][0]["message"]
    calls = [(call["id"], call["function"]) for call in message.get("tool_calls", ())]
    return Said(message["content"] or "", tuple(Call(call, made["name"], made["arguments"]) for call, made in calls))


def data_of(content: bytes) -> list[str]:
    """The data of each whole event of a stream."""
    blocks = content.decode().split("\n\n")[:-1]
    return [block.partition("data: ")[2] for block in blocks if "data: " in block]


def said(ask: Ask, status: int, content: bytes) -> Said:
    """What a whole answer says. Raises `AssertionError` when it is not in order."""
    if status != 200:
        return Said(error=json.loads(content)["error"]["code"])
    if not ask.stream:
        body = json.loads(content)
        return said_by_completion(body) if ask.chat else said_by_response(body)
    *data, done = data_of(content)
    assert done == "[DONE]", f"a stream ends with {done}"
    events = [json.loads(event) for event in data]
    return said_by_chunks(events) if ask.chat else said_by_response(check_events(events))


def begun(ask: Ask, content: bytes) -> str:
    """The text that had come of a stream when its client left."""
    events = [json.loads(event) for event in data_of(content) if event != "[DONE]"]
    if ask.chat:
        return "".join(choice["delta"].get("content") or "" for event in events for choice in event.get("choices", ()))
    return "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")


class Target:
    """tagcall as a process, seen from outside."""

    def __init__(self, process: asyncio.subprocess.Process, url: str, http: aiohttp.ClientSession) -> None:
        self.pid = process.pid
        self.url = url
        self.http = http

    async def gauge(self, name: str) -> int:
        async with self.http.get(f"{self.url}/metrics") as response:
            lines = (await response.text()).splitlines()
        return next(int(float(line.split()[1])) for line in lines if line.startswith(f"tagcall_{name} "))

    def children(self) -> list[int]:
        return app_servers(self.pid)


def megabytes(pid: int) -> float:
    return (resident_bytes(pid) or 0) / 2**20


def descriptors(pid: int) -> int:
    try:
        return int(psutil.Process(pid).num_fds())
    except psutil.Error:  # it has just ended
        return 0


@asynccontextmanager
async def running(folder: Path, *arguments: str) -> AsyncIterator[Target]:
    """A server with these arguments; with codex from PyPI, unless they name another backend."""
    program = installed_programs()[0].path
    if program is None:
        sys.exit("openai-codex-cli-bin is not installed")
    command = ["-m", "proxy.cli", "serve", "--port", "0", "--log-format", "json"]
    command += ["--store", f"sqlite:{folder / 'responses.sqlite'}", *arguments]
    if "--backend" not in arguments:
        command += ["--backend", "codex", "--codex", str(program), "--codex-home", str(folder / "home")]
    env = {**child_environment(folder), "PYTHONPATH": str(ROOT)}
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, cwd=ROOT, env=env, stdout=asyncio.subprocess.PIPE, stderr=log
        )
        try:
            assert process.stdout is not None
            while not (ready := READY.search(line := await process.stdout.readline())):
                if not line:
                    sys.exit(f"tagcall does not start: {(folder / 'log').read_text()}")
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT)) as http:
                yield Target(process, ready[1].decode(), http)
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
            await process.wait()


@dataclass(slots=True)
class Tally:
    """Of a minute, or of all of them. `firsts` are the seconds to the first event of each stream."""

    counts: Counter[str] = field(default_factory=Counter)
    firsts: list[float] = field(default_factory=list)

    def first(self, percentile: int) -> float:
        """Milliseconds."""
        cuts = statistics.quantiles(self.firsts, n=100, method="inclusive") if len(self.firsts) > 1 else [0.0] * 99
        return cuts[percentile - 1] * 1000


@dataclass(frozen=True, slots=True)
class Sample:
    at: float
    tagcall: float
    child: float
    descriptors: int


def slope(points: Iterable[tuple[float, float]]) -> float:
    """Growth in 10 minutes, by least squares; the first of a point is seconds."""
    at, values = zip(*points, strict=True)
    return statistics.linear_regression(at, values).slope * 600


class Soak:
    def __init__(self, target: Target, rate: float, chance: random.Random) -> None:
        self.target = target
        self.rate = rate
        self.chance = chance
        self.crashing = True
        self.killed: list[float] = []
        self.minute = Tally()
        self.total = Tally()
        self.samples: list[Sample] = []
        self.clients = asyncio.TaskGroup()

    def count(self, what: str) -> None:
        self.minute.counts[what] += 1
        self.total.counts[what] += 1

    def around_a_crash(self, begin: float, end: float) -> bool:
        return any(begin - AFTERMATH <= at <= end for at in self.killed)

    # One conversation

    def ask(self, number: int) -> Ask:
        chat, stream, loop, by_id = (self.chance.random() < share for share in (0.5, 0.67, 0.5, 0.5))
        return Ask(f"m{number}", self.chance.randint(3, 40), chat, stream, loop, by_id)

    async def converse(self, ask: Ask) -> None:
        try:
            await self.conversation(ask)
        except (AssertionError, LookupError, ValueError, TypeError, OSError, aiohttp.ClientError) as fault:
            self.count("wrong")
            print(f"  wrong: {ask}: {type(fault).__name__}: {fault}", flush=True)

    async def conversation(self, ask: Ask) -> None:
        asked: list[dict[str, Any]] = [{"role": "user", "content": ask.prompt}]
        heard = await self.request(ask, {"messages" if ask.chat else "input": asked}, not ask.loop)
        if not ask.loop or heard is None:
            return
        (call,) = heard.calls
        if ask.chat:
            function = {"name": call.name, "arguments": call.arguments}
            made = {"id": call.id, "type": "function", "function": function}
            asked += [
                {"role": "assistant", "content": heard.text, "tool_calls": [made]},
                {"role": "tool", "tool_call_id": call.id, "content": ask.note},
            ]
            await self.request(ask, {"messages": asked}, True)
            return
        result = {"type": "function_call_output", "call_id": call.id, "output": ask.note}
        if ask.by_id:
            await self.request(ask, {"previous_response_id": heard.id, "input": [result]}, True)
            return
        made = {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
        await self.request(ask, {"input": [*asked, {"role": "assistant", "content": heard.text}, made, result]}, True)

    async def request(self, ask: Ask, body: dict[str, Any], last: bool) -> Said | None:
        """What came, held to what had to come; None when the client left or a failure was right."""
        self.count("requests")
        body |= {"model": "gpt-5.5", "stream": ask.stream}
        if ask.loop:
            body["tools"] = [{"type": "function", "function": TOOL} if ask.chat else {"type": "function", **TOOL}]
        lasts = PACE * (ask.pieces + 10) + 0.2
        leaves = ask.stream and self.chance.random() < LEAVING
        patience = self.chance.uniform(0, lasts) if leaves else PATIENCE
        if self.crashing and self.chance.random() < CRASHES:
            self.clients.create_task(self.kill(self.chance.uniform(0, lasts)), name="crash")
        # A call that a crash cuts off leaves as the text that it is.
        right = ask.answer if last else opening(ask.mark)
        content = bytearray()
        begin = time.monotonic()
        try:
            async with asyncio.timeout(patience):
                status = await self.post(ask, body, content)
        except TimeoutError:
            assert leaves, f"no end in {PATIENCE} seconds: {bytes(content[-500:])!r}"
            self.count("left")
            text = begun(ask, bytes(content))
            assert right.startswith(text), text
            return None
        end = time.monotonic()
        heard = said(ask, status, bytes(content))
        if heard.error is not None:
            self.count("failed")
            assert self.around_a_crash(begin, end), f"{status} {heard.error} without a crash"
            assert heard.error in RIGHT_FAILURES, heard.error
            assert right.startswith(heard.text), heard.text
            return None
        assert heard.text.rstrip() == (right if last else OPENING), heard.text
        made = [(call.name, json.loads(call.arguments)) for call in heard.calls]
        assert made == ([] if last else [("read_note", {"mark": ask.mark})]), made
        return heard

    async def post(self, ask: Ask, body: Mapping[str, Any], content: bytearray) -> int:
        """The status; `content` fills as it comes."""
        path = "/v1/chat/completions" if ask.chat else "/v1/responses"
        begin = time.monotonic()
        async with self.target.http.post(self.target.url + path, json=body) as response:
            async for piece in response.content.iter_any():
                if ask.stream and not content:
                    for tally in (self.minute, self.total):
                        tally.firsts.append(time.monotonic() - begin)
                content += piece
            return response.status

    async def kill(self, after: float) -> None:
        await asyncio.sleep(after)
        if children := self.target.children():
            self.killed.append(time.monotonic())
            os.kill(self.chance.choice(children), signal.SIGKILL)
            self.count("crashes")

    # All of them

    async def run(self, minutes: float) -> None:
        begin = time.monotonic()
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(self.watch(begin), name="watch")
            async with self.clients:
                number = 0
                while time.monotonic() < begin + 60 * minutes:
                    number += 1
                    self.clients.create_task(self.converse(self.ask(number)), name=f"client {number}")
                    await asyncio.sleep(self.chance.expovariate(self.rate / REQUESTS_EACH))
            watch.cancel()

    async def watch(self, begin: float) -> None:
        """A sample every five seconds, a line every minute."""
        print("min requests failed wrong  left crashes  tagcall    child  fds  child's  open  p50   p99 (first event)")
        for tick in range(1, 10**9):
            await asyncio.sleep(begin + 5 * tick - time.monotonic())
            children = self.target.children()
            memory = sum(map(megabytes, children))
            self.samples.append(Sample(5.0 * tick, megabytes(self.target.pid), memory, descriptors(self.target.pid)))
            if tick % 12 == 0:
                open_turns = await self.target.gauge("backend_open_turns")
                counts = [self.minute.counts[what] for what in ("requests", "failed", "wrong", "left", "crashes")]
                print(
                    "{:3} {:8} {:6} {:5} {:5} {:7}".format(tick // 12, *counts),
                    f"{self.samples[-1].tagcall:5.1f} MB {memory:5.0f} MB {self.samples[-1].descriptors:4}",
                    f"{sum(map(descriptors, children)):8} {open_turns:5} {self.minute.first(50):4.0f}",
                    f"{self.minute.first(99):5.0f} ms",
                    flush=True,
                )
                self.minute = Tally()
                self.crashing = (tick // 12) % 4 < 2


async def quiet(target: Target) -> tuple[int, int]:
    """Open turns and descriptors, once nothing more ends by itself."""
    open_turns = -1
    try:
        async with asyncio.timeout(20):
            while open_turns := await target.gauge("backend_open_turns"):  # noqa: ASYNC110 -- another process's
                await asyncio.sleep(0.1)
    except TimeoutError:
        pass
    # Connections of clients that have gone and an app-server that leaves take a moment.
    await asyncio.sleep(5)
    return open_turns, descriptors(target.pid)


async def soak(minutes: float, rate: float, seed: int) -> bool:
    """Whether all is as promised."""
    with tempfile.TemporaryDirectory() as folder:
        model = ScriptedModel()
        async with TestServer(model.app) as server:
            model.url = str(server.make_url("/v1"))

            def reply(body: Mapping[str, Any]) -> Reply:
                model.requests.clear()
                return model_reply(body)

            model.choose = reply
            async with running(Path(folder), "--upstream", model.url) as target:
                run = Soak(target, rate, random.Random(seed))  # noqa: S311 -- no secret
                run.crashing = False
                await run.converse(Ask("m0", 3, chat=False, stream=True, loop=True, by_id=True))
                run.crashing = True
                _, before = await quiet(target)
                await run.run(minutes)
                open_turns, after = await quiet(target)
                starts = await target.gauge("backend_starts_total")
                last = megabytes(target.pid)
        log = (Path(folder) / "log").read_text()
    counted = [sample for sample in run.samples if sample.at >= min(WARM, 30 * minutes)]
    growth = slope((sample.at, sample.tagcall) for sample in counted)
    print(f"all: {dict(run.total.counts)}; {starts} starts of the app-server")
    print(f"lines of the log: {dict(Counter(LEVEL.findall(log)))}")
    for line in [line for line in log.splitlines() if LEVEL.findall(line) == ["error"] or not line.startswith("{")][
        :10
    ]:
        print(f"  {line}")
    print(f"first event: p50 {run.total.first(50):.0f} ms, p99 {run.total.first(99):.0f} ms")
    print(f"memory: {last:.1f} MB at the end, {growth:+.2f} MB in 10 minutes")
    print(f"app-server's memory: {slope((sample.at, sample.child) for sample in counted):+.0f} MB in 10 minutes")
    print(
        f"descriptors: {before} before, {after} after; under load "
        f"{slope((sample.at, sample.descriptors) for sample in counted):+.1f} in 10 minutes"
    )
    print(f"open turns at the end: {open_turns}")
    return not run.total.counts["wrong"] and growth < GROWTH and not open_turns and after <= before


def main() -> None:
    if sys.platform != "linux":
        sys.exit("Descriptors of another process are looked at as on Linux.")
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="Load and crashes for many minutes.")
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--rate", type=float, default=RATE, help="requests a second")
    parser.add_argument("--seed", type=int, default=0, help="of all that is random")
    options = parser.parse_args()
    sys.exit(0 if asyncio.run(soak(options.minutes, options.rate, options.seed)) else 1)


if __name__ == "__main__":
    main()
