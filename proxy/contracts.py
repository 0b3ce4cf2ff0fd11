"""What the layers ask of each other and tell each other: protocols, and the values between them.

    backend  --BackendEvent-->  run_turn  --TurnEvent-->  wire builder  --StoredResponse-->  store

Implementers do not know each other; both sides know only this file.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import astuple, dataclass, field
from operator import add, sub
from typing import Any, Protocol, Self

from parser import ToolRegistry
from prompts import Item, Part, ToolChoice, Transcript

from .errors import ApiError
from .quota import Quota


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, as the backend counts them. `input_tokens` includes those that were read from the provider's cache and
    those that were written to it, `output_tokens` the reasoning ones.
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(add, astuple(self), astuple(other)))

    def __sub__(self, other: Usage) -> Usage:
        return Usage(*map(sub, astuple(self), astuple(other)))


@dataclass(frozen=True, slots=True)
class Lane:
    """How a turn found the conversation at its backend: `continued`, or made anew, and why."""

    continued: bool
    why: str


class Continuation:
    """Whether a conversation can go on at the backend from where a prompt's answer ends.

    A backend that keeps conversations sets `lane`, and once the answer has begun `resume` and `wind_down`; whoever
    reads the answer settles it, once, before its end is told.
    """

    __slots__ = ("lane", "resume", "wind_down")

    def __init__(self) -> None:
        self.lane: Lane | None = None
        self.resume: Callable[[bytes | None], None] | None = None
        self.wind_down: Callable[[], None] | None = None
        """Told when nothing more is wanted of the answer: it is read to its end all the same, which comes soon then."""

    def settle(self, meaning: bytes | None) -> None:
        """`meaning` is that of what the client got of the answer (`prompts.meaning_of_answer`); None: not what the
        model wrote, so that nothing may go on from it.
        """
        resume, self.resume = self.resume, None
        if resume is not None:
            resume(meaning)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen, for backends that let themselves be told; None leaves it to them."""

    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None


