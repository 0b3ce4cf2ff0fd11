"""Keys and values in a Redis server.

A server that is away or slow fails an operation after `DEADLINE`; it never holds an answer up for longer. What
a failover loses is not found any more. Lists stand beside their keys, as Redis has one type a key.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Self

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, WatchError

from ..errors import StoreError, UsageError
from .key_value import Append, Change, Drop, Put, Take

# Stands before every key of ours, as others may use the same server.
PREFIX = "tagcall:"

# Seconds for one operation.
DEADLINE = 0.2

# So often a write is begun, as long as another process changes what it depends on meanwhile.
MAX_ATTEMPTS = 8


def _name(key: str) -> str:
    return PREFIX + key


def _list_name(key: str) -> str:
    return PREFIX + key + ":list"


class RedisKeyValue:
    """A connection pool to the server that `url` names."""

    def __init__(self, url: str) -> None:
        try:
            self._redis: Redis = Redis.from_url(url, protocol=2, retry=Retry(NoBackoff(), 0))
        except ValueError as error:
            raise UsageError(f"--store: this is no Redis URL ({error}).") from None

    async def __aenter__(self) -> Self:
        try:
            async with self._deadline():
                await self._redis.execute_command("PING")
        except StoreError as error:
            await self.__aexit__()
            raise UsageError(
                f"The Redis server of --store cannot be used: {error.message} Start it, or choose another --store."
            ) from None
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._redis.aclose()

    async def read(self, key: str) -> bytes | None:
        async with self._deadline():
            value: bytes | None = await self._redis.execute_command("GET", _name(key))
        return value

    async def values(self, key: str) -> list[bytes]:
        async with self._deadline():
            values: list[bytes] = await self._redis.execute_command("LRANGE", _list_name(key), 0, -1)
        return values

    async def commit(self, changes: Sequence[Change], *, require: Sequence[str] = ()) -> bool:
        # A list must not outlive its key, so what is appended to has to be there, too.
        needed = {change.key for change in changes if isinstance(change, Append)}
        needed -= {change.key for change in changes if isinstance(change, Put)}
        async with self._deadline(), self._redis.pipeline(transaction=True) as pipeline:
            for _ in range(MAX_ATTEMPTS):
                absent = await _absent(pipeline, [*require, *needed])
                if absent.intersection(require):
                    return False
                pipeline.multi()
                for change in changes:
                    if change.key not in absent:
                        _queue(pipeline, change)
                try:
                    await pipeline.execute()
                except WatchError:
                    continue
                return True
        raise StoreError("too many others write to it")

    @asynccontextmanager
    async def _deadline(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(DEADLINE):
                yield
        except TimeoutError:
            raise StoreError("it does not answer in time") from None
        except (RedisError, OSError) as error:
            raise StoreError(type(error).__name__) from error  # its text may hold the URL and its password


async def _absent(pipeline: Pipeline, keys: Sequence[str]) -> set[str]:
    """Those of `keys` that are not there; the others are watched."""
    if not keys:
        return set()
    await pipeline.watch(*map(_name, keys))
    return {key for key in keys if not await pipeline.execute_command("EXISTS", _name(key))}


def _queue(pipeline: Pipeline, change: Change) -> None:
    """Puts a change into the transaction."""
    match change:
        case Put(key, value, ttl):
            pipeline.execute_command("SET", _name(key), value, "PX", _milliseconds(ttl))
            pipeline.execute_command("PEXPIRE", _list_name(key), _milliseconds(ttl))
        case Append(key, values, ttl):
            pipeline.execute_command("RPUSH", _list_name(key), *values)
            pipeline.execute_command("PEXPIRE", _list_name(key), _milliseconds(ttl))
            pipeline.execute_command("PEXPIRE", _name(key), _milliseconds(ttl))
        case Take(key, value):
            pipeline.execute_command("LREM", _list_name(key), 1, value)
        case Drop(key):
            pipeline.execute_command("DEL", _name(key), _list_name(key))


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
