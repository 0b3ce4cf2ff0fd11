"""Keys and values in a Redis or Valkey server.

An operation waits at most `WAIT` for a connection; then the server has `DEADLINE` for it. So no answer waits
longer. If the server misses a deadline, operations of the next `FROZEN` seconds fail at once. What a failover loses is
lost. A list stands beside its key, under its own name, because a key in Redis has one type.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self, TypeAlias
from urllib.parse import urlsplit

from redis.asyncio import BlockingConnectionPool, ConnectionPool, Redis
from redis.asyncio.client import Pipeline
from redis.asyncio.connection import AbstractConnection, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    InvalidResponse,
    RedisError,
    ResponseError,
    WatchError,
)

from ..errors import StoreError, UsageError, reason_of
from .key_value import NOTHING, Append, Change, Drop, Put, Take

# The beginning of all our keys: other programs may use the same server.
PREFIX = "tagcall:"

# Connections of one process, unless the URL has another `max_connections`.
MAX_CONNECTIONS = 64

# Seconds that an operation waits for a connection, and seconds that it may take with one. Both are counted in steps of
# `STEP` that our event loop has made: if the machine is busy and the loop is late, the server is not to blame.
WAIT = 5.0
DEADLINE = 1.0
STEP = 0.1

# Seconds for which a server is not asked again after it let a deadline pass.
FROZEN = 1.0

# Attempts of a write whose keys another process changes meanwhile.
MAX_ATTEMPTS = 8

# The oldest version of Redis that is supported.
OLDEST = (6, 2)


# The reason that a `StoreError` gives.
LATE = "it does not answer in time"
# The advice if the reason is not known better.
OTHERWISE = "start it, or choose another --store; write rediss:// for TLS, redis:// without"
# Why a server cannot be used, and advice if there is any.
Trouble = tuple[str, str | None]

Command = tuple[str | bytes | int, ...]
Reply: TypeAlias = "bytes | str | int | list[Reply] | Exception | None"


def _name(key: str) -> str:
    return PREFIX + key


def _list_name(key: str) -> str:
    return PREFIX + key + ":list"


class RedisKeyValue:
    """A connection pool to the server that `url` names."""

    def __init__(self, url: str) -> None:
        try:
            # redis-py would ignore a database that is no number.
            if not re.fullmatch(r"[/\d]*", urlsplit(url).path):
                raise ValueError("database")  # noqa: TRY301 -- one place tells what is wrong with a URL
            # Our options win over those of the URL. `_within` keeps the deadlines.
            options: dict[str, Any] = {"max_connections": MAX_CONNECTIONS, **parse_url(url)}
            options |= dict.fromkeys(("socket_timeout", "socket_connect_timeout"))
            options |= {"protocol": 2, "decode_responses": False, "retry": Retry(NoBackoff(), 0)}
            self._pool = BlockingConnectionPool(**{**options, "timeout": None})
            # A pool of its own: a command that waits for news would keep a connection from the others.
            self._waiting = ConnectionPool(**options)
            self._waiting.make_connection()  # fails on an unknown option
        except (TypeError, ValueError):
            # The text of these errors may hold the password, or a part of it.
            raise UsageError(
                "--store is not a Redis URL",
                "write redis://USER:PASSWORD@HOST:PORT/DATABASE, with special characters of the password escaped, such "
                "as %2F for a slash; behind a ? only options of redis-py may stand",
            ) from None
        self._redis: Redis = Redis.from_pool(self._pool)
        self._asked_again_at = 0.0
        self.up = True

    async def __aenter__(self) -> Self:
        try:
            async with self._connection() as connection:
                described = await _describe(connection)
            trouble = _unfit(described)
        except StoreError as error:
            trouble = _why_not(error.__cause__) or (error.why, OTHERWISE)
        if trouble is not None:
            await self.__aexit__()
            raise UsageError(f"The Redis server of --store cannot be used, because {trouble[0]}", trouble[1])
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._redis.aclose()
        await self._waiting.disconnect()

    async def read(self, key: str) -> bytes | None:
        async with self._connection() as connection:
            value: bytes | None = await connection.immediate_execute_command("GET", _name(key))
        return value

    async def left(self, key: str) -> float:
        async with self._connection() as connection:
            milliseconds: int = await connection.immediate_execute_command("PTTL", _name(key))
        return max(0, milliseconds) / 1000

    async def values(self, key: str) -> list[bytes]:
        async with self._connection() as connection:
            values: list[bytes] = await connection.immediate_execute_command("LRANGE", _list_name(key), 0, -1)
        return values

    async def commit(
        self, changes: Sequence[Change], *, require: Sequence[str] = (), expect: Mapping[str, bytes | None] = NOTHING
    ) -> bool:
        # A list must not outlive its key, so the key of an appended list must exist.
        needed = {change.key for change in changes if isinstance(change, Append)}
        needed -= {change.key for change in changes if isinstance(change, Put)}
        async with self._connection() as pipeline:
            for _ in range(MAX_ATTEMPTS):
                if watched := {*require, *needed, *expect}:
                    await pipeline.watch(*map(_name, watched))
                absent = await _absent(pipeline, [*require, *needed])
                if absent.intersection(require):
                    return False
                for key, value in expect.items():
                    if await pipeline.immediate_execute_command("GET", _name(key)) != value:
                        return False
                pipeline.multi()
                for change in changes:
                    if change.key not in absent:
                        _queue(pipeline, change)
                # EXEC ends the watch anyway. Once the time is over, nobody should wait for an UNWATCH.
                pipeline.watching = False
                try:
                    await pipeline.execute()
                except WatchError:
                    continue
                return True
        raise StoreError("too many others write to it")

    async def run(self, commands: Sequence[Command]) -> list[Reply]:
        """The replies to commands that are sent together. The reply to a refused command is its error."""
        async with self._connection() as pipeline:
            connection = pipeline.connection or await self._pool.get_connection()
            await connection.send_packed_command(connection.pack_commands(commands))
            return [await _reply(connection) for _ in commands]

    async def wait(self, command: Command, seconds: float) -> Reply:
        """The reply to a command with which the server waits for up to `seconds`. Call it once at a time."""
        connection = None
        try:
            async with _within(seconds + WAIT):
                connection = await self._waiting.get_connection()
                await connection.send_command(*command)
                reply = await _reply(connection)
        except TimeoutError:
            raise StoreError(LATE) from None
        except (RedisError, OSError) as error:
            raise StoreError(type(error).__name__) from error
        else:
            await self._waiting.release(connection)
            connection = None
            return reply
        finally:
            if connection is not None:
                await connection.disconnect(nowait=True)
                await self._waiting.release(connection)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Pipeline]:
        """A connection for one operation. The operation's time begins once it has the connection."""
        try:
            async with self._redis.pipeline(transaction=True) as pipeline:
                self._check_frozen()
                async with _within(WAIT):
                    pipeline.connection = await self._pool.get_connection()
                self._check_frozen()
                async with self._answering():
                    try:
                        yield pipeline
                        await pipeline.reset()
                        self.up = True
                    except BaseException:
                        # It may still watch keys, and its next reply would answer an earlier command.
                        pipeline.watching = False
                        if pipeline.connection is not None:
                            await pipeline.connection.disconnect(nowait=True)
                        raise
        except TimeoutError:
            self.up = False
            raise StoreError(LATE) from None
        except (RedisError, OSError) as error:
            self.up = False
            raise StoreError(type(error).__name__) from error  # the text may hold the URL and its password

    @asynccontextmanager
    async def _answering(self) -> AsyncIterator[None]:
        try:
            async with _within(DEADLINE):
                yield
        except TimeoutError:
            self._asked_again_at = asyncio.get_running_loop().time() + FROZEN
            raise

    def _check_frozen(self) -> None:
        if asyncio.get_running_loop().time() < self._asked_again_at:
            raise StoreError(LATE)


