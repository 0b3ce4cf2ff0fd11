"""Everything that is decided before the model's first word, and what each attempt is for."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import cached_property, partial

from msgspec import Struct, field

from parser import ToolRegistry
from prompts import (
    PROFILES,
    AssistantText,
    ChoiceMode,
    ModelRule,
    PastCall,
    PromptProfile,
    newest_results,
    offered_tools,
    outline_of,
    shows_header,
    strings_of_tools,
    text_before_key,
    was_sent,
)

from ..contracts import TurnRequest
from ..schema.declared import ToolSchemas
from .held_calls import HeldCalls
from .json_output import JsonOutput
from .json_stream import HeldFormats, StreamJson
from .key_habits import FixedHabit, Speaker
from .offload import Offload, in_place
from .outlet import CallRelease
from .reason import Reason
from .report import Count, TurnReport
from .spent import MAX_ANSWER
from .turn_key import CallKeys, KeyMode, TurnKey

# Characters of a result: what is longer may be just what was asked for.
LONGEST_ECHO = 200


class EmptyAnswers(Enum):
    """What a client gets where the model has said nothing that is left."""

    SENTENCE = "sentence"
    EMPTY = "empty"


class TurnOptions(Struct, frozen=True):
    """What the owner of the proxy chose for every turn."""

    release: CallRelease = CallRelease.WHOLE
    profile: PromptProfile = PROFILES["frontier"]
    call_keys: CallKeys = field(default_factory=CallKeys)
    offload: Offload = in_place
    stream_json: StreamJson = StreamJson.HELD
    formats: HeldFormats = field(default_factory=HeldFormats)
    held_calls: HeldCalls = field(default_factory=HeldCalls)
    max_answer: int = MAX_ANSWER
    """Bytes of text and thoughts that are read of one turn."""
    empty_answers: EmptyAnswers = EmptyAnswers.SENTENCE


class Plan(Struct, frozen=True, dict=True):
    """What a request and its owner's options make of a turn.

    `offered` are the tools that may be called, `schemas` theirs, and `key` is what their calls carry. `output` is what
    an answer in text has to be.
    """

    request: TurnRequest
    options: TurnOptions
    offered: ToolRegistry
    schemas: ToolSchemas
    key: TurnKey
    output: JsonOutput | None = None

    @classmethod
    def of(cls, request: TurnRequest, options: TurnOptions, report: TurnReport) -> Plan:
        """Raises `RequestError` when the request has a schema that nothing can be checked by."""
        offered = offered_tools(request.registry, request.choice)
        unchecked = partial(report.count, Count.UNCHECKED)
        schemas = ToolSchemas(offered, unchecked)
        keys, key = options.call_keys, None
        if len(offered) and keys.mode is not KeyMode.OFF:
            profile = options.profile
            before = text_before_key(request.transcript, offered, parallel=request.parallel, profile=profile)
            others = [*strings_of_tools(request.registry), *request.also_shown]
            key = keys.key(request.owner, before, lambda key: was_sent(key, request.transcript, others))
        output = JsonOutput(request.output_format, report) if request.output_format else None
        turn_key = TurnKey(keys.mode, key, Speaker.of(request), keys.habits)
        return cls(request, options, offered, schemas, turn_key, output)

    @classmethod
    def to_measure(cls, request: TurnRequest, profile: PromptProfile) -> Plan:
        """Enough of a plan to see how long its prompt is."""
        key = TurnKey(KeyMode.OFF, None, Speaker(request.owner, request.model), FixedHabit())
        offered, unread = offered_tools(request.registry, request.choice), ToolSchemas(ToolRegistry(), lambda why: None)
        return cls(request, TurnOptions(profile=profile), offered, unread, key)

    @property
    def offers(self) -> bool:
        """A call is possible."""
        return len(self.offered) > 0

    @property
    def demands(self) -> bool:
        """A call is demanded."""
        return self.offers and self.request.choice.mode is ChoiceMode.REQUIRED

    @cached_property
    def reads_calls(self) -> bool:
        """Whether an answer is read for calls."""
        # Where no tool is left to call, past calls are still imitated, and declared ones are called all the same.
        return len(self.request.registry) > 0 or PastCall in outline_of(self.request.transcript.entries).kinds

    @property
    def reads_bare(self) -> bool:
        """Whether an answer that is nothing but a call's JSON is that call."""
        # Where JSON is asked for, an answer that looks like a call may be that.
        return self.demands or (self.options.profile.bare_calls and self.output is None)

    @cached_property
    def has_headers(self) -> bool:
        """Whether there are headers that the model may imitate."""
        # A lone message has none, and may be about such headers.
        return self.reads_calls or AssistantText in outline_of(self.request.transcript.entries).kinds

    @cached_property
    def quotes_headers(self) -> bool:
        """Whether an answer that begins like a header of ours may show what somebody else wrote: all is read for it."""
        return shows_header(self.request.transcript)

    @property
    def live(self) -> bool:
        """Calls leave while they are written, where they can."""
        # Whoever gets the answer as a whole gains nothing by a call that has begun, and loses it if it breaks.
        return self.request.streamed and self.options.release is CallRelease.LIVE

    @property
    def keeps_calls_together(self) -> bool:
        """One call may be the reason to refuse all: some tool is strict, or none is seen before the end."""
        return self.schemas.strict or not self.request.streamed

    def has_rule(self, rule: ModelRule) -> bool:
        return rule in self.options.profile.rules

    def doubts(self, rule: ModelRule) -> bool:
        """Whether an answer that adds nothing is asked for once more by that rule."""
        return self.offers and not self.demands and self.has_rule(rule)

    @property
    def keep_for(self) -> Reason | None:
        """Why an answer is kept from the beginning."""
        # Where a call is demanded the format is that of an answer in text, which would be refused.
        return Reason.CALL_MISSING if self.demands else Reason.OUTPUT_INVALID if self.output else None

    @cached_property
    def echoes(self) -> Sequence[str]:
        """The results that an answer right behind them may only repeat, where that is asked for once more."""
        if self.keep_for or not self.doubts(ModelRule.ECHO):
            return ()
        return [result for result in newest_results(self.request.transcript) if len(result) <= LONGEST_ECHO]


class Again(Struct, frozen=True):
    """Why one more answer is worth asking for, and the line that asks for it.

    `plain`: one without tools; `unless_open`: one from the results, unless a call is due; `to_call`: one that calls.
    """

    reason: Reason
    line: str | None = None
    plain: bool = False
    unless_open: bool = False
    to_call: bool = False


class Try(Enum):
    """Which answer of a turn it is."""

    FIRST = "first"
    SECOND = "second"
    PLAIN = "plain"


class Attempt(Struct, frozen=True):
    """One answer that is asked for: the first, a second one that mends it, a plain one if nothing is left of both.

    It is asked for `again`, and kept from the beginning because of `keep_for`. `may_repeat`: a call that was made
    before, or adds nothing, is as good as any. `seen` are lines that the client has already.
    """

    number: Try = Try.FIRST
    again: Again | None = None
    keep_for: Reason | None = None
    may_repeat: bool = False
    seen: Sequence[str] = ()

    @property
    def is_first(self) -> bool:
        return self.number is Try.FIRST
