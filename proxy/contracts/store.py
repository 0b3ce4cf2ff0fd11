"""What is kept of responses and conversations, and who keeps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, Self

from msgspec import Struct

# A JSON object as it stands on the wire.
WireObject = Mapping[str, Any]


class StoredResponse(Struct, frozen=True):
    """A Response, with what it answered.

    `input` are the items of its own request, each with an id; what stood before them is found through
    `previous`. `owner` tells apart those who may ask for it: an id alone is no authority.
    """

    id: str
    previous: str | None
    owner: str
    created_at: int
    input: tuple[WireObject, ...]
    response: WireObject

    @property
    def output(self) -> tuple[WireObject, ...]:
        return tuple(self.response["output"])


class StoredConversation(Struct, frozen=True):
    """A conversation without its items."""

    id: str
    owner: str
    created_at: int
    metadata: WireObject


class Claim(Struct, frozen=True):
    """That a request has a conversation to itself. `token` is nobody else's.

    It ends with its time, or as soon as its `process` gives no sign of life any more, if it names one. `request` is
    what a balancer calls the request, if it does: one that was answered is not answered again.
    """

    conversation_id: str
    owner: str
    token: str
    process: str = ""
    request: str = ""


class Run(Struct, frozen=True):
    """One attempt at a background Response. `token` is nobody else's: what another run has taken over, this one does
    not write any more.
    """

    response_id: str
    token: str


class StoredRequest(Struct, frozen=True):
    """What a background Response is made from, so that another process can make it: the request's body, and who
    asked. No key is in it.
    """

    owner: str
    body: bytes
    claim: Claim | None


class Follower(Protocol):
    """Somebody who is told a run's events."""

    ended: bool
    """The last event has been told."""
    full: bool
    """No more come before the Response is over: they did not fit."""

    async def next(self) -> Sequence[bytes]:
        """The events that have come, a piece each; none when there were none for a while. Raises `StoreError`."""


class Journal(Protocol):
    """The events of background Responses while they are made, for all processes on a store, and the queue of them.

    What is told here without being awaited is written soon, together and in its order, as soon as the store can be
    written; `run` is what writes it, and is to run as long as anybody uses the journal.
    """

    takes_over: bool
    """Whether processes tell one another's events, and go on with one another's work."""
    hold: float
    """Seconds that a lease is to hold in the store; with `takes_over` the queue knows better who has gone."""

    async def run(self) -> None: ...

    async def begin(self, run: Run, opening: Sequence[bytes]) -> None:
        """A run begins, with these events. This process is at work on it until `end`, as long as it renews."""

    def append(self, run: Run, number: int, pieces: Sequence[bytes], *, last: bool = False) -> bool:
        """Events of a run, the first of which has this sequence number. False: for the first time they do not fit."""

    def end(self, run: Run) -> None:
        """The Response is over, or is not to be made by anybody any more."""

    def forget(self, run: Run) -> None:
        """The run has lost its Response to another one: its events go."""

    def follow(self, run: Run, after: int) -> AbstractAsyncContextManager[Follower]:
        """The events of a run behind sequence number `after`, as they come."""

    async def events(self, run: Run) -> list[bytes] | None:
        """A run's events so far; None where only its own process knows them."""

    async def renew(self, runs: Sequence[Run]) -> set[Run]:
        """A sign of life from each. Returns those whose lease is gone: they are another's now, or nobody's."""

    async def take(self, silence: float, limit: int) -> list[str]:
        """Responses of which nobody has given a sign for `silence` seconds, for this process alone to look after."""

    def leave(self, response_id: str) -> None:
        """What was taken is for others to take, once they miss a sign of it."""

    async def flush(self) -> None:
        """Returns when all is written, or cannot be."""


class ResponseStore(Protocol):
    """Keeps Responses and conversations by id. Entered once for its whole life.

    Nothing raises for what is not there or is another's. `StoreError` means that the store itself cannot
    be read or written. What is written is written as a whole or not at all, and once a method returns it
    would survive the end of this process, as far as the store can keep anything.
    """

    keeps: bool
    """False: nothing is kept, whatever is saved."""
    journal: Journal

    @property
    def up(self) -> bool:
        """Whether it could be reached when it was last."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...

    async def save(
        self,
        stored: StoredResponse,
        *,
        append_to: str | None = None,
        events: bytes | None = None,
        lease: Run | None = None,
        request: StoredRequest | None = None,
        leased_by: Run | None = None,
        claim: Claim | None = None,
    ) -> bool:
        """Writes a Response, in place of the one with its id.

        `append_to` is a conversation that gets its input and output at the same moment, which ends its `claim`; nothing
        is written and the result is False when another request has the conversation by now. `events` is what
        `load_events` gives back. With `lease` that run is at work on it, by `request` if it comes to that; without one
        nobody is any more. `leased_by`: nothing is written and the result is False when that run has it no more.
        """

    async def lease_of(self, response_id: str) -> Run | None:
        """The run that is at work on a Response."""

    async def load_request(self, response_id: str) -> StoredRequest | None:
        """What a Response is made from that somebody is at work on, whoever asked for it."""

    async def tell(self, run: Run) -> bool:
        """Notes that somebody is about to be told of a run's output. False: it has lost the Response."""

    async def take_over(self, run: Run, by: Run) -> bool:
        """Whether `by` has the Response now: only if `run` had it and nobody was told anything of its output."""

    async def load(self, response_id: str, owner: str) -> StoredResponse | None: ...

    async def load_events(self, response_id: str, owner: str) -> bytes | None: ...

    async def delete(self, response_id: str, owner: str) -> bool:
        """Whether it was there. Its lease ends with it."""

    async def find_items(self, item_ids: Sequence[str], owner: str) -> dict[str, WireObject]:
        """Those of these input and output items, of any stored Response, that are there, by their ids."""

    async def sign(self, process: str, seconds: float) -> None:
        """That a process lives, for so many seconds."""

    async def claim(self, claim: Claim, lease: float, *, instead_of: Sequence[str] = ()) -> bool:
        """Whether nobody had the conversation, in any process, or only who has one of these tokens; it is the claim's
        for `lease` seconds then.
        """

    async def claimed_for(self, claim: Claim) -> float:
        """Seconds after which the conversation is free, if whoever has it gives no more signs."""

    async def renew_claim(self, claim: Claim, lease: float) -> bool:
        """Whether the claim still held; it does for `lease` seconds more then."""

    async def release(self, claim: Claim) -> None:
        """Ends the claim, if it still holds."""

    async def save_conversation(self, conversation: StoredConversation, items: Sequence[WireObject] = ()) -> None:
        """Writes a new conversation that begins with `items`."""

    async def load_conversation(self, conversation_id: str, owner: str) -> StoredConversation | None: ...

    async def update_conversation(
        self, conversation_id: str, owner: str, metadata: WireObject
    ) -> StoredConversation | None:
        """The conversation with this metadata in place of its own."""

    async def delete_conversation(self, conversation_id: str, owner: str) -> bool: ...

    async def items(self, conversation_id: str, owner: str) -> tuple[WireObject, ...] | None:
        """The items of a conversation, oldest first."""

    async def add_items(
        self, conversation_id: str, owner: str, items: Sequence[WireObject], *, claim: Claim | None = None
    ) -> bool:
        """Whether the conversation was there. It ends the claim on it; False, too, when that is another's by now."""

    async def delete_item(self, conversation_id: str, item_id: str, owner: str) -> bool: ...