@asynccontextmanager
async def _within(seconds: float) -> AsyncIterator[None]:
    """Raises `TimeoutError` once the loop has made the steps of `seconds`."""
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle

    def step(left: int) -> None:
        nonlocal timer
        if left > 0:
            timer = loop.call_later(STEP, step, left - 1)
        else:
            limit.reschedule(loop.time())

    async with asyncio.timeout(None) as limit:
        timer = loop.call_later(min(STEP, seconds), step, round(seconds / STEP) - 1)
        try:
            yield
        finally:
            timer.cancel()


async def _reply(connection: AbstractConnection) -> Reply:
    try:
        reply: Reply = await connection.read_response()
    except ResponseError as error:
        return error
    return reply


async def _describe(connection: Pipeline) -> dict[str, str]:
    """The server's own description; empty if we may not ask for it."""
    await connection.immediate_execute_command("PING")
    try:
        sections: list[dict[str, object]] = [
            await connection.immediate_execute_command("INFO", name) for name in ("server", "replication")
        ]
    except ResponseError:
        return {}
    return {name: str(value) for section in sections for name, value in section.items()}


def _unfit(described: dict[str, str]) -> Trouble | None:
    """Why a server of this description cannot be used, or None. Valkey names the version of Redis that it replaces."""
    if described.get("redis_mode") == "cluster":
        return (
            "it runs in cluster mode and cannot change several keys in one step",
            "use a server without cluster mode; replicas are fine",
        )
    if described.get("slave_read_only") == "1":
        return "it is a replica and takes no writes", "write the address of the server that it follows"
    version = re.match(r"(\d{1,9})\.(\d{1,9})", described.get("redis_version", ""))
    if version is not None and (int(version[1]), int(version[2])) < OLDEST:
        return f"it is Redis {version[0]}", f"use {'.'.join(map(str, OLDEST))} or newer, or Valkey"
    return None


def _why_not(error: BaseException | None) -> Trouble | None:
    """Why a connection failed and what to do, if `error` tells."""
    causes = list(_causes(error))
    if any(isinstance(cause, AuthenticationError) for cause in causes):
        return "it refuses the user or the password, or needs one", "write redis://USER:PASSWORD@HOST:PORT"
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return (
            "its certificate is not trusted",
            "name the certificate of its signer, as rediss://HOST:PORT?ssl_ca_certs=FILE",
        )
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return "it does not speak TLS on this port", "write redis:// for rediss://, or another port"
    if refusal := next((cause for cause in causes if isinstance(cause, ResponseError)), None):
        return f'it says "{refusal}"', None
    if any(isinstance(cause, BusyLoadingError) for cause in causes):
        return "it is still loading its data", "start tagcall again in a moment"
    if any(isinstance(cause, InvalidResponse) for cause in causes):
        return "it does not speak Redis on this port", "write rediss:// if it wants TLS, or another port"
    if unreached := next((cause for cause in causes if isinstance(cause, OSError)), None):
        return f"it cannot be reached ({reason_of(unreached)})", OTHERWISE
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


async def _absent(pipeline: Pipeline, keys: Sequence[str]) -> set[str]:
    """Those of `keys` that do not exist. All of them are watched."""
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
