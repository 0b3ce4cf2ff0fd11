"""Which work of a turn is offloaded, so that it holds up nobody else.

Size decides whether work may take long. If time did, another machine would decide otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol, TypeVar

from ..contracts import BackendEvent, Prompt, TextPiece, TurnEvent, TurnRequest

# Characters of an answer that are read where they come; and of a request, beside which a call in the answer may take
# long to judge. What is more is offloaded.
READ_AT_ONCE = 8_192
JUDGED_AT_ONCE = 32_768
# And of one that are read elsewhere in one piece.
OFFLOADED_AT_ONCE = 65_536

# Characters and entries of a request that is prepared where it comes; a longer one is offloaded as well.
PREPARED_AT_ONCE = 262_144
ENTRIES_AT_ONCE = 500

R = TypeVar("R")


class Offload(Protocol):
    """Does work that takes long where it holds up nobody else; of one `owner` at a time."""

    async def __call__(self, owner: str, work: Callable[[], R], /) -> R: ...


async def in_place(owner: str, work: Callable[[], R], /) -> R:
    return work()


def is_long(request: TurnRequest, characters: int) -> bool:
    """Whether to prepare a request with so many characters elsewhere."""
    return characters > PREPARED_AT_ONCE or len(request.transcript.entries) > ENTRIES_AT_ONCE


class OffloadIfLong:
    """The work for one request with so many `characters`. `judges`: answers may have calls, which are to be judged.

    `takes_items` is the backend's.
    """

    def __init__(
        self, request: TurnRequest, offload: Offload, *, characters: int, judges: bool, takes_items: bool
    ) -> None:
        self._owner = request.owner
        self._offload = offload
        self._prepares = is_long(request, characters)
        self._judges = judges and characters > JUDGED_AT_ONCE
        self._takes_items = takes_items

    async def made(self, make: Callable[[], Prompt]) -> Prompt:
        """The prompt that `make` returns. Of a long one the form is made that its backend takes."""
        return await self._offload(self._owner, lambda: self._whole(make())) if self._prepares else make()

    def _whole(self, prompt: Prompt) -> Prompt:
        len(prompt.items if self._takes_items else prompt.parts)
        return prompt

    async def received(
        self, receive: Callable[[Sequence[BackendEvent]], list[TurnEvent]], batch: Sequence[BackendEvent]
    ) -> list[TurnEvent]:
        """What `receive` makes of `batch`."""
        characters, judged = 0, False
        for event in batch:
            if isinstance(event, TextPiece):
                characters += len(event.text)
                # A call is judged where it ends, by all that the request holds.
                judged = judged or (self._judges and ">" in event.text)
        if judged or characters > READ_AT_ONCE:
            events: list[TurnEvent] = []
            # Beside a short request all of it is read soon.
            for part in _parts(batch) if self._judges else [batch]:
                events += await self._offload(self._owner, partial(receive, part))
            return events
        return receive(batch)  # for each delta, so straight

    async def done(self, work: Callable[[], R], characters: int = 0, *, judges: bool = False) -> R:
        """What `work` returns, on so many `characters` of an answer; it `judges` if a call may end in them."""
        long = characters > READ_AT_ONCE or (judges and self._judges)
        return await self._offload(self._owner, work) if long else work()


def _parts(batch: Sequence[BackendEvent]) -> Iterator[list[BackendEvent]]:
    """`batch` in parts of so many characters at most: between two of them the work ends, if its client has gone."""
    part: list[BackendEvent] = []
    room = OFFLOADED_AT_ONCE
    for event in batch:
        if not isinstance(event, TextPiece):
            part.append(event)
            continue
        start, text = 0, event.text
        while len(text) - start > room:
            yield [*part, TextPiece(text[start : start + room])]
            start, part, room = start + room, [], OFFLOADED_AT_ONCE
        part.append(TextPiece(text[start:]))
        room -= len(text) - start
    if part:
        yield part
