"""The journal of Redis: what is being made in the background, for every process on the server.

    stream:<id>:<token>    a stream for each run: entry N + 1 is the event with sequence number N
    queue                  a stream of the Responses that are to be made, each in the hands of one consumer, a process
    wake:<process>         a stream that ends the wait of a process's reader, when it is to follow one more

An event that may have been lost is written again: if it is there, Redis refuses the second by its number. If another
process has taken over a run, the first one writes to a stream that nobody reads. `XAUTOCLAIM` finds the processes that
have given no sign for a while; their leases say whether they may still write. If Redis loses an event, there is a hole
in the numbers. Followers get nothing behind a hole until the Response is over.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import islice

import structlog
from msgspec import Struct
from structlog.typing import FilteringBoundLogger

from ..contracts import Run
from ..errors import StoreError
from .redis import PREFIX, Command, RedisKeyValue, Reply

QUEUE = f"{PREFIX}queue"
GROUP = "workers"

# Seconds that a stream is kept while its Response is made. A turn ends within an hour.
HOLD = 24 * 3600.0

# Milliseconds of silence after which the process of a consumer counts as gone.
FORGOTTEN = 3_600_000

# Seconds that a stream stays after its end for those who follow it. Others read the stored Response.
LINGER = 60

# Bytes of one run's events. Nothing is cut off at the front: followers get the rest once the Response is stored.
MAX_BYTES = 32 << 20

# No sequence number comes near this. Numbers that Redis makes itself are larger.
MAX_NUMBER = 1 << 53

# Commands that are sent together, and events that are read together.
MAX_BATCH = 1_000

# Bytes of a stream's newest events that its followers share. A follower that is further behind asks Redis.
TAIL = 1 << 20

# Seconds until a server that was away is asked again, and seconds of silence after which followers look around.
RETRY = 0.5
POLL = 1.0

log: FilteringBoundLogger = structlog.get_logger(__name__)


class RedisJournal:
    """`Journal` over the connections of `keys`."""

    takes_over = True
    hold = HOLD

    def __init__(self, keys: RedisKeyValue) -> None:
        self._keys = keys
        self._me = secrets.token_hex(8)
        # The Responses that this process makes -> their entry in the queue.
        self._queued: dict[str, bytes] = {}
        self._written: dict[Run, int] = {}
        self._unsent: deque[Command] = deque()
        self._news, self._sent = asyncio.Event(), asyncio.Event()
        self._sent.set()
        self._followed: dict[Run, _Followed] = {}
        self._following = asyncio.Event()
        self._woken = b"0"
        self._away = False

    async def run(self) -> None:
        with suppress(StoreError):
            await self._dismiss()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._send(), name="events to Redis")
            group.create_task(self._read(), name="events from Redis")

    # Events out

    async def begin(self, run: Run, opening: Sequence[bytes]) -> None:
        stream = _stream(run)
        commands: list[Command] = [_event(stream, number, piece) for number, piece in enumerate(opening)]
        commands.append(("EXPIRE", stream, round(HOLD)))
        if run.response_id not in self._queued:
            commands += [("XADD", QUEUE, "*", "response", run.response_id), self._delivery]
        replies = await self._keys.run(commands)
        if _is_groupless(replies[-1]):
            await self._make_group()
        if run.response_id not in self._queued:
            self._queued[run.response_id] = _entry_of(replies[-2])
        self._written[run] = 0

    @property
    def _delivery(self) -> Command:
        """Takes all new entries of the queue. If another process wrote one, that process claims it when it renews."""
        return ("XREADGROUP", "GROUP", GROUP, self._me, "COUNT", MAX_BATCH, "STREAMS", QUEUE, ">")

    def append(self, run: Run, number: int, pieces: Sequence[bytes], *, last: bool = False) -> bool:
        if (written := self._written.get(run, 0)) > MAX_BYTES:
            return True
        stream, size = _stream(run), sum(map(len, pieces))
        self._written[run] = written + size
        if written + size > MAX_BYTES:
            self._queue(("XADD", stream, "NOMKSTREAM", f"{number + 1}-0", "full", "1"))
            return False
        for offset, piece in enumerate(pieces, 1):
            ends = ("last", "1") if last and offset == len(pieces) else ()
            self._queue((*_event(stream, number + offset - 1, piece, "NOMKSTREAM"), *ends))
        return True

    def end(self, run: Run) -> None:
        self._written.pop(run, None)
        self._queue(("EXPIRE", _stream(run), LINGER))
        if (entry := self._queued.pop(run.response_id, None)) is not None:
            self._queue(("XACK", QUEUE, GROUP, entry))
            self._queue(("XDEL", QUEUE, entry))

    def forget(self, run: Run) -> None:
        self._written.pop(run, None)
        self._queue(("EXPIRE", _stream(run), LINGER))

    def _queue(self, command: Command) -> None:
        self._unsent.append(command)
        self._news.set()
        self._sent.clear()

    async def _send(self) -> None:
        """Writes events in their order. Those that came during the last write go together."""
        while True:
            await self._news.wait()
            batch = list(islice(self._unsent, MAX_BATCH))
            try:
                for reply in await self._keys.run(batch):
                    if not _is_there_already(reply):
                        _told(reply)
            except StoreError as error:
                self._is_away(error)
                self._sent.set()
                await asyncio.sleep(RETRY)
                continue
            self._away = False
            for _ in batch:
                self._unsent.popleft()
            if not self._unsent:
                self._news.clear()
                self._sent.set()

    async def flush(self) -> None:
        await self._sent.wait()
        with suppress(StoreError):
            await self._dismiss()

    async def _dismiss(self) -> None:
        """Takes consumers without entries out of the group: this process, and those that have been silent for long.
        Consumers with entries stay, since Redis would forget these entries, and another process is to take them over.
        A silent process that lives after all is a consumer again when it renews.
        """
        (reply,) = await self._keys.run([("XINFO", "CONSUMERS", QUEUE, GROUP)])
        for found in reply if isinstance(reply, list) else ():
            one = dict(zip(found[::2], found[1::2], strict=True)) if isinstance(found, list) else {}
            name, idle = one.get(b"name"), one.get(b"idle")
            if not isinstance(name, bytes) or not isinstance(idle, int) or one.get(b"pending"):
                continue
            if name == self._me.encode() or idle > FORGOTTEN:
                await self._keys.run([("XGROUP", "DELCONSUMER", QUEUE, GROUP, name)])

    def _is_away(self, error: StoreError) -> None:
        if not self._away:
            log.warning("events_wait_for_the_store", error=error.why)
        self._away = True

    # Events in

    @asynccontextmanager
    async def follow(self, run: Run, after: int) -> AsyncIterator[StreamFollower]:
        after = min(after, MAX_NUMBER)
        followed = self._followed.setdefault(run, _Followed(run, after))
        followed.join(after)
        self._following.set()
        self._queue(("XADD", self._wake, "MAXLEN", 1, "*", "wake", "1"))
        self._queue(("EXPIRE", self._wake, LINGER))
        try:
            yield StreamFollower(self._keys, followed, after)
        finally:
            followed.followers -= 1
            if not followed.followers:
                del self._followed[run]

    @property
    def _wake(self) -> str:
        return f"{PREFIX}wake:{self._me}"

    async def _read(self) -> None:
        """Reads for all followers of this process, on one connection."""
        while True:
            await self._following.wait()
            followed = {_stream(run).encode(): one for run, one in self._followed.items()}
            if not followed:
                self._following.clear()
                continue
            asked = {name: one.newest for name, one in followed.items()}
            positions = [self._woken, *(f"{newest + 1}-0".encode() for newest in asked.values())]
            block = ("XREAD", "COUNT", MAX_BATCH, "BLOCK", round(POLL * 1000), "STREAMS")
            try:
                reply = _told(await self._keys.wait((*block, self._wake.encode(), *followed, *positions), POLL))
            except StoreError as error:
                self._is_away(error)
                await asyncio.sleep(RETRY)
                continue
            for name, entries in _streams(reply):
                if name in followed:
                    followed[name].tell(entries, asked[name])
                elif entries:
                    self._woken = entries[-1].id

    async def events(self, run: Run) -> list[bytes] | None:
        pieces: list[bytes] = []
        while entries := await _behind(self._keys, run, len(pieces) - 1):
            for entry in entries:
                if entry.full or entry.number != len(pieces):
                    return pieces
                pieces.append(entry.event)
        return pieces

    # The queue

    async def renew(self, runs: Sequence[Run]) -> set[Run]:
        names = [f"{PREFIX}lease:{run.response_id}" for run in runs]
        claim: Command = ("XCLAIM", QUEUE, GROUP, self._me, 0, *self._queued.values(), "JUSTID")
        # PING, so that a process without work also learns whether the server is there.
        replies = await self._keys.run([claim if self._queued else ("PING",), ("MGET", *names) if names else ("PING",)])
        tokens = _told(replies[-1])
        if not isinstance(tokens, list):
            return set()
        lost = {run for run, token in zip(runs, tokens, strict=True) if token != run.token.encode()}
        for run in lost:
            self.leave(run.response_id)
        return lost

    async def take(self, silence: float, limit: int) -> list[str]:
        taken: dict[str, bytes] = {}
        place: Reply = b"0-0"
        # Redis looks at a few entries at a time, and other processes may be at work on most of them.
        while isinstance(place, bytes) and len(taken) < limit:
            claim = ("XAUTOCLAIM", QUEUE, GROUP, self._me, round(silence * 1000), place, "COUNT", limit - len(taken))
            (reply,) = await self._keys.run([claim])
            if _is_groupless(reply):
                await self._make_group()
            place, entries = reply[:2] if isinstance(reply, list) else (None, None)
            found = {entry.response: entry.id for entry in _entries(entries)}
            self._queued |= found
            taken |= found
            if place == b"0-0":
                break
        return list(taken)

    def leave(self, response_id: str) -> None:
        self._queued.pop(response_id, None)

    async def _make_group(self) -> None:
        """Does no harm if another process was quicker."""
        await self._keys.run([("XGROUP", "CREATE", QUEUE, GROUP, 0, "MKSTREAM"), self._delivery])


class _Entry(Struct, frozen=True):
    """An entry of one of our streams."""

    id: bytes
    fields: Mapping[bytes, bytes]

    @property
    def number(self) -> int:
        """The sequence number of the event."""
        return int(self.id.partition(b"-")[0]) - 1

    @property
    def event(self) -> bytes:
        return self.fields.get(b"event", b"")

    @property
    def last(self) -> bool:
        return b"last" in self.fields

    @property
    def full(self) -> bool:
        return b"full" in self.fields

    @property
    def response(self) -> str:
        return self.fields.get(b"response", b"").decode("ascii", "replace")


class _Followed:
    """A run that is followed in this process. It keeps the events numbered `oldest` + 1 to `newest`."""

    def __init__(self, run: Run, after: int) -> None:
        self.run = run
        self.followers = 0
        self.oldest = self.newest = after
        self.news = asyncio.Event()
        self._tail: deque[_Entry] = deque()
        self._bytes = 0

    def join(self, after: int) -> None:
        self.followers += 1
        if not self._tail:
            self.oldest = self.newest = min(self.newest, after)

    def tell(self, entries: Sequence[_Entry], after: int) -> None:
        """Adds the entries behind `after`. If somebody further behind has joined meanwhile, they are read anew."""
        if after != self.newest:
            return
        for entry in entries:
            self._tail.append(entry)
            self._bytes += len(entry.event)
            self.newest = entry.number
        while self._bytes > TAIL:
            gone = self._tail.popleft()
            self._bytes -= len(gone.event)
            self.oldest = gone.number
        self.news.set()
        self.news = asyncio.Event()

    def behind(self, after: int) -> list[_Entry] | None:
        """The entries behind `after`; None if some of them are no longer kept here."""
        return None if after < self.oldest else [entry for entry in self._tail if entry.number > after]


class StreamFollower:
    """A follower of one run, which reads at its own pace."""

    def __init__(self, keys: RedisKeyValue, followed: _Followed, after: int) -> None:
        self._keys = keys
        self._followed = followed
        self._after = after
        self.ended = self.full = False

    async def next(self) -> list[bytes]:
        news = self._followed.news
        if not (pieces := await self._there()):
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL):
                    await news.wait()
            pieces = await self._there()
        return pieces

    async def _there(self) -> list[bytes]:
        if self.full:
            return []
        run, after = self._followed.run, self._after
        behind = self._followed.behind(after)
        entries = await _behind(self._keys, run, after) if behind is None else behind
        pieces: list[bytes] = []
        for entry in entries:
            if entry.full or entry.number != self._after + 1:
                self.full = True
                break
            pieces.append(entry.event)
            self._after, self.ended = entry.number, entry.last
        return pieces


async def _behind(keys: RedisKeyValue, run: Run, after: int) -> list[_Entry]:
    """The next events of a run behind sequence number `after`, up to `MAX_BATCH`."""
    (reply,) = await keys.run([("XRANGE", _stream(run), f"{after + 2}-0", "+", "COUNT", MAX_BATCH)])
    return _entries(reply)


def _stream(run: Run) -> str:
    return f"{PREFIX}stream:{run.response_id}:{run.token}"


def _event(stream: str, number: int, piece: bytes, *options: str) -> Command:
    return ("XADD", stream, *options, f"{number + 1}-0", "event", piece)


def _is_there_already(reply: Reply) -> bool:
    """Whether an event was refused because it had been written before."""
    return isinstance(reply, Exception) and "equal or smaller" in str(reply)


def _is_groupless(reply: Reply) -> bool:
    return isinstance(reply, Exception) and "NOGROUP" in str(reply)


def _entry_of(reply: Reply) -> bytes:
    """The id that an entry was given."""
    if not isinstance(entry := _told(reply), bytes):
        raise StoreError("it does not queue")
    return entry


def _entries(reply: Reply) -> list[_Entry]:
    """The entries of a stream, read from a reply. Entries that were deleted meanwhile are left out."""
    found: list[_Entry] = []
    for one in reply if isinstance(reply, list) else ():
        match one:
            case [bytes(entry), [*words]]:
                told = [word for word in words if isinstance(word, bytes)]
                found.append(_Entry(entry, dict(zip(told[::2], told[1::2], strict=False))))
            case _:
                pass
    return found


def _told(reply: Reply) -> Reply:
    if isinstance(reply, Exception):
        raise StoreError(type(reply).__name__)
    return reply


def _streams(reply: Reply) -> Iterator[tuple[bytes, list[_Entry]]]:
    for one in reply if isinstance(reply, list) else ():
        match one:
            case [bytes(name), entries]:
                yield name, _entries(entries)
            case _:
                pass
