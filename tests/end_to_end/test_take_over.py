"""What one of two tagcall processes leaves to the other, each with a codex program of its own, on one real Redis."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from openai import AsyncOpenAI, BadRequestError
from openai.types.responses import Response
from redis.asyncio import Redis

from proxy.stores import make_store
from tests.support.codex_homes import informed_home
from tests.support.codex_programs import installed_programs
from tests.support.patience import PATIENCE
from tests.support.redis_server import RedisServer, redis_server, wants_servers
from tests.support.scripted_model import Message, Reply, ScriptedModel
from tests.support.tagcall_server import tagcall_process

pytestmark = wants_servers

TEXT = "one two three four"


@dataclass(frozen=True)
class Machine:
    process: asyncio.subprocess.Process
    client: AsyncOpenAI

    async def create(self, **more: Any) -> Response:
        response = await self.client.responses.create(model="gpt-5.5", input="Hi", background=True, **more)
        assert isinstance(response, Response)
        return response

    async def ended(self, response_id: str) -> Response:
        async with asyncio.timeout(PATIENCE):
            while (response := await self.client.responses.retrieve(response_id)).status in {"queued", "in_progress"}:
                pass
        return response

    @asynccontextmanager
    async def following(self, response_id: str, after: int | None = None) -> AsyncIterator[AsyncIterator[Any]]:
        """The events as they are: the SDK makes an exception of a failure."""
        url = f"{self.client.base_url}responses/{response_id}?stream=true"
        url += "" if after is None else f"&starting_after={after}"
        headers = {"Authorization": "Bearer mine"}
        async with aiohttp.ClientSession(headers=headers) as session, session.get(url) as reply:
            yield _events(reply)

    async def events(self, response_id: str, after: int | None = None) -> list[dict[str, Any]]:
        async with asyncio.timeout(PATIENCE), self.following(response_id, after) as events:
            return [event async for event in events]

    async def counted(self, name: str) -> float:
        text = (await self.client._client.get(str(self.client.base_url).replace("/v1/", "/metrics"))).text
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


async def _events(reply: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    async for line in reply.content:
        if line.startswith(b"data: {"):
            yield json.loads(line[6:])


async def until(events: AsyncIterator[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    seen = []
    async with asyncio.timeout(PATIENCE):
        async for event in events:
            seen.append(event)
            if event["type"] == kind:
                break
    return seen


def text_of(events: list[dict[str, Any]]) -> str:
    return "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")


def numbers(events: list[dict[str, Any]]) -> list[int]:
    return [event["sequence_number"] for event in events]


@pytest.fixture
async def redis() -> AsyncIterator[RedisServer]:
    async with redis_server() as server:
        yield server


@pytest.fixture
async def two(model: ScriptedModel, redis: RedisServer, tmp_path: Path) -> AsyncIterator[tuple[Machine, Machine]]:
    program = installed_programs()[0]
    assert program.path is not None
    async with AsyncExitStack() as running:
        machines = []
        for name in ("here", "there"):
            arguments = [
                "serve", "--port", "0", "--store", redis.url, "--upstream", model.url,
                "--codex", str(program.path), "--codex-home", str(informed_home(tmp_path / name, program.path)),
            ]  # fmt: skip
            process, url = await running.enter_async_context(tagcall_process(arguments, tmp_path))
            client = AsyncOpenAI(base_url=url, api_key="mine", max_retries=0, timeout=PATIENCE)
            machines.append(Machine(process, await running.enter_async_context(client)))
        yield machines[0], machines[1]


async def kept(redis: RedisServer, pattern: str) -> list[bytes]:
    async with Redis.from_url(redis.url) as client:
        return [key async for key in client.scan_iter(pattern)]


async def test_what_is_made_on_one_is_followed_on_the_other_as_it_comes(
    model: ScriptedModel, two: tuple[Machine, Machine]
) -> None:
    here, there = two
    gate = asyncio.Event()
    model.push(Reply([Message(TEXT)], chunk=4, hold_after=2, gate=gate))
    queued = await here.create()
    async with here.following(queued.id) as own, there.following(queued.id) as other:
        seen = [await until(events, "response.output_text.delta") for events in (own, other)]
        assert seen[0] == seen[1]
        gate.set()
        rest = await asyncio.gather(*(until(events, "response.completed") for events in (own, other)))
        assert rest[0] == rest[1]
        assert numbers([*seen[1], *rest[1]]) == list(range(len(seen[1]) + len(rest[1])))
    again = await there.events(queued.id, after=5)
    assert again == [*seen[0], *rest[0]][6:]


async def test_the_other_begins_anew_what_a_killed_process_was_working_on(
    model: ScriptedModel, two: tuple[Machine, Machine], redis: RedisServer
) -> None:
    here, there = two
    conversation = await here.client.conversations.create()
    model.push(Reply([Message("never told")], hold_after=0, gate=asyncio.Event()), Reply([Message(TEXT)]))
    queued = await here.create(conversation=conversation.id)
    async with there.following(queued.id) as events:
        seen = await until(events, "response.in_progress")
        await model.called.wait()
        async with make_store(redis.url) as store:
            request = await store.load_request(queued.id)
        assert request is not None
        assert b"mine" not in request.body + request.owner.encode()
        here.process.send_signal(signal.SIGKILL)
        seen += await until(events, "response.completed")
    assert text_of(seen) == TEXT
    assert numbers(seen) == list(range(len(seen)))
    completed = await there.ended(queued.id)
    assert (completed.output_text, completed.created_at) == (TEXT, queued.created_at)
    assert await there.counted('tagcall_taken_over_total{outcome="begun_again"}') == 1
    items = [item.type async for item in there.client.conversations.items.list(conversation.id)]
    assert items.count("message") == 2
    model.push(Reply([Message("next")]))
    assert (await there.ended((await there.create(conversation=conversation.id)).id)).output_text == "next"
    assert await kept(redis, "tagcall:request:*") == await kept(redis, "tagcall:lease:*") == []


async def test_what_nobody_was_told_of_is_begun_anew_also_when_it_had_text(
    model: ScriptedModel, two: tuple[Machine, Machine], redis: RedisServer
) -> None:
    here, there = two
    model.push(Reply([Message("never told")], chunk=10, hold_after=1, gate=asyncio.Event()), Reply([Message(TEXT)]))
    queued = await here.create()
    async with make_store(redis.url) as store, asyncio.timeout(PATIENCE):
        run = await store.lease_of(queued.id)
        assert run is not None
        while b"never" not in b"".join(await store.journal.events(run) or ()):
            assert (await there.client.responses.retrieve(queued.id)).output == []
    here.process.send_signal(signal.SIGKILL)
    assert (await there.ended(queued.id)).output_text == TEXT
    assert text_of(await there.events(queued.id)) == TEXT


async def test_what_somebody_was_told_of_fails_with_its_process(
    model: ScriptedModel, two: tuple[Machine, Machine]
) -> None:
    here, there = two
    model.push(Reply([Message(TEXT)], chunk=4, hold_after=2, gate=asyncio.Event()))
    queued = await here.create()
    async with there.following(queued.id) as events:
        seen = await until(events, "response.output_text.delta")
        here.process.send_signal(signal.SIGKILL)
        seen += await until(events, "response.failed")
    assert "had been sent already" in seen[-1]["error"]["message"]
    assert numbers(seen) == list(range(len(seen)))
    failed = await there.ended(queued.id)
    assert failed.error is not None
    assert failed.error.message == seen[-1]["error"]["message"]
    assert failed.output_text == text_of(seen)
    assert len(model.requests) == 1
    assert await there.events(queued.id) == seen
    # Who had heard more than was kept is told the end all the same.
    assert [event["type"] for event in await there.events(queued.id, after=len(seen) + 5)] == ["response.failed"]


async def test_the_other_ends_what_one_is_working_on(model: ScriptedModel, two: tuple[Machine, Machine]) -> None:
    here, there = two
    model.push(*[Reply([Message(TEXT)], chunk=4, hold_after=1, gate=asyncio.Event())] * 2)
    queued = await here.create()
    async with here.following(queued.id) as events:
        seen = await until(events, "response.output_text.delta")
        cancelled = await there.client.responses.cancel(queued.id)
        assert (cancelled.status, cancelled.output_text) == ("cancelled", text_of(seen))
        seen += await until(events, "response.failed")
    assert seen[-1]["response"]["status"] == "cancelled"
    async with asyncio.timeout(PATIENCE):
        await model.stream_closed.wait()
    assert (await here.ended(queued.id)).status == "cancelled"
    model.called.clear()
    model.stream_closed.clear()
    queued = await here.create()
    await model.called.wait()
    await there.client.responses.delete(queued.id)
    async with asyncio.timeout(PATIENCE):
        await model.stream_closed.wait()


async def test_a_process_that_was_stalled_does_not_write_over_what_was_taken_over(
    model: ScriptedModel, two: tuple[Machine, Machine]
) -> None:
    here, there = two
    gate = asyncio.Event()
    model.push(Reply([Message("too late")], chunk=4, hold_after=0, gate=gate), Reply([Message(TEXT)]))
    queued = await here.create()
    async with here.following(queued.id) as own:
        seen = await until(own, "response.in_progress")
        await model.called.wait()
        here.process.send_signal(signal.SIGSTOP)
        completed = await there.ended(queued.id)
        assert completed.output_text == TEXT
        gate.set()
        here.process.send_signal(signal.SIGCONT)
        # Who followed the stalled one goes on with what the other has made.
        seen += await until(own, "response.completed")
    assert text_of(seen) == TEXT
    assert numbers(seen) == list(range(len(seen)))
    for machine in two:
        assert (await machine.ended(queued.id)).to_dict() == completed.to_dict()
        assert await machine.events(queued.id) == seen


async def test_a_process_that_was_stalled_adds_nothing_to_a_conversation_that_another_has_got(
    model: ScriptedModel, two: tuple[Machine, Machine]
) -> None:
    here, there = two
    gate = asyncio.Event()
    model.push(Reply([Message("too late")], chunk=4, hold_after=0, gate=gate), Reply([Message(TEXT)]))
    made = await there.client.conversations.create()
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        asked: Any = {"model": "gpt-5.5", "conversation": made.id}
        late = group.create_task(_refusal(here.client.responses.create(**asked, input="first")))
        await model.called.wait()
        here.process.send_signal(signal.SIGSTOP)
        while (refused := await _refusal(there.client.responses.create(**asked, input="second"))) is not None:
            assert refused.code == "conversation_locked"
        gate.set()
        here.process.send_signal(signal.SIGCONT)
    refused = late.result()
    assert refused is not None
    assert refused.code == "conversation_locked"
    assert "Nothing of this answer was kept" in refused.message
    items: list[Any] = [item async for item in there.client.conversations.items.list(made.id, order="asc")]
    assert [item.content[0].text for item in items] == ["second", TEXT]


async def _refusal(asked: Awaitable[Any]) -> BadRequestError | None:
    try:
        await asked
    except BadRequestError as error:
        return error
    return None


async def test_answers_go_on_while_redis_is_away(
    model: ScriptedModel, two: tuple[Machine, Machine], redis: RedisServer
) -> None:
    here, there = two
    gates = [asyncio.Event() for _ in range(4)]
    for gate in gates:
        model.push(Reply([Message(TEXT)], chunk=4, hold_after=2, gate=gate))
    queued = [await here.create() for _ in gates]
    async with here.following(queued[0].id) as own, there.following(queued[0].id) as other:
        seen = [await until(events, "response.output_text.delta") for events in (own, other)]
        redis.stall()
        await asyncio.sleep(5)  # longer than a lease
        for gate in gates:
            gate.set()
        seen[0] += await until(own, "response.output_text.done")
        assert text_of(seen[0]) == TEXT
        redis.go_on()
        seen[0] += await until(own, "response.completed")
        seen[1] += await until(other, "response.completed")
    assert numbers(seen[1]) == numbers(seen[0]) == list(range(len(seen[0])))
    for response in queued:
        assert (await there.ended(response.id)).output_text == TEXT
    assert len(model.requests) == len(queued)
    assert await there.counted("tagcall_taken_over_total{") == await here.counted("tagcall_not_stored_total{") == 0
