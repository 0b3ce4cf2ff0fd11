"""The store on real servers: many at once, a busy machine, and a server that is away for a while."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from proxy.contracts import Claim
from proxy.errors import UsageError
from proxy.server import running_server
from proxy.settings import Settings
from proxy.stores import make_store
from tests.support.memory_backend import MemoryBackend
from tests.support.patience import PATIENCE
from tests.support.redis_server import SERVERS, RedisServer, redis_server, wants_servers
from tests.support.stored import RESPONSE
from tests.support.talking import talking

pytestmark = wants_servers

# As the product has them; other tests wait for ever.
REAL = {"proxy.stores.redis.WAIT": 5.0, "proxy.stores.redis.DEADLINE": 1.0}


@pytest.fixture
def real_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in REAL.items():
        monkeypatch.setattr(name, seconds)


@pytest.fixture(params=SERVERS or ["none is installed"])
async def redis(request: pytest.FixtureRequest, real_deadlines: None) -> AsyncIterator[RedisServer]:
    async with redis_server(SERVERS[request.param]) as server:
        yield server


@asynccontextmanager
async def busy_machine(loops: int) -> AsyncIterator[None]:
    """As many other programs that want a core each."""
    processes = [await asyncio.create_subprocess_exec(sys.executable, "-c", "while True: pass") for _ in range(loops)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            await process.wait()


async def not_stored(session: aiohttp.ClientSession, url: str) -> float:
    """What the metrics of the server at `url` count as lost."""
    async with session.get(url.replace("/v1", "/metrics")) as answer:
        text = await answer.text()
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "tagcall_not_stored_total"
    )


async def test_more_operations_at_once_than_there_are_connections_all_succeed(redis: RedisServer) -> None:
    async with make_store(redis.url) as store:
        many = [replace(RESPONSE, id=f"r_{n}", response={**RESPONSE.response, "id": f"r_{n}"}) for n in range(500)]
        assert all(await asyncio.gather(*map(store.save, many)))
        assert await asyncio.gather(*(store.load(one.id, "me") for one in many)) == many


async def ask_250_times_at_once(redis: RedisServer) -> None:
    async with (
        running_server(Settings(port=0, store=redis.url), MemoryBackend(["fine"] * 250)) as url,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
    ):

        async def asked(method: str, path: str, **members: Any) -> Any:
            while True:
                async with session.request(method, url + path, **members) as answer:
                    if answer.status == 200:
                        return await answer.json()
                    # Who is refused for want of a connection, before any work, comes again as the answer says.
                    assert answer.status == 503, await answer.text()
                await asyncio.sleep(float(answer.headers["retry-after"]))

        bodies = [{"model": "m", "input": str(n)} for n in range(250)]
        made = await asyncio.gather(*(asked("POST", "/responses", json=body) for body in bodies))
        found = await asyncio.gather(*(asked("GET", f"/responses/{one['id']}") for one in made))
        assert found == made
        assert {one["output"][0]["content"][0]["text"] for one in found} == {"fine"}
        assert await not_stored(session, url) == 0


# All servers at once, for it keeps the whole machine busy.
async def test_250_requests_at_once_on_a_busy_machine_are_answered_and_kept_by_each_server(
    real_deadlines: None,
) -> None:
    assert SERVERS, "none is installed"
    async with AsyncExitStack() as running, busy_machine(8), asyncio.TaskGroup() as asking:
        for package, program in SERVERS.items():
            server = await running.enter_async_context(redis_server(program))
            asking.create_task(ask_250_times_at_once(server), name=package)


async def test_a_claim_is_over_when_its_process_has_gone(redis: RedisServer) -> None:
    async with make_store(redis.url) as store, asyncio.timeout(PATIENCE):
        assert await store.claim(Claim("conv_1", "me", "gone"), 0.2)
        while not await store.claim(Claim("conv_1", "me", "next"), 60):
            pass
        assert not await store.renew_claim(Claim("conv_1", "me", "gone"), 60)


@pytest.mark.parametrize("away", ["stalled", "gone"])
async def test_answers_go_on_while_the_server_is_away_and_say_that_they_are_not_kept(
    redis: RedisServer, away: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.stores.redis.FROZEN", 0.0)  # who comes right after a stall is told so at once
    async with talking(*["fine"] * 7, store=redis.url) as (client, _):
        kept = await client.responses.create(model="m", input="before")
        redis.stall() if away == "stalled" else await redis.stop()
        raw = client.responses.with_raw_response
        with monkeypatch.context() as patch:
            patch.setattr("proxy.stores.redis.DEADLINE", 0.2)
            patch.setattr("proxy.stores.redis.WAIT", 0.5)
            lost = await asyncio.gather(*(raw.create(model="m", input="meanwhile") for _ in range(5)))
        assert {one.headers["x-tagcall-warning"] for one in lost} == {"not stored"}
        assert {one.parse().output_text for one in lost} == {"fine"}
        async with aiohttp.ClientSession() as session:
            assert await not_stored(session, str(client.base_url).rstrip("/")) == 5
        redis.go_on() if away == "stalled" else await redis.start()
        after = await raw.create(model="m", input="after")
        assert "x-tagcall-warning" not in after.headers
        assert (await client.responses.retrieve(after.parse().id)).output_text == "fine"
        if away == "stalled":
            assert (await client.responses.retrieve(kept.id)).output_text == "fine"


@pytest.mark.parametrize(
    ("options", "url", "said"),
    [
        (["--requirepass", "right"], "redis://:wrong@127.0.0.1:{}", "refuses the user or the password"),
        (["--requirepass", "right"], "redis://127.0.0.1:{}", "refuses the user or the password"),
        (["--cluster-enabled", "yes"], "redis://127.0.0.1:{}", "cluster mode"),
        (["--replicaof", "127.0.0.1", "9"], "redis://127.0.0.1:{}", "takes no writes"),
        ([], "rediss://127.0.0.1:{}", "redis:// without"),
        ([], "redis://127.0.0.1:{}/99", "DB index is out of range"),
    ],
)
async def test_a_server_that_will_not_do_is_told_in_one_sentence(
    options: list[str], url: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.stores.redis.WAIT", 1.0)
    async with redis_server(None, "--dir", str(tmp_path), *options) as redis:
        with pytest.raises(UsageError, match=said) as caught:
            async with make_store(url.format(redis.port)):
                pass
    assert "wrong" not in str(caught.value)
