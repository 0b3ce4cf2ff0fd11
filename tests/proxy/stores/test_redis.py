"""A Redis server that is there, away, slow, or used by others at the same time."""

from __future__ import annotations

import asyncio
import sys
from contextlib import nullcontext

import pytest
from structlog.testing import capture_logs

from proxy.errors import StoreError, UsageError
from proxy.stores import Append, Put, make_store
from proxy.stores.redis import RedisKeyValue
from tests.support.clock import Clock
from tests.support.fake_redis import FakeRedis
from tests.support.patience import NEVER
from tests.support.ports import free_port
from tests.support.stored import CONVERSATION, ITEMS, RESPONSE


async def test_keys_have_our_prefix_and_their_time() -> None:
    async with FakeRedis() as redis, make_store(redis.url) as store:
        await store.save(RESPONSE)
        await store.save_conversation(CONVERSATION, ITEMS)
        assert all(key.startswith(b"tagcall:") for key in redis.values)
        assert redis.expiries[b"tagcall:response:resp_1"] == 30 * 86_400_000
        assert redis.expiries[b"tagcall:conversation:conv_1:list"] == 30 * 86_400_000


async def test_a_write_that_another_one_crossed_is_begun_anew() -> None:
    async with FakeRedis() as redis, RedisKeyValue(redis.url) as keys:
        await keys.commit([Put("a", b"1", 60)])
        crossings = [b"tagcall:a", b"tagcall:a"]

        def cross() -> None:
            if crossings:
                redis.touch(crossings.pop())

        redis.before_exec = cross
        assert await keys.commit([Append("a", (b"x",), 60)], require=["a"])
        assert await keys.values("a") == [b"x"]

        redis.before_exec = lambda: redis.touch(b"tagcall:a")
        with pytest.raises(StoreError, match="too many others"):
            await keys.commit([Append("a", (b"y",), 60)], require=["a"])
        assert await keys.values("a") == [b"x"]


async def test_a_conversation_whose_items_the_server_has_forgotten_is_not_there() -> None:
    """A server that is full evicts keys one by one."""
    async with FakeRedis() as redis, make_store(redis.url) as store:
        for before in ((), ITEMS):
            await store.save_conversation(CONVERSATION, before)
            assert await store.update_conversation("conv_1", "me", {"topic": "peas"})
            assert await store.items("conv_1", "me") == before
            redis.run(b"DEL", [b"tagcall:conversation:conv_1:list"])
            with capture_logs() as logs:
                assert await store.items("conv_1", "me") is None
            assert [(log["event"], log["kind"]) for log in logs] == [("record_unreadable", "items")]
            await store.add_items("conv_1", "me", ITEMS)
            assert await store.items("conv_1", "me") is None
            assert await store.delete_conversation("conv_1", "me")


async def test_a_slow_server_is_given_up_in_time_and_used_again_later(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    async with FakeRedis() as redis, make_store(redis.url) as store:
        await store.save(RESPONSE)
        redis.stalled = True
        monkeypatch.setattr("proxy.stores.redis.FROZEN", NEVER)
        with monkeypatch.context() as patch, pytest.raises(StoreError, match="in time") as caught:
            patch.setattr("proxy.stores.redis.DEADLINE", 0.05)
            await store.load("resp_1", "me")
        assert caught.value.status == 503
        redis.stalled = False
        commands = len(redis.commands)
        with pytest.raises(StoreError, match="in time"):  # at once: it is not asked
            await store.load("resp_1", "me")
        assert (len(redis.commands), store.up) == (commands, False)
        await clock.put_forward(NEVER)
        assert await store.load("resp_1", "me") == RESPONSE
        assert store.up


async def test_a_server_that_went_away_is_a_store_error() -> None:
    async with FakeRedis() as redis, make_store(redis.url) as store:
        await redis.stop()
        for _ in range(2):
            with pytest.raises(StoreError):
                await store.save(RESPONSE)


async def test_a_server_that_is_not_there_is_told_at_the_start_without_its_password() -> None:
    with pytest.raises(UsageError, match="Redis server") as caught:
        async with make_store("redis://me:secret@127.0.0.1:9/0"):
            pass
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("info", "said"),
    [
        (b"redis_version:6.0.16\r\nredis_mode:standalone\r\n", r"Redis 6\.0: use 6\.2 or newer, or Valkey"),
        (b"redis_version:7.0.15\r\nredis_mode:cluster\r\n", "cluster mode"),
        (b"role:slave\r\nslave_read_only:1\r\n", "it is a replica and takes no writes: write the address"),
        (b"role:slave\r\nslave_read_only:0\r\n", None),
        (b"redis_version:10.1.0\r\nredis_mode:standalone\r\n", None),
        (b"", None),
    ],
)
async def test_a_server_that_will_not_do_is_told_at_the_start(info: bytes, said: str | None) -> None:
    async with FakeRedis(info=info) as redis:
        with pytest.raises(UsageError, match=said) if said else nullcontext():
            async with make_store(redis.url):
                pass


@pytest.mark.parametrize(
    ("scheme", "answer", "said"),
    [
        # What OpenSSL answers to text.
        (
            "redis",
            b"\x15\x03\x01\x00\x02\x02\x46\r\n",
            "it does not speak Redis on this port: write rediss:// if it wants TLS, or another port.",
        ),
        (
            "rediss",
            b"HTTP/1.1 400 Bad Request\r\n",
            "it does not speak TLS on this port: write redis:// for rediss://, or another port.",
        ),
    ],
)
async def test_a_port_where_something_else_listens_is_told_at_the_start(scheme: str, answer: bytes, said: str) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(speak, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(UsageError) as caught:
            async with make_store(f"{scheme}://127.0.0.1:{port}"):
                pass
    assert str(caught.value) == f"The Redis server of --store cannot be used, because {said}"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_server_that_is_not_there_is_told_at_the_start(host: str) -> None:
    with pytest.raises(UsageError) as caught:
        async with make_store(f"redis://:secret@{host}:{free_port()}"):
            pass
    told = str(caught.value)
    assert told.startswith(
        "The Redis server of --store cannot be used, because it cannot be reached (Connection refused): "
    )
    assert "secret" not in told


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost:port", "redis://:sec/ret@localhost", "redis://localhost?secret=1", "redis://:[secret@h",
        "redis://localhost/secret",
    ],
)  # fmt: skip
def test_a_url_that_is_none_is_told_without_its_password(url: str) -> None:
    with pytest.raises(UsageError, match="not a Redis URL") as caught:
        make_store(url)
    assert "sec" not in str(caught.value)


async def test_a_url_cannot_change_in_which_form_the_server_answers() -> None:
    async with FakeRedis() as redis, make_store(f"{redis.url}?decode_responses=true&protocol=3") as store:
        await store.save(RESPONSE)
        assert await store.load("resp_1", "me") == RESPONSE


def test_without_the_package_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "proxy.stores.redis")
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(UsageError, match=r"-m pip install redis`"):
        make_store("redis://localhost")
