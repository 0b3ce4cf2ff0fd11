"""A Redis server in this process, with the commands that the store uses. Keys do not expire by themselves, and streams
keep nothing: what becomes of them only a real server shows.

async with FakeRedis() as redis:
    redis.url
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

Reply = bytes | int | None | list["Reply"] | str | Exception


# To commands that change nothing here.
REPLIES: dict[bytes, Reply] = {
    **dict.fromkeys((b"PING", b"CLIENT", b"SELECT", b"XGROUP"), "OK"),
    **dict.fromkeys((b"EXPIRE", b"XACK", b"XDEL"), 1),
    **{command: [] for command in (b"XCLAIM", b"XRANGE", b"XREADGROUP")},
    b"XADD": b"1-0",
    b"XINFO": [],
    b"XAUTOCLAIM": [b"0-0", []],
}


@dataclass
class FakeRedis:
    """`stalled` set: commands are read and not answered, until it is cleared. `info`: what it says of itself."""

    values: dict[bytes, bytes] = field(default_factory=dict)
    lists: dict[bytes, list[bytes]] = field(default_factory=dict)
    expiries: dict[bytes, int] = field(default_factory=dict)
    commands: list[bytes] = field(default_factory=list)
    stalled: bool = False
    info: bytes = b""
    before_exec: Callable[[], None] | None = None
    url: str = ""

    async def __aenter__(self) -> Self:
        self._changes: dict[bytes, int] = {}
        self._writers: set[asyncio.StreamWriter] = set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/0"
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        self._server.close()
        for writer in list(self._writers):
            writer.close()
        await self._server.wait_closed()

    def touch(self, key: bytes) -> None:
        """What another client's write does to those who watch `key`."""
        self._changes[key] = self._changes.get(key, 0) + 1

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        session = _Session(self)
        try:
            while (line := await reader.readline()).startswith(b"*"):
                words = []
                for _ in range(int(line[1:])):
                    length = int((await reader.readline())[1:])
                    words.append((await reader.readexactly(length + 2))[:-2])
                self.commands.append(words[0].upper())
                reply = session.run(words)
                if not self.stalled:
                    writer.write(_encode(reply))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    def run(self, command: bytes, arguments: list[bytes]) -> Reply:
        match command, arguments:
            case b"GET", [key]:
                return self.values.get(key)
            case b"MGET", keys:
                return [self.values.get(key) for key in keys]
            case b"EXISTS", [key]:
                return int(key in self.values)
            case b"PTTL", [key]:
                return self.expiries[key] if key in self.values else -2
            case b"LRANGE", [key, _, _]:
                return list(self.lists.get(key, []))
            case b"SET", [key, value, b"PX", ttl]:
                self.values[key], self.expiries[key] = value, int(ttl)
                self.touch(key)
                return "OK"
            case b"PEXPIRE", [key, ttl]:
                self.expiries[key] = int(ttl)
                return int(key in self.values or key in self.lists)
            case b"RPUSH", [key, *values]:
                self.lists.setdefault(key, []).extend(values)
                return len(self.lists[key])
            case b"LREM", [key, _, value]:
                kept = self.lists.get(key, [])
                at = kept.index(value) if value in kept else len(kept)
                removed = len(kept[at : at + 1])
                del kept[at : at + 1]
                return removed
            case b"DEL", keys:
                return self._delete(keys)
            case b"INFO", _:
                return self.info
            case _:
                return REPLIES.get(command, ValueError(f"unknown command {command.decode()}"))

    def _delete(self, keys: list[bytes]) -> int:
        for key in keys:
            self.values.pop(key, None)
            self.lists.pop(key, None)
            self.touch(key)
        return len(keys)


@dataclass
class _Session:
    """One connection: its watched keys, and its transaction."""

    redis: FakeRedis
    watched: dict[bytes, int] = field(default_factory=dict)
    queued: list[tuple[bytes, list[bytes]]] | None = None

    def run(self, words: list[bytes]) -> Reply:
        command, arguments = words[0].upper(), words[1:]
        changes = self.redis._changes
        match command:
            case b"WATCH":
                self.watched |= {key: changes.get(key, 0) for key in arguments}
                return "OK"
            case b"UNWATCH":
                self.watched.clear()
                return "OK"
            case b"MULTI":
                self.queued = []
                return "OK"
            case b"EXEC":
                queued, self.queued = self.queued or [], None
                if self.redis.before_exec:
                    self.redis.before_exec()
                changed = any(changes.get(key, 0) != count for key, count in self.watched.items())
                self.watched.clear()
                return None if changed else [self.redis.run(*one) for one in queued]
            case _ if self.queued is not None:
                self.queued.append((command, arguments))
                return "QUEUED"
            case _:
                return self.redis.run(command, arguments)


def _encode(reply: Reply) -> bytes:
    match reply:
        case None:
            return b"*-1\r\n"
        case int():
            return b":%d\r\n" % reply
        case str():
            return b"+%b\r\n" % reply.encode()
        case bytes():
            return b"$%d\r\n%b\r\n" % (len(reply), reply)
        case list():
            return b"*%d\r\n" % len(reply) + b"".join(map(_encode, reply))
        case _:
            return b"-ERR %b\r\n" % str(reply).encode()
