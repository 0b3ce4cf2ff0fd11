"""What of a turn's work is done aside, where it holds up nobody else.

It is what may take long, and sizes tell that: time would tell otherwise on another machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from ..contracts import BackendEvent, Prompt, TextPiece, TurnEvent, TurnRequest
from ..errors import BackendError
from .beside_calls import BesideCalls
from .json_output import JsonOutput
from .outlet import text_of
from .reading import Reading
from .verdict import Answer, held_to_format

# Characters of an answer that are read where they come; and of a request, beside which a call in the answer may take
# long to judge. What is more is read aside.
READ_AT_ONCE = 8_192
JUDGED_AT_ONCE = 32_768

# Characters and entries of a request that is prepared where it comes; a longer one aside as well.
PREPARED_AT_ONCE = 262_144
ENTRIES_AT_ONCE = 500

R = TypeVar("R")


class Aside(Protocol):
    """Does work that takes long where it holds up nobody else; of one `owner` at a time."""

    async def __call__(self, owner: str, work: Callable[[], R], /) -> R: ...


async def in_place(owner: str, work: Callable[[], R], /) -> R:
    return work()


def is_long(request: TurnRequest, characters: int) -> bool:
    """Whether to prepare a request with so many characters aside."""
    return characters > PREPARED_AT_ONCE or len(request.transcript.entries) > ENTRIES_AT_ONCE


class AsideIfLong:
    """The work for one request with so many `characters`. `judges`: answers may have calls, which are to be judged."""

    def __init__(self, request: TurnRequest, aside: Aside, *, characters: int, judges: bool) -> None:
        self._owner = request.owner
        self._aside = aside
        self._prepares = is_long(request, characters)
        self._judges = judges and characters > JUDGED_AT_ONCE

    async def _done(self, work: Callable[[], R], *, long: bool) -> R:
        return await self._aside(self._owner, work) if long else work()

    async def made(self, make: Callable[[], Prompt]) -> Prompt:
        """The prompt that `make` returns."""
        return await self._done(lambda: _whole(make()), long=True) if self._prepares else make()

    async def received(self, reading: Reading, batch: Sequence[BackendEvent]) -> list[TurnEvent]:
        """What `reading` makes of `batch`."""
        texts = [event.text for event in batch if isinstance(event, TextPiece)]
        # A call is judged where it ends, by all that the request holds.
        judges = self._judges and any(">" in text for text in texts)
        if judges or sum(map(len, texts)) > READ_AT_ONCE:
            return await self._done(partial(reading.receive, batch), long=True)
        return reading.receive(batch)  # for each delta, so straight

    async def finished(self, reading: Reading, failure: BackendError | None) -> list[TurnEvent]:
        """What `reading` makes of the end of its answer."""
        return await self._done(
            partial(reading.finish, failure), long=self._judges or reading.characters > READ_AT_ONCE
        )

    async def held_to_format(self, answer: Answer, output: JsonOutput | None) -> Answer:
        """`answer` as `verdict.held_to_format` has it."""
        long = output is not None and len(answer.written) > READ_AT_ONCE
        return await self._done(partial(held_to_format, answer, output), long=long)

    async def fitting(self, beside: BesideCalls, events: list[TurnEvent], *, told: bool) -> list[TurnEvent]:
        """`events` as `beside` has them."""
        return await self._done(partial(beside.fitting, events, told=told), long=len(text_of(events)) > READ_AT_ONCE)


def _whole(prompt: Prompt) -> Prompt:
    """`prompt` with both its forms made: which one its backend will look at is not known here."""
    for form in (prompt.parts, *(item.parts for item in prompt.items)):
        len(form)
    return prompt
