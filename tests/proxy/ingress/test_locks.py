"""One request at a time on a conversation, in one server and in several on one store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from openai import AsyncOpenAI, BadRequestError
from structlog.testing import capture_logs

from proxy.contracts import Claim, TextPiece, TurnEnded
from proxy.errors import RequestError, StoreError
from proxy.ingress import locks
from proxy.ingress.locks import ConversationLocks, conversation_locks
from proxy.stores import KeyedStore, MemoryKeyValue, make_store
from tests.support.clock import Clock
from tests.support.fake_redis import FakeRedis
from tests.support.http_client import client
from tests.support.memory_backend import Script
from tests.support.patience import PATIENCE
from tests.support.redis_server import SERVERS, redis_server
from tests.support.responses_grammar import check_events
from tests.support.talking import GatedBackend, talking

# Seconds that a sign of life counts.
LIFE = 60.0

PIECES: Script = [TextPiece("one"), TurnEnded(None)]


@pytest.fixture(params=["sqlite", "fake", *(pytest.param(server, marks=pytest.mark.redis) for server in SERVERS)])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    match request.param:
        case "sqlite":
            yield f"sqlite:{tmp_path}/r.db"
        case "fake":
            async with FakeRedis() as fake:
                yield fake.url
        case server:
            async with redis_server(SERVERS[server]) as real:
                yield real.url


@asynccontextmanager
async def two_servers(place: str, *, tries: int) -> AsyncIterator[tuple[AsyncOpenAI, GatedBackend, AsyncOpenAI]]:
    backend = GatedBackend([PIECES] * tries)
    async with (
        talking(backend=backend, store=place) as (here, _),
        talking(*["two"] * tries, store=place) as (there, _),
    ):
        yield here, backend, there


@pytest.mark.parametrize("tries", [5, pytest.param(50, marks=pytest.mark.whole)])
async def test_a_conversation_that_another_server_works_on_is_locked_and_free_with_the_last_event(
    place: str, tries: int
) -> None:
    async with two_servers(place, tries=tries) as (here, backend, there):
        made = await here.conversations.create()
        for _ in range(tries):
            backend.asked.clear()
            backend.gate.clear()
            async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
                first = group.create_task(here.responses.create(model="m", input="1", conversation=made.id))
                await backend.asked.wait()
                with pytest.raises(BadRequestError, match="Another process") as caught:
                    await there.responses.create(model="m", input="2", conversation=made.id)
                assert caught.value.code == "conversation_locked"
                backend.gate.set()
            assert first.result().output_text == "one"
            await there.responses.create(model="m", input="2", conversation=made.id)
        items = [item async for item in there.conversations.items.list(made.id, order="asc")]
        assert len(items) == 4 * tries


async def test_a_background_response_has_its_conversation_until_its_end_is_told(place: str) -> None:
    async with two_servers(place, tries=1) as (here, backend, there):
        made = await here.conversations.create()
        stream = await here.responses.create(model="m", input="1", conversation=made.id, background=True, stream=True)
        await backend.asked.wait()
        with pytest.raises(BadRequestError, match="Another process"):
            await there.responses.create(model="m", input="2", conversation=made.id)
        backend.gate.set()
        async for event in stream:
            if event.type == "response.completed":
                await there.responses.create(model="m", input="2", conversation=made.id)


class Lapsing(ConversationLocks):
    """What it has taken is another's by the time of the answer, as for a process that stood still."""

    async def take(self, owner: str, conversation_id: str, *, outlives: bool = False, request: str = "") -> Claim:
        claim = await super().take(owner, conversation_id, outlives=outlives, request=request)
        await self._store.release(claim)
        await self._store.claim(Claim(conversation_id, owner, "another"), locks.LEASE)
        return claim


@pytest.mark.parametrize("kept", [True, False])
async def test_who_has_lost_its_conversation_adds_nothing_to_it(kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "ConversationLocks", Lapsing)
    async with talking("one") as (openai, _):
        made = await openai.conversations.create()
        with pytest.raises(BadRequestError, match="Nothing of this answer was kept") as caught:
            await openai.responses.create(model="m", input="1", conversation=made.id, store=kept)
        assert caught.value.code == "conversation_locked"
        assert [item async for item in openai.conversations.items.list(made.id)] == []


async def test_a_stream_that_has_lost_its_conversation_ends_with_the_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "ConversationLocks", Lapsing)
    async with client("one") as (session, url):
        async with session.post(url + "/conversations") as response:
            made = (await response.json())["id"]
        body = {"model": "m", "input": "1", "conversation": made, "stream": True}
        async with session.post(url + "/responses", json=body) as response:
            events = [orjson.loads(line[6:]) for line in (await response.read()).splitlines() if line[:7] == b"data: {"]
        assert check_events(events)["status"] == "failed"
        assert events[-1]["error"]["code"] == "conversation_locked"
        async with session.get(f"{url}/conversations/{made}/items") as response:
            assert (await response.json())["data"] == []