# The time on the monotonic clock, whether a message is ours or the other side's, and the message, which stays as it is.
LineListener = Callable[[float, bool, Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Prompt:
    """All that a text backend is given. `effort` and `summary` are the Responses API's reasoning values.

    The conversation comes in two forms: `developer` with `parts`, or `head` with `items`, as messages. What is not
    looked at need not be made.
    `tier` and `verbosity` are the API's too, where they are not the usual ones.
    `output_schema` is a JSON schema as JSON text, for a backend that can hold its model to it. `max_tokens` and `stop`
    say what would be cut off the answer anyway. `call_schema` is that of one call (JSON text), for a backend that can
    hold its model to it wherever a call begins in the answer. A conversation is kept for its `owner` alone; `names` are
    those by which a request knows its conversation, and that of the answer.
    """

    model: str
    developer: str | None
    parts: Sequence[Part]
    effort: str | None = None
    summary: str | None = None
    output_schema: str | None = None
    head: str | None = None
    items: Sequence[Item] = ()
    owner: str = ""
    names: frozenset[str] = frozenset()
    sampling: Sampling = Sampling()
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    tier: str | None = None
    verbosity: str | None = None
    call_schema: str | None = None
    listener: LineListener | None = field(default=None, compare=False, repr=False)
    """Told each message that the backend exchanges for this, where it speaks in JSON-RPC lines; does not raise."""
    continuation: Continuation = field(default_factory=Continuation, compare=False, repr=False)


# What a message of the model is to the one who reads it, where the model says so (the Responses API's `phase`).
PHASES = ("commentary", "final_answer")


# What a backend reports of one turn, in order. `TurnEnded` is the last event; failure is a raised `BackendError`.


@dataclass(frozen=True, slots=True)
class TextPiece:
    text: str


@dataclass(frozen=True, slots=True)
class MessagePhase:
    """One of `PHASES`: that of the open message, or of the one that begins now."""

    phase: str


@dataclass(frozen=True, slots=True)
class MessageEnded:
    """One message of the model is whole; a turn may hold several."""


@dataclass(frozen=True, slots=True)
class ReasoningPiece:
    """Text of the reasoning summary. `part` counts the summary's parts from 0."""

    part: int
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningEnded:
    """One reasoning item is whole (it may have had no text)."""


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """`incomplete` is `max_output_tokens` or `content_filter` when the model was cut, else None."""

    usage: Usage | None
    incomplete: str | None = None


BackendEvent = TextPiece | MessagePhase | MessageEnded | ReasoningPiece | ReasoningEnded | TurnEnded


@dataclass(frozen=True, slots=True)
class Model:
    id: str
    created: int
    owned_by: str


@dataclass(frozen=True, slots=True)
class Health:
    """`problem` is one sentence for a person, None when the backend can take a turn."""

    problem: str | None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """What a backend has to do now, and what it has done since it was entered.

    `open_turns` have not ended at the backend; `backlog` are characters that wait for their consumers. `starts` are
    its own, those in vain too; `interrupts` the turns that were left before their end. `quota` are the limits of its
    account, as far as it was told of any.
    """

    open_turns: int = 0
    backlog: int = 0
    starts: int = 0
    interrupts: int = 0
    quota: tuple[Quota, ...] = ()


class TextBackend(Protocol):
    """A model that takes text and images and gives text.

    It is entered once for its whole life. `stream` is entered once a turn and yields batches: all
    events that had arrived together, never an empty batch. Leaving `stream` early ends the turn at
    the backend, whatever state it is in, without making the caller wait for it. Errors are raised as
    `BackendError`; one raised before the first batch was yielded has cost nothing.
    """

    def heeds(self, model: str) -> frozenset[str]:
        """Those of a request's `wishes` that have an effect on that model, as far as is known by now."""
        return frozenset()

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...

    def stream(self, prompt: Prompt) -> AbstractAsyncContextManager[AsyncIterator[Sequence[BackendEvent]]]: ...

    @property
    def keeps_conversations(self) -> bool:
        """Whether an answer that is written otherwise than the prompt asks costs it the conversation."""
        return False

    def holds(self, schema: str) -> bool:
        """Whether a prompt's `output_schema`, should it be this one, leaves its model nothing else to write."""
        return False

    async def models(self) -> Sequence[Model]: ...

    async def health(self) -> Health: ...

    def load(self) -> Load: ...


# What a turn tells the wire builder. Calls are whole and checked unless `--calls live` is on.


@dataclass(frozen=True, slots=True)
class AnswerText:
    """`phase` is that of its message, one of `PHASES`, where it is known already."""

    text: str
    phase: str | None = None


@dataclass(frozen=True, slots=True)
class AnswerMessageEnded:
    """What comes next, if it is text, is another message. `phase` is that of the one that ended."""

    phase: str | None = None


@dataclass(frozen=True, slots=True)
class Reasoning:
    part: int
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningItemEnded:
    pass


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    call_id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolCallArguments:
    """The next piece of the arguments' JSON text of the call that was started last."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallEnded:
    """`complete` False: the call broke off (only with `--calls live`); the turn is about to fail, or to end cut."""

    complete: bool = True


@dataclass(frozen=True, slots=True)
class Compacted:
    """`summary` stands for the conversation up to here. `whole`: for the user's older messages too."""

    summary: str
    whole: bool


@dataclass(frozen=True, slots=True)
class TurnFinished:
    usage: Usage
    incomplete: str | None = None


@dataclass(frozen=True, slots=True)
class TurnFailed:
    error: ApiError


TurnEvent = (
    AnswerText
    | AnswerMessageEnded
    | Reasoning
    | ReasoningItemEnded
    | ToolCallStarted
    | ToolCallArguments
    | ToolCallEnded
    | Compacted
    | TurnFinished
    | TurnFailed
)


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """What the answer's text must be: a JSON object, or JSON that fits `schema` (JSON text).

    `strict`: what cannot be held against the schema does not leave.
    """

    schema: str | None = None
    name: str | None = None
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Compaction:
    """A conversation is to be made short: before the answer when it is longer than `threshold` tokens, by estimate;
    without a threshold at once, and that is all of the answer.
    """

    threshold: int | None = None


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """What a client wants of one turn, free of its wire format.

    `max_output_tokens` cuts the answer, `stop` ends it before the first of these strings, `truncate`
    lets the oldest turns go when the input is too long for the model. `streamed`: its client reads the answer while it
    is written. `repairs` counts what was done so that each past call has a result, `warnings` are sentences for the
    client, `wishes` the parameters that some backends heed and others do not. `owner` tells apart those who ask,
    `names` their conversations: ids and keys of theirs, and the id of the answer.
    """

    model: str
    transcript: Transcript
    registry: ToolRegistry
    choice: ToolChoice
    parallel: bool = True
    effort: str | None = None
    summary: str | None = None
    tier: str | None = None
    verbosity: str | None = None
    output_format: OutputFormat | None = None
    max_output_tokens: int | None = None
    stop: tuple[str, ...] = ()
    sampling: Sampling = Sampling()
    truncate: bool = False
    repairs: Mapping[str, int] = field(default_factory=dict)
    compaction: Compaction | None = None
    warnings: tuple[str, ...] = ()
    streamed: bool = True
    wishes: tuple[str, ...] = ()
    owner: str = ""
    names: frozenset[str] = frozenset()

    @property
    def also_shown(self) -> tuple[str, ...]:
        """What the model is shown of the client's words besides the conversation and the tools."""
        schema = self.output_format.schema if self.output_format else None
        return (schema,) if schema else ()


# A JSON object as it stands on the wire.
WireObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoredResponse:
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


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """A conversation without its items."""

    id: str
    owner: str
    created_at: int
    metadata: WireObject


@dataclass(frozen=True, slots=True)
class Claim:
    """That a request has a conversation to itself. `token` is nobody else's."""

    conversation_id: str
    owner: str
    token: str


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt at a background Response. `token` is nobody else's: what another run has taken over, this one does
    not write any more.
    """

    response_id: str
    token: str


@dataclass(frozen=True, slots=True)
class StoredRequest:
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
    ) -> bool:
        """Writes a Response, in place of the one with its id.

        `append_to` is a conversation that gets its input and output at the same moment. `events` is what
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

    async def find_item(self, item_id: str, owner: str) -> WireObject | None:
        """An input or output item of any stored Response."""

    async def claim(self, claim: Claim, lease: float, *, instead_of: Sequence[str] = ()) -> bool:
        """Whether nobody had the conversation, in any process, or only who has one of these tokens; it is the claim's
        for `lease` seconds then.
        """

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

    async def add_items(self, conversation_id: str, owner: str, items: Sequence[WireObject]) -> bool: ...

    async def delete_item(self, conversation_id: str, item_id: str, owner: str) -> bool: ...
