"""A storm: tool loops over two servers, one of which is killed every ten seconds, and a client that fails. By hand.

    loops, and one that fails  -->  nginx  -->  2 x (tagcall serve --> codex app-server)  -->  scripted model
    (this process)                                        |                                    (this process)
                                                     Redis or Valkey

    python -m tests.storm --loops 300          # or `make storm`

A loop is five requests, four of them answered by a call, streamed and not, by `previous_response_id` or in a
conversation. Its client asks once more where a connection or a stream breaks, and where a conversation is locked, as
clients do. What is not as promised ends in exit status 1:

- no loop is lost, and none hangs
- no call comes twice, and no answer stands twice in a conversation
- no conversation is locked for more than five seconds
- the client that fails, once a second, has none of the others refused
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp.test_utils import TestServer
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, OpenAIError

from parser import write_call
from proxy.replay.key_placeholder import key_of
from tests.support.conversation import results_shown
from tests.support.machine import Machine
from tests.support.nginx_site import CONFIGURATION, machines_behind_nginx
from tests.support.scripted_model import Message, Refusal, Reply, ScriptedModel

TOOLS: list[Any] = [{"type": "function", "name": "read_note", "parameters": {"type": "object"}, "strict": False}]

# Requests of a loop: the last one is answered in words.
STEPS = 5
# Loops at a time.
WORKERS = 6
# Seconds between two kills, and between two requests of the client that fails.
KILLS = 10.0
FAILURES = 1.0
# Seconds for which a conversation may be locked, and after which a loop hangs.
LOCKED = 5.0
HANGS = 120.0
# Seconds until a client asks once more where nobody says when.
PAUSE = 0.2
# What the model refuses, as a provider that has too much to do.
TOO_MUCH = "too much to do"


class BrokenError(Exception):
    """The stream ended before its answer."""


@dataclass
class Storm:
    """`loops` in all, over the servers behind `url`."""

    url: str
    loops: int
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    longest_lock: float = 0.0
    begun: int = 0

    def client(self) -> AsyncOpenAI:
        return AsyncOpenAI(base_url=self.url, api_key="mine", max_retries=0, timeout=HANGS)

    def wrong(self, what: str, loop: int, why: object) -> None:
        self.counts[what] += 1
        self.problems.append(f"{what}: loop {loop}: {why}")

    async def work(self) -> None:
        async with self.client() as client:
            while self.begun < self.loops:
                self.begun += 1
                loop = self.begun
                try:
                    async with asyncio.timeout(HANGS):
                        await Loop(self, client, loop).run()
                    self.counts["done"] += 1
                except TimeoutError:
                    self.wrong("hanging", loop, f"no end in {HANGS:g} s")
                except (OpenAIError, BrokenError, AssertionError, LookupError) as error:
                    self.wrong("lost", loop, repr(error)[:300])

    async def fail(self) -> None:
        async with self.client() as client:
            while True:
                try:
                    await client.responses.create(model="gpt-5.5", input=TOO_MUCH)
                except OpenAIError:
                    self.counts["requests that failed, as they should"] += 1
                await asyncio.sleep(FAILURES)

    async def kill(self, machines: list[Machine]) -> None:
        for number in range(10**6):
            await asyncio.sleep(KILLS)
            machine = machines[number % len(machines)]
            await machine.stop(signal.SIGKILL)
            self.counts["kills"] += 1
            await machine.start()


class Loop:
    def __init__(self, storm: Storm, client: AsyncOpenAI, number: int) -> None:
        self._storm = storm
        self._client = client
        self._number = number
        self._streams = number % 2 == 0
        self._conversation: str | None = None
        self._calls: list[str] = []

    async def run(self) -> None:
        if self._number % 4 < 2:
            self._conversation = (await self._persist(self._client.conversations.create)).id
        given: Any = f"Question {self._number}"
        where: dict[str, Any] = {} if self._conversation is None else {"conversation": self._conversation}
        for step in range(STEPS):
            request = {"model": "gpt-5.5", "input": given, "tools": TOOLS, **where}
            last = await self._step(step, request)
            if step == STEPS - 1:
                assert last["content"][0]["text"] == "Done.", last
                break
            assert last["type"] == "function_call", last
            if last["call_id"] in self._calls or f'"{step}.md"' not in last["arguments"]:
                self._storm.wrong("twice", self._number, last)
            self._calls.append(last["call_id"])
            given = [{"type": "function_call_output", "call_id": last["call_id"], "output": f"Note {step}"}]
            if self._conversation is None:
                where = {"previous_response_id": self._answered}
        if self._conversation is not None:
            await self._check()

    async def _step(self, step: int, request: dict[str, Any]) -> dict[str, Any]:
        """The last item of the answer, which is looked for in the conversation if it was not heard."""
        locked: float | None = None
        while True:
            try:
                response = await (self._streamed if self._streams else self._whole)(request)
            except (APIConnectionError, BrokenError):
                self._storm.counts["asked once more"] += 1
                if (last := await self._kept(step)) is not None:
                    return last
            except APIStatusError as error:
                if error.code == "conversation_locked":
                    locked = locked or time.monotonic()
                elif error.status_code == 503:
                    self._storm.counts["refused"] += 1
                    self._storm.problems.append(f"refused: loop {self._number}: {error.message[:200]}")
                elif error.status_code < 500:
                    raise
                self._storm.counts["asked once more"] += 1
                await asyncio.sleep(float(error.response.headers.get("retry-after", PAUSE)))
                if (last := await self._kept(step)) is not None:
                    return last
            else:
                if locked is not None:
                    self._storm.longest_lock = max(self._storm.longest_lock, time.monotonic() - locked)
                self._answered = response.id
                return dict(response.output[-1].to_dict())

    async def _persist(self, ask: Any) -> Any:
        while True:
            try:
                return await ask()
            except (APIConnectionError, APIStatusError):
                await asyncio.sleep(PAUSE)

    async def _whole(self, request: dict[str, Any]) -> Any:
        return await self._client.responses.create(**request)

    async def _streamed(self, request: dict[str, Any]) -> Any:
        answer = None
        try:
            async for event in await self._client.responses.create(**request, stream=True):
                if event.type == "response.completed":
                    answer = event.response
        except (APIStatusError, APIConnectionError):
            raise
        except Exception as error:  # httpx tells a broken stream in errors of its own
            raise BrokenError from error
        if answer is None:
            raise BrokenError
        return answer

    async def _items(self) -> list[dict[str, Any]]:
        async def ask() -> list[dict[str, Any]]:
            assert self._conversation is not None
            page = self._client.conversations.items.list(self._conversation, limit=100, order="asc")
            return [dict(item.to_dict()) async for item in page]

        found: list[dict[str, Any]] = await self._persist(ask)
        return found

    async def _kept(self, step: int) -> dict[str, Any] | None:
        """The answer to a step that was appended although it was not heard."""
        if self._conversation is None:
            return None
        items = await self._items()
        made = [item for item in items if item["type"] == "function_call" or item.get("role") == "assistant"]
        answers = [item for item in made if item["type"] == "function_call" or step == STEPS - 1]
        return answers[step] if len(answers) > step else None

    async def _check(self) -> None:
        """The conversation holds each call and each result once, in their order."""
        kinds = Counter((item["type"], str(item["call_id"])) for item in await self._items() if item.get("call_id"))
        wanted = Counter((kind, call) for call in self._calls for kind in ("function_call", "function_call_output"))
        if kinds != wanted:
            self._storm.wrong("twice", self._number, f"{kinds - wanted} too many, {wanted - kinds} missing")


def answer(body: Mapping[str, Any]) -> Reply | Refusal:
    if TOO_MUCH in str(body["input"]):
        return Refusal(503, {"message": "Overloaded.", "code": "server_is_overloaded"})
    step = len(results_shown(body))
    call = write_call("read_note", f'{{"path": "{step}.md"}}', key=_key(body))
    text = "Done." if step == STEPS - 1 else call
    return Reply([Message(text)], chunk=8, pace=0.01)


def _key(body: Mapping[str, Any]) -> str | None:
    return key_of(str(body))


@asynccontextmanager
async def site(folder: Path) -> AsyncIterator[tuple[str, list[Machine]]]:
    """The base URL of nginx, and what stands behind it."""
    model = ScriptedModel()
    model.choose = answer
    async with TestServer(model.app) as server:
        model.url = str(server.make_url("/v1"))
        async with machines_behind_nginx(CONFIGURATION, [model, model], folder) as behind:
            yield behind


async def run(loops: int) -> bool:
    """Whether all is as promised."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        async with site(Path(folder)) as (url, machines):
            storm = Storm(url, loops)
            async with asyncio.TaskGroup() as group:
                beside = [
                    group.create_task(storm.fail(), name="the client that fails"),
                    group.create_task(storm.kill(machines), name="kills"),
                ]
                async with asyncio.TaskGroup() as workers:
                    for number in range(WORKERS):
                        workers.create_task(storm.work(), name=f"worker {number}")
                for task in beside:
                    task.cancel()
    for problem in storm.problems[:20]:
        print(f"  {problem}")
    print(f"{loops} loops in {time.monotonic() - began:.0f} s: {dict(storm.counts)}")
    print(f"the longest lock: {storm.longest_lock:.1f} s")
    wrong = sum(storm.counts[what] for what in ("lost", "hanging", "twice", "refused"))
    return not wrong and storm.longest_lock <= LOCKED


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.storm", description="Tool loops over servers that die.")
    parser.add_argument("--loops", type=int, default=300)
    sys.exit(0 if asyncio.run(run(parser.parse_args().loops)) else 1)


if __name__ == "__main__":
    main()