async def test_a_conversation_that_was_deleted_meanwhile_fails_no_answer(place: str) -> None:
    async with two_servers(place, tries=1) as (here, backend, there):
        made = await here.conversations.create()
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            body: Any = {"model": "m", "input": "1", "conversation": made.id, "store": False}
            answer = group.create_task(here.responses.create(**body))
            await backend.asked.wait()
            await there.conversations.delete(made.id)
            backend.gate.set()
        assert answer.result().output_text == "one"


async def test_a_request_that_the_balancer_repeats_is_not_answered_twice(place: str) -> None:
    """nginx asks the next server where one ends before its answer has left, be it kept or not."""
    names = [{"X-Tagcall-Request": digit * 32} for digit in "aab"]
    async with two_servers(place, tries=1) as (here, backend, there):
        backend.gate.set()
        made = await here.conversations.create()
        body: Any = {"model": "m", "input": "Yes", "conversation": made.id}
        await here.responses.create(**body, extra_headers=names[0])
        with pytest.raises(BadRequestError) as caught:
            await there.responses.create(**body, extra_headers=names[1])
        assert caught.value.code == "conversation_locked"
        assert len([item async for item in there.conversations.items.list(made.id)]) == 2
        await there.responses.create(**body, extra_headers=names[2])
        assert len([item async for item in there.conversations.items.list(made.id)]) == 4


async def test_a_server_that_stops_leaves_nothing_locked(place: str) -> None:
    async with make_store(place) as there:
        async with make_store(place) as here, conversation_locks(here, LIFE) as held:
            await held.take("me", "conv_1")
            assert not await there.claim(Claim("conv_1", "me", "x"), 60)
        assert await there.claim(Claim("conv_1", "me", "x"), 60)


async def test_of_a_server_that_was_killed_a_conversation_is_free_once_its_sign_of_life_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(locks, "SIGNS", 1)
    time = 0.0
    keys = MemoryKeyValue(clock=lambda: time)
    async with KeyedStore(keys) as store, conversation_locks(store, LIFE) as other:
        await store.sign("killed", 2.5)
        assert await store.claim(Claim("conv_1", "me", "x", "killed"), locks.LEASE)
        for left in ("3", "2", "1"):
            with pytest.raises(RequestError) as caught:
                await other.take("me", "conv_1")
            assert caught.value.headers()["retry-after"] == left
            time += 0.9
        await other.release(await other.take("me", "conv_1"))


async def test_as_long_as_a_server_has_a_conversation_it_gives_signs(clock: Clock) -> None:
    async with make_store("memory") as store, conversation_locks(store, LIFE) as held:
        mine = await held.take("me", "conv_1")
        yours = Claim("conv_1", "me", "x", "other")
        for _ in range(2 * locks.SIGNS):
            before = await store.claimed_for(yours)
            assert before > LIFE / 2
            await clock.put_forward(LIFE / locks.SIGNS)
        await held.release(mine)
        assert await store.claim(yours, 60)


class Diary(KeyedStore):
    """Notes what becomes of claims; `fails` is what it raises."""

    def __init__(self) -> None:
        super().__init__(MemoryKeyValue())
        self.renewed = asyncio.Event()
        self.fails: StoreError | None = None

    async def claim(self, claim: Claim, lease: float, *, instead_of: Sequence[str] = ()) -> bool:
        taken = await super().claim(claim, lease, instead_of=instead_of)
        if self.fails is not None:
            raise self.fails
        return taken

    async def renew_claim(self, claim: Claim, lease: float) -> bool:
        self.renewed.set()
        return await super().renew_claim(claim, lease)


async def test_a_lock_is_renewed_and_its_loss_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "RENEWAL", 0)
    store = Diary()
    with capture_logs() as logs:
        async with asyncio.timeout(PATIENCE), store, conversation_locks(store, LIFE) as held:
            claim = await held.take("me", "conv_1")
            await store.renewed.wait()
            assert not logs
            await store.release(claim)
            for _ in range(2):  # the first of them may have asked before
                store.renewed.clear()
                await store.renewed.wait()
    assert {entry["event"] for entry in logs} == {"conversation_lock_lost"}


async def test_a_claim_of_which_nobody_knows_whether_it_was_written_is_given_back() -> None:
    store = Diary()
    async with store, conversation_locks(store, LIFE) as held:
        store.fails = StoreError("away")
        with pytest.raises(StoreError):
            await held.take("me", "conv_1")
        store.fails = None
        await held.release(await held.take("me", "conv_1"))


async def test_letting_go_twice_frees_nobody_elses_lock() -> None:
    store = Diary()
    async with store, conversation_locks(store, LIFE) as held:
        first = await held.take("me", "conv_1")
        await held.release(first)
        await held.take("me", "conv_1")
        await held.release(first)
        await _is_locked(held)


async def _is_locked(held: ConversationLocks) -> None:
    with pytest.raises(RequestError) as caught:
        await held.take("me", "conv_1")
    assert caught.value.code == "conversation_locked"
