"""Background responses of two servers on one real Redis, in front of backends in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from openai import AsyncOpenAI, BadRequestError

from proxy.contracts import BackendEvent, Run, TextPiece, TurnEnded
from proxy.ingress.background.jobs import Jobs
from proxy.stores.redis_journal import RedisJournal
from tests.support.patience import PATIENCE
from tests.support.redis_server import RedisServer, redis_server, wants_servers
from tests.support.talking import GatedBackend, talking

pytestmark = wants_servers

PIECES: list[BackendEvent] = [TextPiece("one "), *[TextPiece("and more ")] * 200, TurnEnded(None)]


@pytest.fixture
async def redis() -> AsyncIterator[RedisServer]:
    async with redis_server() as server:
        yield server


@asynccontextmanager
async def following(client: AsyncOpenAI, response_id: str) -> AsyncIterator[AsyncIterator[str]]:
    """Lines of its stream, comments as well."""
    url, headers = f"{client.base_url}responses/{response_id}?stream=true", {"Authorization": "Bearer mine"}
    async with aiohttp.ClientSession(headers=headers) as session, session.get(url) as reply:
        yield (line.decode() async for line in reply.content if line.strip())


async def no_sign(*_: object) -> set[Run]:
    return set()


async def metrics(client: AsyncOpenAI) -> list[str]:
    return (await client._client.get(str(client.base_url).replace("/v1/", "/metrics"))).text.split("\n")


async def test_events_that_do_not_fit_come_with_the_end_and_a_warning(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.stores.redis_journal.MAX_BYTES", 100)
    monkeypatch.setattr("proxy.stores.redis_journal.POLL", 0.05)
    backend = GatedBackend([PIECES])
    async with talking(backend=backend, store=redis.url) as (here, _), talking(store=redis.url) as (there, _):
        queued = await here.responses.create(model="m", input="x", background=True)
        await backend.asked.wait()
        async with asyncio.timeout(PATIENCE), following(there, queued.id) as told, following(here, queued.id) as own:
            seen = []
            async for line in told:
                if line.startswith(":"):
                    break
                seen.append(line)
            assert "the rest comes when the response is over" in line
            assert seen[-2].strip() == "event: response.in_progress"
            backend.gate.set()
            seen += [line async for line in told if not line.startswith(":")]
            assert seen == [line async for line in own]
        assert 'tagcall_not_stored_total{what="events"} 1.0' in await metrics(here)


async def test_what_a_stopping_server_leaves_another_one_begins_anew(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.server.DRAIN", 0.05)
    monkeypatch.setattr("proxy.server.FAREWELL", 0.05)
    backend = GatedBackend([[TurnEnded(None)]])
    settings: Any = {"store": redis.url, "background_lease": 0.5}
    async with talking("done there", **settings) as (there, _):
        async with talking(backend=backend, **settings) as (here, _):
            queued = await here.responses.create(model="m", input="x", background=True)
            await backend.asked.wait()
        async with there.responses.with_streaming_response.retrieve(queued.id, stream=True) as stream:
            text = await stream.text()
        assert text.count("event: response.queued") == text.count("event: response.completed") == 1
        assert (await there.responses.retrieve(queued.id)).output_text == "done there"


async def test_who_has_lost_a_response_does_not_free_its_conversation(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, quick = GatedBackend([[TurnEnded(None)]]), GatedBackend([[TextPiece("x"), TurnEnded(None)]])
    async with talking(backend=slow, store=redis.url) as (here, _):
        made = await here.conversations.create()
        with monkeypatch.context() as patch:
            patch.setattr(RedisJournal, "renew", no_sign)
            async with talking(backend=quick, store=redis.url, background_lease=0.2) as (there, _):
                queued = await here.responses.create(
                    model="m", input="x", background=True, conversation=made.id, stream=False
                )
                async with asyncio.timeout(PATIENCE):
                    await quick.asked.wait()
                patch.undo()
                async with asyncio.timeout(PATIENCE):
                    await slow.left.wait()
                for client in (here, there):
                    with pytest.raises(BadRequestError, match="operating on this conversation"):
                        await client.responses.create(model="m", input="y", conversation=made.id)
                quick.gate.set()
                async with asyncio.timeout(PATIENCE):
                    while (done := await here.responses.retrieve(queued.id)).status == "in_progress":
                        pass
                assert done.output_text == "x"
                assert len((await here.conversations.items.list(made.id)).data) == 2


async def test_a_response_is_not_lost_while_its_lease_is_being_stored(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, renew, renewals = RedisJournal.begin, Jobs.renew, asyncio.Queue[None]()

    async def begin_slowly(journal: RedisJournal, run: Run, opening: Sequence[bytes]) -> None:
        await begin(journal, run, opening)
        while not renewals.empty():
            renewals.get_nowait()
        for _ in range(2):  # one may have been under way
            await renewals.get()

    async def told_renew(jobs: Jobs) -> None:
        await renew(jobs)
        renewals.put_nowait(None)

    monkeypatch.setattr(RedisJournal, "begin", begin_slowly)
    monkeypatch.setattr(Jobs, "renew", told_renew)
    async with talking("done", store=redis.url, background_lease=1) as (client, _), asyncio.timeout(PATIENCE):
        queued = await client.responses.create(model="m", input="x", background=True)
        while (done := await client.responses.retrieve(queued.id)).status in {"queued", "in_progress"}:
            pass
        assert done.output_text == "done"
        assert not [line for line in await metrics(client) if line.startswith("tagcall_taken_over_total{")]


async def test_what_no_server_survives_fails(redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.server.DRAIN", 0.05)
    monkeypatch.setattr("proxy.server.FAREWELL", 0.05)
    monkeypatch.setattr("proxy.ingress.background.leases.MAX_RUNS", 2)
    settings: Any = {"store": redis.url, "background_lease": 0.1}
    response_id = ""
    for _ in range(2):
        backend = GatedBackend([[TurnEnded(None)]])
        async with talking(backend=backend, **settings) as (client, _):
            if not response_id:
                response_id = (await client.responses.create(model="m", input="x", background=True)).id
            async with asyncio.timeout(PATIENCE):
                await backend.asked.wait()
    async with talking(**settings) as (client, _), asyncio.timeout(PATIENCE):
        while (failed := await client.responses.retrieve(response_id)).status == "in_progress":
            pass
        assert failed.error is not None
        assert "at work on this response" in failed.error.message


async def test_what_cannot_be_begun_anew_fails_and_says_why(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.server.DRAIN", 0.05)
    monkeypatch.setattr("proxy.server.FAREWELL", 0.05)
    settings: Any = {"store": redis.url, "background_lease": 0.1}
    backend = GatedBackend(["first", [TurnEnded(None)]])
    backend.gate.set()
    async with talking(backend=backend, **settings) as (client, _):
        first = await client.responses.create(model="m", input="x")
        backend.gate.clear()
        backend.asked.clear()
        queued = await client.responses.create(model="m", input="y", previous_response_id=first.id, background=True)
        await backend.asked.wait()
        await client.responses.delete(first.id)
    async with talking(**settings) as (client, _), asyncio.timeout(PATIENCE):
        while (failed := await client.responses.retrieve(queued.id)).status == "in_progress":
            pass
        assert failed.error is not None
        assert "Previous response with id" in failed.error.message
