"""`run_turn`: one turn from request to answer, with the one more answer that some faults are worth.

    first answer --- good -------------------------------------------> finished
         |---------- unusable markup, required call missing, a call that does not fit its schema or
         |           may not be meant, text that is not the JSON it should be; of small models what adds
         |           nothing to the results
         |                \\--- second answer, same prompt + one line -> finished | failed
         '---------- a call that goes round; nothing but calls that are taken out, and words that announce them
                          \\--- plain answer, without the tool block --> finished

The second answer is a fresh one: the failed answer is not in its prompt, models copy it. The client
sees nothing of this but the usage. `max_output_tokens` is for all answers together. A prompt that the
backend refuses before it answers may be asked again (`prompting`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Protocol, TypeVar

from parser import ToolRegistry
from prompts import (
    PROFILES,
    AssistantText,
    ChoiceMode,
    Grounds,
    PastCall,
    PromptProfile,
    call_forbidden,
    offered_tools,
    result_ids,
    shows_header,
    text_before_key,
    untrusted_strings,
)

from ..contracts import (
    AnswerMessageEnded,
    BackendEvent,
    Prompt,
    TextBackend,
    TextPiece,
    TurnEvent,
    TurnFailed,
    TurnFinished,
    TurnRequest,
    Usage,
)
from ..errors import BackendError, RequestError
from ..ids import MintId, mint_id
from .call_key import CallKeys, KeyMode, TurnKey
from .calls import CallGate
from .given import Given
from .held_calls import HeldCalls, Unheld
from .json_output import JsonOutput
from .json_stream import HeldFormats, StreamJson
from .masking import masked
from .prompting import Prompts, estimated_usage
from .reading import Reading
from .release import CallRelease, Hold
from .report import Again, TurnReport
from .strictness import ToolSchemas
from .tokens import TokenMeter
from .verdict import Answer, Demands, echoes_of, end_of, fault_of, held_to_format, names_of_calls, nothing_left, settled

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


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """What the owner of the proxy chose for every turn."""

    release: CallRelease = CallRelease.WHOLE
    profile: PromptProfile = PROFILES["frontier"]
    call_keys: CallKeys = field(default_factory=CallKeys)
    aside: Aside = in_place
    stream_json: StreamJson = StreamJson.HELD
    formats: HeldFormats = field(default_factory=HeldFormats)
    held_calls: HeldCalls = field(default_factory=HeldCalls)


class Turn:
    """The state that outlives one answer: what was used, and which calls were taken.

    Raises `RequestError` when the request has a schema that nothing can be held against.
    """

    def __init__(
        self,
        request: TurnRequest,
        backend: TextBackend,
        options: TurnOptions,
        report: TurnReport,
        *,
        mint: MintId,
        characters: int,
    ) -> None:
        self._request = request
        self._backend = backend
        self._options = options
        self._report = report
        registry = self._registry = offered_tools(request.registry, request.choice)
        offered = len(registry) > 0
        keys = options.call_keys
        key = self._key = _key(request, registry, keys, options.profile) if offered else None
        schemas = ToolSchemas(registry, report)
        demanded = offered and request.choice.mode is ChoiceMode.REQUIRED
        turn_key = TurnKey(keys.mode, key, request.model, keys.habits)
        # Where no tool is left to call, past calls are still imitated, and declared ones are called all the same.
        entries = request.transcript.entries
        on_duty = len(request.registry) > 0 or any(isinstance(entry, PastCall) for entry in entries)
        rounds = options.profile.rounds
        # Whether an answer that adds nothing is worth asking for once more.
        self._doubts = options.profile.doubts_answers and offered and not demanded
        grounds = Grounds(request.transcript) if self._doubts else None
        # Behind results an answer may begin as one of them; anywhere else it stands in place of its call.
        self._result_ids = result_ids(request.transcript) if self._doubts and not grounds else None
        self._gate = (
            CallGate(
                request,
                registry,
                mint=mint,
                schemas=schemas,
                key=turn_key,
                demanded=demanded,
                rounds=rounds,
                grounds=grounds,
            )
            if on_duty
            else None
        )
        # A lone message has no header that could be imitated, and may be about such headers.
        self._shows_headers = on_duty or any(isinstance(entry, AssistantText) for entry in entries)
        self._demands = Demands(
            key=key,
            tools=offered,
            doubts=self._doubts,
            call=demanded,
            names=request.choice.names,
            output=JsonOutput(request.output_format, report) if request.output_format else None,
            transcript=request.transcript,
        )
        self._prompts = Prompts(request, registry, options.profile, key, report)
        self._long_request = offered and characters > JUDGED_AT_ONCE
        self._prepared_aside = _is_long(request, characters)
        self._usage = Usage()
        self._given = Given()
        self._prompt: Prompt | None = None
        # Whether the backend holds its model to the format of the answer.
        self._held = False
        # The schema that the newest prompt's calls are held to, and whether one was refused.
        self._calls_schema: str | None = None
        self._hold_refused = False
        # Whether the first answer was a strict call that does not fit: the second can be held to be one that does.
        self._meant_to_call = False
        report.offer(tool.name for tool in registry)
        self._told_ignored = frozenset[str]()
        self._tell_ignored()
        report.pair(request.repairs)

    def _tell_ignored(self) -> None:
        if not (wishes := self._request.wishes):
            return
        told, heeds = self._told_ignored, self._backend.heeds(self._request.model)
        if ignored := [name for name in wishes if name not in heeds | told]:
            self._report.warn(f"Without effect here: {', '.join(ignored)}.")
            self._told_ignored = told | {*ignored}

    async def run(self) -> AsyncGenerator[list[TurnEvent], None]:
        try:
            async with aclosing(self._run()) as batches:
                async for events in batches:
                    if self._kept:
                        self._given.note(events)
                    match events[-1]:
                        case TurnFinished(_, incomplete):
                            self._settle(self._report.difference or incomplete or self._rewritten())
                        case TurnFailed():
                            self._settle("failed")
                        case _:
                            pass
                    yield events
        finally:
            self._settle("left")

    @property
    def _kept(self) -> bool:
        """Whether the backend could go on from this answer: what was given is of no interest to any other."""
        return self._prompt is not None and self._prompt.continuation.resume is not None

    def _rewritten(self) -> str | None:
        prompt = self._prompt if self._kept else None
        return "rewritten" if prompt and self._given.rewritten(held=prompt.calls_held) else None

    def _settle(self, spoilt: str | None) -> None:
        """Says whether the conversation can go on from the last answer at the backend; only the first call counts."""
        prompt, self._prompt = self._prompt, None
        if prompt is not None:
            self._report.go_on(prompt.continuation.lane, spoilt)
            goes_on = spoilt is None and prompt.continuation.resume is not None
            prompt.continuation.settle(self._given.meaning() if goes_on else None)

    async def _run(self) -> AsyncGenerator[list[TurnEvent], None]:
        # Where a call is demanded the format is that of an answer in text, which would be refused.
        hold = Hold.REQUIRED if self._demands.call else Hold.FORMAT if self._demands.output else Hold.FREE
        echoes = echoes_of(self._request.transcript) if self._doubts and hold is Hold.FREE else {}
        # Whoever demands a call gets the one there is, asked before or not.
        reading = self._reading(Hold.ECHO if echoes else hold, may_repeat=self._demands.call, echoes=echoes)
        async with aclosing(self._read(reading)) as batches:
            async for events in batches:
                yield events
        first = answer = await self._held_to_format(reading.answer)
        if (first.unfit or reading.left_json) and self._held:
            self._options.formats.note_break(self._request.model)
        fault = None if self._exhausted else fault_of(first, self._demands)
        if fault is not None:
            self._report.ask_again(fault.reason)
            # What demands hold anyway is not seen before it is judged, so there is nothing that it could repeat.
            again = Hold.SHOWN if first.shown else hold
            # A model that repeats its call although it was told means it; one that echoed a result was told of no call.
            reading = self._reading(again, may_repeat=fault.reason not in {Again.ECHO, Again.ECHO_OF_CALL}, final=True)
            self._meant_to_call = first.refusal is not None
            async with aclosing(
                self._read(reading, fault=fault.line, plain=fault.plain, unless_open=fault.unless_open)
            ) as batches:
                async for events in batches:
                    yield events
            second = await self._held_to_format(reading.answer)
            answer = await self._held_to_format(settled(first, second, self._demands))
        plain = fault is not None and fault.plain
        if not (self._exhausted or plain) and nothing_left(first, answer, self._demands):
            self._report.ask_again(Again.UNDECLARED)
            if hold is Hold.FREE and (first.shown or answer.shown):
                # Behind the words that announced a call, which are a message of their own.
                yield [AnswerMessageEnded()]
            reading = self._reading(hold, may_repeat=True, final=True)
            line = None if self._demands.tools else call_forbidden()
            async with aclosing(
                self._read(reading, fault=line, plain=True, told=first.words if first.shown else ())
            ) as batches:
                async for events in batches:
                    yield events
            answer = await self._held_to_format(reading.answer)
        if answer.hold is Hold.MISFIT and not (answer.error or answer.refusal):
            for misfit in answer.misfits:
                self._report.let_misfit(misfit.name)
        # By now the backend has met its models.
        self._tell_ignored()
        for sentence in answer.lost:
            self._report.warn(sentence)
        last = end_of(answer, self._demands, self._usage)
        self._report.pass_on(names_of_calls(last))
        yield [self._without_key(event) for event in last]

    def _without_key(self, event: TurnEvent) -> TurnEvent:
        """What is said of a failure may repeat what was asked, or written."""
        if isinstance(event, TurnFailed):
            event.error.message = masked(event.error.message, self._key)
        return event

    def _reading(
        self, hold: Hold, *, may_repeat: bool, final: bool = False, echoes: Mapping[str, Again] = MappingProxyType({})
    ) -> Reading:
        # For all answers together: the client pays for what it never sees.
        left = self._tokens_left
        return Reading(
            self._gate,
            self._report,
            hold=hold,
            # Whoever gets the answer as a whole gains nothing by a call that has begun, and loses it if it breaks.
            release=self._options.release if self._request.streamed else CallRelease.WHOLE,
            parallel=self._request.parallel,
            may_repeat=may_repeat,
            final=final,
            key=self._key,
            # Where JSON is asked for, an answer that looks like a call may be that.
            demanded=self._demands.call,
            bare_calls=self._demands.call or (self._options.profile.bare_calls and self._demands.output is None),
            keeps_tail=self._options.profile.keeps_tail,
            echoes=echoes,
            named_results=self._options.profile.named_results,
            may_begin_so=self._quotes_headers if self._shows_headers else None,
            result_ids=self._result_ids if not final else None,
            stop_strings=self._request.stop,
            meter=None if left is None else TokenMeter(left),
        )

    def _quotes_headers(self) -> bool:
        """Whether an answer that begins like a header of ours may show what somebody else wrote."""
        return shows_header(self._request.transcript)

    def _ends_by_itself(self, reading: Reading, prompt: Prompt) -> bool:
        """Whether to wait for the end of an answer of which nothing more is wanted: an interrupt costs its lane."""
        if not reading.winds_down or reading.goes_on or prompt.continuation.resume is None:
            return False
        if prompt.continuation.wind_down is not None:
            prompt.continuation.wind_down()
            prompt.continuation.wind_down = None
        return True

    def _tells_json(self, prompt: Prompt) -> bool:
        """Whether text that must be JSON leaves while it is written; stop strings are not looked for there."""
        if not self._request.streamed or self._request.stop:
            return False
        schema, model = prompt.output_schema, self._request.model
        self._held = schema is not None and self._backend.holds(schema)
        trusted = self._held and not self._options.formats.broken_by(model)
        return trusted or self._options.stream_json is StreamJson.EARLY

    @property
    def _tokens_left(self) -> int | None:
        limit = self._request.max_output_tokens
        return None if limit is None else max(0, limit - self._usage.output_tokens)

    @property
    def _exhausted(self) -> bool:
        """Whether one more answer would be cut before its first word."""
        return self._tokens_left == 0

    async def _received(self, reading: Reading, batch: Sequence[BackendEvent]) -> list[TurnEvent]:
        """What `reading` makes of `batch`, read aside where that may take long."""
        texts = [event.text for event in batch if isinstance(event, TextPiece)]
        # A call is judged where it ends, by all that the request holds.
        judges = self._long_request and any(">" in text for text in texts)
        if judges or sum(map(len, texts)) > READ_AT_ONCE:
            return await self._options.aside(self._request.owner, partial(reading.receive, batch))
        return reading.receive(batch)

    async def _held_to_format(self, answer: Answer) -> Answer:
        """`answer` as `held_to_format` has it, read aside where that may take long."""
        judge = partial(held_to_format, answer, self._demands.output)
        if self._demands.output is None or len(answer.written) <= READ_AT_ONCE:
            return judge()
        return await self._options.aside(self._request.owner, judge)

    async def _ask(self, fault: str | None, *, plain: bool, unless_open: bool) -> Prompt:
        """The next prompt, with the schema that the calls of its answer are held to, where they are."""
        self._calls_schema = None
        if (self._demands.call or self._meant_to_call) and not (plain or self._hold_refused):
            self._calls_schema = self._options.held_calls.schema(
                self._registry,
                self._backend,
                self._request.model,
                self._report,
                parallel=self._request.parallel,
                again=fault is not None,
            )
        within = None
        if self._demands.tools and not (plain or self._calls_schema):
            within = self._options.held_calls.call_schema(self._registry, self._report, keyed=self._key is not None)
        make = partial(
            self._prompts.prompt,
            fault,
            plain=plain,
            unless_open=unless_open,
            max_tokens=self._tokens_left,
            calls_schema=self._calls_schema,
            call_schema=within,
        )
        if not self._prepared_aside:
            return make()
        return await self._options.aside(self._request.owner, lambda: _whole(make()))

    def _ease(self, prompt: Prompt, error: BackendError) -> bool:
        """Whether to ask anew where `prompt` was refused."""
        if self._calls_schema is not None and error.code == "invalid_json_schema":
            self._hold_refused = True
            self._options.held_calls.note_refusal(self._request.model, self._calls_schema)
            self._report.unhold_calls(Unheld.REFUSED.value)
            return True
        return self._prompts.ease(prompt, error)

    async def _read(
        self,
        reading: Reading,
        *,
        fault: str | None = None,
        plain: bool = False,
        unless_open: bool = False,
        told: Sequence[str] = (),
    ) -> AsyncGenerator[list[TurnEvent], None]:
        """Asks the backend and reads its stream; leaving early ends the backend's turn.

        The client was `told` these lines already: they are not said again.
        """
        answered = False
        failure: BackendError | None = None
        self._settle("second_try")
        prompt = self._prompt = await self._ask(fault, plain=plain, unless_open=unless_open)
        reading.show_lines(self._prompts.lines, told)
        while failure is None:
            reading.hold_calls(self._calls_schema is not None)
            reading.tell_json(early=fault is None and not (plain or unless_open) and self._tells_json(prompt))
            try:
                async with self._backend.stream(prompt) as batches:
                    async for batch in batches:
                        answered = True
                        if self._kept:
                            self._given.hear(batch)
                        if events := await self._received(reading, batch):
                            yield events
                        if reading.stop and not self._ends_by_itself(reading, prompt):
                            self._report.interrupt(reading.stop)
                            break
                break
            except BackendError as error:
                if reading.winds_down and reading.stop:
                    # The client has all that it asked for.
                    self._report.interrupt(reading.stop)
                    break
                # Only what was refused before the first word may be asked once more: the client may have seen some.
                if not answered and self._ease(prompt, error):
                    prompt.continuation.settle(None)
                    prompt = self._prompt = await self._ask(fault, plain=plain, unless_open=unless_open)
                else:
                    failure = error
        if self._long_request or reading.characters > READ_AT_ONCE:
            events = await self._options.aside(self._request.owner, partial(reading.finish, failure))
        else:
            events = reading.finish(failure)
        if events:
            yield events
        # A turn that was left early is not counted by the backend, and costs all the same.
        self._usage += reading.usage or estimated_usage(prompt, reading.estimated_tokens)


def _key(request: TurnRequest, tools: ToolRegistry, keys: CallKeys, profile: PromptProfile) -> str | None:
    if keys.mode is KeyMode.OFF:
        return None
    before = text_before_key(request.transcript, tools, parallel=request.parallel, profile=profile)
    sent = [*untrusted_strings(request.transcript, request.registry), *request.also_shown]
    return keys.key(request.owner, before, sent)


def run_turn(
    request: TurnRequest,
    backend: TextBackend,
    options: TurnOptions,
    report: TurnReport,
    *,
    mint: MintId = mint_id,
) -> AsyncGenerator[list[TurnEvent], None]:
    """The events of one turn, in batches that arrived together; the last is `TurnFinished` or `TurnFailed`.

    Close it (`contextlib.aclosing`) to end the turn early: the backend is interrupted.
    """
    characters = sum(map(len, untrusted_strings(request.transcript, request.registry)))
    begin = partial(Turn, request, backend, options, report, mint=mint, characters=characters)
    if _is_long(request, characters):
        return _begun_aside(begin, options.aside, request.owner)
    try:
        return begin().run()
    except RequestError as error:
        return _refused(error)


def _is_long(request: TurnRequest, characters: int) -> bool:
    return characters > PREPARED_AT_ONCE or len(request.transcript.entries) > ENTRIES_AT_ONCE


def _whole(prompt: Prompt) -> Prompt:
    """`prompt` with both its forms made: which one its backend will look at is not known here."""
    for form in (prompt.parts, *(item.parts for item in prompt.items)):
        len(form)
    return prompt


async def _begun_aside(begin: Callable[[], Turn], aside: Aside, owner: str) -> AsyncGenerator[list[TurnEvent], None]:
    try:
        turn = await aside(owner, begin)
    except RequestError as error:
        yield [TurnFailed(error)]
        return
    async with aclosing(turn.run()) as batches:
        async for batch in batches:
            yield batch


async def _refused(error: RequestError) -> AsyncGenerator[list[TurnEvent], None]:
    yield [TurnFailed(error)]
