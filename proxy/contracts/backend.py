"""What a backend is asked, and what it reports of one turn."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from operator import add, attrgetter, sub
from typing import Any, Protocol, Self

from msgspec import Struct, field

from prompts import Item, Part

from ..errors import TagcallError
from ..quota import Quota


class Usage(Struct, frozen=True):
    """Tokens, as the backend counts them. `input_tokens` includes those that were read from the provider's cache and
    those that were written to it, `output_tokens` the reasoning ones.
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(add, _counts(self), _counts(other)))

    def __sub__(self, other: Usage) -> Usage:
        """What came behind `other`. A count that has become less tells nothing."""
        return Usage(*(max(0, count) for count in map(sub, _counts(self), _counts(other))))


# What is more is a mistake: every client can read this, and some sums of it.
_MOST_TOKENS = 2**53 - 1


def token_count(told: float | str) -> int:
    """A count of tokens as a backend tells it. Raises `ValueError` or `TypeError` for what is none."""
    return min(max(0, int(told)), _MOST_TOKENS)


_counts = attrgetter(*Usage.__struct_fields__)


class Lane(Struct, frozen=True):
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
        self.resume: Callable[[frozenset[bytes] | None], None] | None = None
        self.wind_down: Callable[[], None] | None = None
        """Told when nothing more is wanted of the answer: it is read to its end all the same, which comes soon then."""

    def settle(self, meanings: frozenset[bytes] | None) -> None:
        """`meanings` are those of what the client got of the answer (`prompts.meanings_of_answer`); None: not what the
        model wrote, so that nothing may go on from it.
        """
        resume, self.resume = self.resume, None
        if resume is not None:
            resume(meanings)


class Sampling(Struct, frozen=True):
    """How the next token is chosen, for backends that let themselves be told; None leaves it to them."""

    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None


# The time on the monotonic clock, whether a message is ours or the other side's, and the message, which stays as it is.
LineListener = Callable[[float, bool, Mapping[str, Any]], None]


class Prompt(Struct, frozen=True, dict=True, eq=False):
    """All that a text backend is given. `effort` and `summary` are the Responses API's reasoning values.

    The conversation comes in two forms: `developer` with `parts`, or `head` with `items`, as messages. What is not
    looked at need not be made.
    `tier` and `verbosity` are the API's too, where they are not the usual ones.
    `output_schema` is a JSON schema as JSON text, for a backend that can hold its model to it. `max_tokens` and `stop`
    say what would be cut off the answer anyway. `call_schema` is that of one call (JSON text), for a backend that can
    hold its model to it wherever a call begins in the answer. `calls_held`: `output_schema` is that of calls, so they
    are not written as the developer text has it. `key_habit` is what is known of the model: whether it writes the key
    into its calls. A conversation is kept for its `owner` alone; `names` are
    those by which a request knows its conversation, and that of the answer. `bare_head` is the `head` without what it
    says of tools; a request that is `toolless` declares none, and may go on with a conversation that had some.
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
    calls_held: bool = False
    key_habit: str | None = None
    bare_head: str | None = None
    toolless: bool = False
    listener: LineListener | None = None
    """Told each message that the backend exchanges for this, where it speaks in JSON-RPC lines; does not raise."""
    continuation: Continuation = field(default_factory=Continuation)

    @cached_property
    def said(self) -> Sequence[Item]:
        """The `items` that somebody said, without lines of ours, which stand at the end."""
        items = [*self.items]
        while items and items[-1].ours is not None:
            items.pop()
        return items


# What a message of the model is to the one who reads it, where the model says so (the Responses API's `phase`).
PHASES = ("commentary", "final_answer")


# What a backend reports of one turn, in order. `TurnEnded` is the last event; failure is a raised `BackendError`.


class TextPiece(Struct, frozen=True):
    text: str


class MessagePhase(Struct, frozen=True):
    """One of `PHASES`: that of the open message, or of the one that begins now."""

    phase: str


class MessageEnded(Struct, frozen=True):
    """One message of the model is whole; a turn may hold several."""


class ReasoningPiece(Struct, frozen=True):
    """Text of the reasoning summary. `part` counts the summary's parts from 0. What nobody `asked` for only counts."""

    part: int
    text: str
    asked: bool = True


class ReasoningEnded(Struct, frozen=True):
    """One reasoning item is whole (it may have had no text)."""


class TurnEnded(Struct, frozen=True):
    """`incomplete` is `max_output_tokens` or `content_filter` when the model was cut, else None."""

    usage: Usage | None
    incomplete: str | None = None


BackendEvent = TextPiece | MessagePhase | MessageEnded | ReasoningPiece | ReasoningEnded | TurnEnded


class Model(Struct, frozen=True):
    """`listed`: the backend itself tells of it. Another was named by whoever started the proxy. `context` is how many
    tokens it reads, as its server tells, if any does.
    """

    id: str
    created: int
    owned_by: str
    listed: bool = True
    context: int | None = None


class Health(Struct, frozen=True):
    """`trouble` is why the backend can take no turn, None when it can."""

    trouble: TagcallError | None
    version: str | None = None

    @property
    def problem(self) -> str | None:
        """One sentence for a person."""
        return None if self.trouble is None else str(self.trouble)


class Load(Struct, frozen=True):
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
    def takes_items(self) -> bool:
        """Whether it mostly looks at a prompt's `items`, else at its `parts`. Of a long one both take long to make."""
        return True

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
