"""An array of a request that goes on from one before: what both begin with is read once.

Clients send a conversation whole each time. Reading goes on behind the longest beginning that came before, byte by byte
the same JSON; nothing is known of it that the client does not send. The newest item may be another one when it comes
again, so what is kept ends in front of it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, Protocol, Self, TypeVar

import orjson
from msgspec import Struct

from prompts import Beginnings, Begun, Entry, bytes_taken

from .json_body import JsonValue
from .reader import Reader


class ItemReader(Protocol):
    """Reads items one after the other."""

    entries: list[Entry]

    def add(self, item: Reader, /) -> None: ...

    def branch(self) -> Self:
        """The same, to go on by itself."""


R = TypeVar("R", bound=ItemReader)


class Read(Struct, Generic[R], frozen=True):
    """Of so many items."""

    count: int
    reading: R


class ReadOn(Generic[R]):
    """The items of one request, at `path` in it, of which some may be in `kept` for its `context`."""

    def __init__(
        self, kept: Beginnings[bytes, Read[R]], context: Hashable, values: Sequence[JsonValue], path: str
    ) -> None:
        self._kept = kept
        self._context = context
        self._values = values
        self._path = path
        # Up to the comma behind each item it is the beginning of what every longer conversation has.
        self._written = orjson.dumps(values)
        self._found = kept.find(context, self._written)
        self._new: Sequence[Reader] | None = None
        self._end: R | None = None

    @property
    def begun(self) -> R | None:
        """What has read the beginning. It is shared: branch it to go on."""
        return self._found.made.reading if self._found else None

    @property
    def known(self) -> int:
        """How many items that are."""
        return self._found.made.count if self._found else 0

    def read_all(self) -> None:
        """What is known of the beginning does not hold for this request."""
        self._found = self._new = None

    @property
    def new(self) -> Sequence[Reader]:
        """The items behind the beginning. Raises `RequestError` for what is no object."""
        if self._new is None:
            values = enumerate(self._values[self.known :], self.known)
            self._new = [Reader.of(value, f"{self._path}[{index}]") for index, value in values]
        return self._new

    def read(self, fresh: Callable[[], R]) -> R:
        """What has read all items; a `fresh` one begins where nothing is known. Raises `RequestError`."""
        reading = self.begun.branch() if self.begun else fresh()
        for item in self.new[:-1]:
            reading.add(item)
        self._end = reading.branch() if len(self.new) > 1 else None
        for item in self.new[-1:]:
            reading.add(item)
        return reading

    def keep(self) -> None:
        """Nothing is wrong with what was read."""
        if self._end is None:
            return
        known = self._found.size - len(self._found.beginning) if self._found else 0
        entries = self._end.entries[len(self.begun.entries) if self.begun else 0 :]
        written = self._written[: -len(orjson.dumps(self._values[-1])) - 1]
        read = Read(len(self._values) - 1, self._end)
        self._kept.keep(Begun(self._context, written, read, known + len(written) + bytes_taken(entries)), self._found)
