"""Two tagcall processes on one Redis behind Debian's nginx, with the configuration that the how-to gives."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from openai import AsyncOpenAI, OpenAIError
from pytest_aiohttp import AiohttpServer

from parser import write_call
from tests.support.conversation import results_shown
from tests.support.machine import Machine
from tests.support.nginx import wants_nginx
from tests.support.nginx_site import CONFIGURATION, machines_behind_nginx
from tests.support.patience import PATIENCE
from tests.support.redis_server import wants_servers
from tests.support.scripted_model import Message, Reply, ScriptedModel

pytestmark = [*wants_servers, wants_nginx]

TOOLS: list[Any] = [{"type": "function", "name": "read_note", "parameters": {"type": "object"}, "strict": False}]

# Requests of one loop: three calls and the answer.
STEPS = 4
WORKERS = 6


@dataclass
class Site:
    url: str
    machines: list[Machine]

    def client(self, **options: Any) -> AsyncOpenAI:
        return AsyncOpenAI(base_url=self.url, api_key="mine", max_retries=0, timeout=PATIENCE, **options)


Opening = Callable[[str], Awaitable[Site]]


@pytest.fixture
async def site(aiohttp_server: AiohttpServer, tmp_path: Path) -> AsyncIterator[Opening]:
    """Given a configuration, all of it."""
    async with AsyncExitStack() as stack:

        async def begin(configuration: str) -> Site:
            return await stack.enter_async_context(opened(configuration, aiohttp_server, tmp_path))

        yield begin


@asynccontextmanager
async def opened(configuration: str, serve: AiohttpServer, folder: Path) -> AsyncIterator[Site]:
    models = [ScriptedModel(), ScriptedModel()]
    for model in models:
        model.url = str((await serve(model.app, access_log=None, shutdown_timeout=0.1)).make_url("/v1"))
    async with machines_behind_nginx(configuration, models, folder) as (url, machines):
        yield Site(url, machines)


@dataclass
class Load:
    """Tool loops, some of them streamed, one after the other for each of the workers, until it is enough."""

    site: Site
    ended: int = 0
    failed: dict[int, Exception] = field(default_factory=dict)
    enough: bool = False
    _begun: int = 0
    # By loop, the step that it waits for; by loop and step, whose model was asked.
    _awaited: dict[int, int] = field(default_factory=dict)
    _asked: dict[tuple[int, int], Machine] = field(default_factory=dict)
    _progress: asyncio.Condition = field(default_factory=asyncio.Condition)

    def __post_init__(self) -> None:
        for machine in self.site.machines:
            machine.model.choose = self._answers_of(machine)

    def _answers_of(self, machine: Machine) -> Callable[[Mapping[str, Any]], Reply]:
        def answer(body: Mapping[str, Any]) -> Reply:
            step = len(results_shown(body))
            found = re.search(r"Question (\d+)", str(body))
            assert found is not None
            self._asked[int(found[1]), step] = machine
            call = write_call("read_note", f'{{"path": "{step}.md"}}')
            text = "Done." if step == STEPS - 1 else f"I look at the next of these notes.\n{call}"
            return Reply([Message(text)], chunk=4, pace=0.01)

        return answer

    def may_be_at(self, machine: Machine) -> set[int]:
        """The loops that wait for an answer that is not known to come from the other one."""
        return {loop for loop, step in self._awaited.items() if self._asked.get((loop, step), machine) is machine}

    async def more(self, loops: int) -> None:
        """Returns when so many have ended since."""
        wanted = self.ended + loops
        async with asyncio.timeout(PATIENCE), self._progress:
            await self._progress.wait_for(lambda: self.ended >= wanted)

    async def work(self, client: AsyncOpenAI) -> None:
        while not self.enough:
            self._begun += 1
            loop = self._begun
            try:
                await self._loop(client, loop)
            except OpenAIError as error:
                self.failed[loop] = error
            self._awaited.pop(loop, None)
            async with self._progress:
                self.ended += 1
                self._progress.notify_all()

    async def _loop(self, client: AsyncOpenAI, loop: int) -> None:
        given: Any = f"Question {loop}"
        previous: Any = {}
        for step in range(STEPS):
            self._awaited[loop] = step
            request = {"model": "gpt-5.5", "input": given, "tools": TOOLS, **previous}
            response = await (streamed if loop % 2 else whole)(client, request)
            last = response.output[-1].to_dict()
            if step == STEPS - 1:
                assert response.output_text == "Done."
                return
            given = [{"type": "function_call_output", "call_id": last["call_id"], "output": f"Note {step}"}]
            previous = {"previous_response_id": response.id}


async def whole(client: AsyncOpenAI, request: dict[str, Any]) -> Any:
    return await client.responses.create(**request)


async def streamed(client: AsyncOpenAI, request: dict[str, Any]) -> Any:
    answer = None
    async for event in await client.responses.create(**request, stream=True):
        if event.type == "response.completed":
            answer = event.response
    if answer is None:
        raise OpenAIError("the stream ended before its answer")
    return answer


async def test_a_process_goes_and_comes_back_and_no_tool_loop_fails_but_those_in_flight_on_it(site: Opening) -> None:
    where = await site(CONFIGURATION)
    load = Load(where)
    first = where.machines[0]

    async def comes_back() -> None:
        first.model.called.clear()
        await first.start()
        async with asyncio.timeout(PATIENCE):
            await first.model.called.wait()

    async with where.client() as client, asyncio.TaskGroup() as group:
        for _ in range(WORKERS):
            group.create_task(load.work(client))
        await load.more(WORKERS)
        await first.stop()
        await load.more(WORKERS)
        await comes_back()
        await load.more(WORKERS)
        assert load.failed == {}
        in_flight = load.may_be_at(first)
        await first.stop(signal.SIGKILL)
        await load.more(WORKERS)
        await comes_back()
        await load.more(WORKERS)
        load.enough = True
    assert set(load.failed) <= in_flight


async def test_sticky_requests_of_one_conversation_reach_one_process(site: Opening) -> None:
    where = await site(CONFIGURATION)
    text = "long " * 40_000  # more than a usual buffer

    def asked() -> list[int]:
        return [len(machine.model.requests) for machine in where.machines]

    async with where.client() as client:
        names: list[dict[str, Any]] = [{"prompt_cache_key": f"key-{number}"} for number in range(10)]
        names += [{"conversation": (await client.conversations.create()).id} for _ in range(2)]
        chosen = set()
        for name in names:
            before = asked()
            for _ in range(3):
                await client.responses.create(model="gpt-5.5", input=text, **name)
            chosen.add(tuple(now - then for now, then in zip(asked(), before, strict=True)))
    assert chosen == {(3, 0), (0, 3)}


async def test_a_stream_comes_as_it_is_written_and_a_socket_is_let_through(site: Opening) -> None:
    where = await site(CONFIGURATION)
    gate = asyncio.Event()
    for machine in where.machines:
        machine.model.default = Reply([Message("one two three")], chunk=4, hold_after=2, gate=gate)
    async with where.client() as client:
        stream = await client.responses.create(model="gpt-5.5", input="hi", stream=True)
        said = ""
        async for event in stream:
            if event.type == "response.output_text.delta":
                said += event.delta
                gate.set()
    assert said == "one two three"
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{where.url}/realtime?model=gpt-5.5") as socket:
        assert (await socket.receive_json())["type"] == "session.created"


async def test_when_none_is_there_clients_are_told_in_their_own_words(site: Opening) -> None:
    where = await site(CONFIGURATION)
    for machine in where.machines:
        await machine.stop()
    async with aiohttp.ClientSession() as session:
        for path in ("responses", "conversations"):
            async with session.post(f"{where.url}/{path}", json={"model": "m", "input": "hi"}) as response:
                assert (response.status, response.headers["Retry-After"]) == (503, "2")
                assert (await response.json())["error"]["code"] == "backend_unavailable"
