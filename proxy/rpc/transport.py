"""What a client needs of whatever carries its lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Transport(Protocol):
    """Carries lines. Only the client that owns it may use it."""

    async def hear(self, take: Callable[[bytes], None]) -> None:
        """Give `take` all that arrives, at least one byte a time, until nothing will come any more. What comes while
        nobody hears waits. May raise `OSError` at the end.
        """
        ...

    def offer(self, line: bytes) -> bool:
        """Hand one line over now, behind those that were sent. False: it cannot be, and is to be sent."""
        ...

    async def send(self, line: bytes) -> None:
        """Hand one line over, waiting while the other side does not read. Raises `ConnectionError` at the end."""
        ...

    async def close(self) -> None:
        """End it for good, in bounded time. May be called again."""
        ...

    def abort(self) -> None:
        """End it now, with no farewell: `hear` ends soon. `close` still has to follow."""
        ...

    def describe_end(self) -> str:
        """For a log or a person: why it ended, as far as is known."""
        ...

    async def resident_bytes(self) -> int | None:
        """Memory that the other side takes; None where that cannot be known."""
        ...
