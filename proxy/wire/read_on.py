"""An array of a request that goes on from one before: what both begin with is read once.

Clients send a conversation whole each time. Reading goes on behind the longest beginning that came before, byte by byte
the same JSON; nothing is known of it that the client does not send. The newest item may be another one when it comes
again, so what is kept ends in front of it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from copy import copy
from itertools import islice
from typing import Generic, Self, TypeVar

import orjson
from msgspec import Struct

from prompts import Beginnings, Begun, Entry, bytes_taken

from .json_body import JsonValue
from .reader import Reader


class ItemReader:
    """Reads the items of a conversation one after the other: `entries` are what they say so far."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def add(self, item: Reader) -> None:
        """Raises `RequestError`."""
        raise NotImplementedError

    def branch(self) -> Self:
        """The same, to go on by itself."""
        branched = copy(self)
        own = ((name, value) for name, value in vars(self).items() if isinstance(value, list | dict | set))
        vars(branched).update({name: copy(value) for name, value in own})
        return branched


R = TypeVar("R", bound=ItemReader)


class Read(Struct, frozen=True):
    """What has read so many items."""

    count: int
    reader: ItemReader


# Bytes that may be taken by what was read lately: two or three conversations of 1,000 items.
_BEGINNINGS: Beginnings[bytes, Read] = Beginnings(4 * 2**20)


class ReadOn(Generic[R]):
    """The items of one request, which are `values` at `path` in it, for a `kind` of reader that is set up as `context`
    says.
    """

    def __init__(self, kind: type[R], context: Hashable, values: Sequence[JsonValue], path: str) -> None:
        self._kind = kind
        self._context = (kind, context)
        self._values = values
        self._path = path
        # Up to the comma behind an item it is what every longer conversation begins with.
        self._written = orjson.dumps(values)
        self._found = _BEGINNINGS.find(self._context, self._written)
        self._end: R | None = None

    @property
    def begun(self) -> R | None:
        """What has read the beginning. It is shared: branch it to go on."""
        reader = self._found.made.reader if self._found else None
        return reader if isinstance(reader, self._kind) else None

    @property
    def known(self) -> int:
        """How many items that are."""
        return self._found.made.count if self._found else 0

    def read_all(self) -> None:
        """What is known of the beginning does not hold for this request."""
        self._found = None

    @property
    def new(self) -> Iterator[Reader]:
        """The items behind the beginning. Raises `RequestError` for what is no object."""
        for index in range(self.known, len(self._values)):
            yield Reader.of(self._values[index], f"{self._path}[{index}]")

    def begin(self, fresh: Callable[[], R]) -> R:
        """What is to read the items next: what has read the beginning, or a `fresh` one."""
        return self.begun.branch() if self.begun else fresh()

    def read(self, reader: R) -> None:
        """Lets `reader` read them. Raises `RequestError`."""
        new, newest = self.new, len(self._values) - 1
        for item in islice(new, max(0, newest - self.known)):
            reader.add(item)
        self._end = reader.branch() if newest > self.known else None
        for item in new:
            reader.add(item)

    def keep(self) -> None:
        """Nothing is wrong with what was read."""
        if self._end is None:
            return
        known = self._found.size - len(self._found.beginning) if self._found else 0
        entries = self._end.entries[len(self.begun.entries) if self.begun else 0 :]
        written = self._written[: -len(orjson.dumps(self._values[-1])) - 1]
        read = Read(len(self._values) - 1, self._end)
        _BEGINNINGS.keep(Begun(self._context, written, read, known + len(written) + bytes_taken(entries)), self._found)
