"""What a request asks of a turn, and what the turn reports to the wire builder."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from parser import ToolRegistry
from prompts import ToolChoice, Transcript

from ..errors import ApiError
from .backend import Sampling, Usage

# What a turn tells the wire builder. Calls are whole and checked unless `--calls live` is on.


class AnswerText(Struct, frozen=True):
    """`phase` is that of its message, one of `PHASES`, where it is known already."""

    text: str
    phase: str | None = None


class AnswerMessageEnded(Struct, frozen=True):
    """What comes next, if it is text, is another message. `phase` is that of the one that ended."""

    phase: str | None = None


class Reasoning(Struct, frozen=True):
    part: int
    text: str


class ReasoningItemEnded(Struct, frozen=True):
    pass


class ToolCallStarted(Struct, frozen=True):
    call_id: str
    name: str


class ToolCallArguments(Struct, frozen=True):
    """The next piece of the arguments' JSON text of the call that was started last."""

    text: str


class ToolCallEnded(Struct, frozen=True):
    """`complete` False: the call broke off (only with `--calls live`); the turn is about to fail, or to end cut."""

    complete: bool = True


class Compacted(Struct, frozen=True):
    """`summary` stands for the conversation up to here. `whole`: for the user's older messages too."""

    summary: str
    whole: bool


class TurnFinished(Struct, frozen=True):
    """`stop` is the stop string that ended the answer, where one did and it is known which."""

    usage: Usage
    incomplete: str | None = None
    stop: str | None = None


class TurnFailed(Struct, frozen=True):
    """`usage` is that of the answers which ended before it failed, None for none."""

    error: ApiError
    usage: Usage | None = None


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


class OutputFormat(Struct, frozen=True):
    """What the answer's text must be: a JSON object, or JSON that fits `schema` (JSON text).

    `strict`: what cannot be held against the schema does not leave.
    """

    schema: str | None = None
    name: str | None = None
    strict: bool = False


class Compaction(Struct, frozen=True):
    """A conversation is to be made short: before the answer when it is longer than `threshold` tokens, by estimate;
    without a threshold at once, and that is all of the answer.
    """

    threshold: int | None = None


class TurnRequest(Struct, frozen=True):
    """What a client wants of one turn, free of its wire format.

    `max_output_tokens` cuts the answer, `stop` ends it before the first of these strings, `truncate`
    lets the oldest turns go when the input is too long for the model. `streamed`: its client reads the answer while it
    is written. `repairs` counts what was done so that each past call has a result, `warnings` are sentences for the
    client, `wishes` the parameters that some backends heed and others do not. `owner` tells apart those who ask,
    `names` their conversations: ids and keys of theirs, and the id of the answer. `searchable`: its client has more
    tools, which the model is offered once a search has found them.
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
    searchable: bool = False

    @property
    def also_shown(self) -> tuple[str, ...]:
        """What the model is shown of the client's words besides the conversation and the tools."""
        schema = self.output_format.schema if self.output_format else None
        return (schema,) if schema else ()
