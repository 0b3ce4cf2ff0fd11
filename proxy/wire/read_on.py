"""An array of a request that begins like an earlier one: the common beginning is read once.

Clients send a conversation whole each time. Reading starts behind the longest beginning that came before as the same
JSON, byte for byte. So a client learns nothing that it did not send. The newest item may change before it comes again,
so the kept beginning ends in front of it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Generic, Self, TypeVar

import orjson
from msgspec import Struct

from prompts import Beginnings, Begun, Entry, bytes_taken

from .json_body import JsonValue
from .reader import Reader

# What a branch of a reader has of its own.
_CHANGING = (list, dict, set)


class ItemReader:
    """Reads the items of a conversation one after the other: `entries` are what they say so far."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def add(self, item: Reader) -> None:
        """Raises `RequestError`."""
        raise NotImplementedError

    def branch(self) -> Self:
        """The same, to go on by itself."""
        branched = object.__new__(type(self))
        own = {name: value.copy() if isinstance(value, _CHANGING) else value for name, value in vars(self).items()}
        vars(branched).update(own)
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
        self._context = (kind, context)
        self._values = values
        self._path = path
        # Up to the comma behind an item it is what every longer conversation begins with.
        self._written = orjson.dumps(values)
        self._end: R | None = None
        self.begun: R | None = None
        """What has read the beginning. It is shared: branch it to go on."""
        self.known = 0
        """How many items that are."""
        self._found = _BEGINNINGS.find(self._context, self._written)
        if self._found is not None and isinstance(reader := self._found.made.reader, kind):
            self.begun, self.known = reader, self._found.made.count

    def read_all(self) -> None:
        """What is known of the beginning does not hold for this request."""
        self._found = self.begun = None
        self.known = 0

    @property
    def new(self) -> Iterator[tuple[int, JsonValue]]:
        """The items behind the beginning, with their places."""
        return enumerate(self._values[self.known :], self.known)

    def reader(self, index: int, item: JsonValue) -> Reader:
        """Raises `RequestError` for what is no object."""
        return Reader.of(item, f"{self._path}[{index}]")

    def begin(self, fresh: Callable[[], R]) -> R:
        """What is to read the items next: what has read the beginning, or a `fresh` one."""
        return self.begun.branch() if self.begun else fresh()

    def read(self, reader: R) -> None:
        """Lets `reader` read them. Raises `RequestError`."""
        newest = len(self._values) - 1
        for index, item in self.new:
            if index == newest > self.known:
                self._end = reader.branch()
            reader.add(self.reader(index, item))

    def keep(self) -> None:
        """Nothing is wrong with what was read."""
        if self._end is None:
            return
        known = self._found.size - len(self._found.beginning) if self._found else 0
        entries = self._end.entries[len(self.begun.entries) if self.begun else 0 :]
        written = self._written[: -len(orjson.dumps(self._values[-1])) - 1]
        read = Read(len(self._values) - 1, self._end)
        _BEGINNINGS.keep(Begun(self._context, written, read, known + len(written) + bytes_taken(entries)), self._found)
