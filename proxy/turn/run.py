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

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial

from parser import ToolRegistry
from prompts import (
    PROFILES,
    AssistantText,
    ChoiceMode,
    Grounds,
    ModelRule,
    PastCall,
    PromptProfile,
    call_forbidden,
    offered_tools,
    shows_header,
    text_before_key,
    untrusted_strings,
)

from ..contracts import (
    AnswerMessageEnded,
    Prompt,
    TextBackend,
    TurnEvent,
    TurnFailed,
    TurnRequest,
    Usage,
)
from ..errors import BackendError, RequestError
from ..ids import MintId, mint_id
from .aside import Aside, AsideIfLong, in_place, is_long
from .beside_calls import BesideCalls
from .call_key import CallKeys, KeyMode, TurnKey
from .calls import CallGate
from .filters import masked
from .held_calls import CallHold, HeldCalls
from .json_output import JsonOutput
from .json_stream import HeldFormats, StreamJson
from .key_habits import Speaker
from .lane_end import LaneEnd
from .outlet import CallRelease, names_of_calls
from .prompting import Prompts, estimated_usage
from .reading import Reading
from .reading_rules import ReadingRules
from .reason import Reason
from .report import TurnReport
from .strictness import ToolSchemas
from .tokens import TokenMeter
from .verdict import Answer, Demands, Fault, echoes_of, end_of, fault_of, nothing_left, settled


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
        registry = offered_tools(request.registry, request.choice)
        offered = len(registry) > 0
        keys = options.call_keys
        key = self._key = _key(request, registry, keys, options.profile) if offered else None
        schemas = ToolSchemas(registry, report)
        demanded = offered and request.choice.mode is ChoiceMode.REQUIRED
        self._speaker = Speaker.of(request)
        turn_key = TurnKey(keys.mode, key, self._speaker, keys.habits)
        # Where no tool is left to call, past calls are still imitated, and declared ones are called all the same.
        entries = request.transcript.entries
        on_duty = len(request.registry) > 0 or any(isinstance(entry, PastCall) for entry in entries)
        # What an answer that adds nothing is asked for once more for.
        rules = self._rules = options.profile.rules if offered and not demanded else frozenset()
        grounds = Grounds(request.transcript) if ModelRule.NOTHING_NEW in rules else None
        self._gate = (
            CallGate(
                request,
                registry,
                mint=mint,
                schemas=schemas,
                key=turn_key,
                demanded=demanded,
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
            doubts=ModelRule.ECHO_OF_LINE in rules,
            call=demanded,
            names=request.choice.names,
            output=JsonOutput(request.output_format, report) if request.output_format else None,
            transcript=request.transcript,
        )
        hold = CallHold(
            options.held_calls, request, registry, backend, report, demanded=demanded, keyed=key is not None
        )  # fmt: skip
        habit = None if key is None else turn_key.habit.value
        self._prompts = Prompts(request, registry, options.profile, key, report, hold=hold, key_habit=habit)
        self._aside = AsideIfLong(request, options.aside, characters=characters, judges=offered)
        self._usage = Usage()
        self._lane_end = LaneEnd(report)
        self._beside = BesideCalls(self._demands.output, report) if self._demands.output else None
        self._newest: Reading | None = None
        # Whether the backend holds its model to the format of an answer that leaves while it is written.
        self._held = False
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
                async for batch in batches:
                    events = batch if self._beside is None else await self._parsable(self._beside, batch)
                    if events:
                        self._lane_end.note(events)
                        yield events
        finally:
            self._lane_end.settle("left")

    async def _run(self) -> AsyncGenerator[list[TurnEvent], None]:
        keep_for = self._demands.keep_for
        echoes = echoes_of(self._request.transcript) if ModelRule.ECHO in self._rules and keep_for is None else ()
        # Whoever demands a call gets the one there is, asked before or not.
        reading = self._reading(Reason.ECHO if echoes else keep_for, may_repeat=self._demands.call, echoes=echoes)
        async with aclosing(self._read(reading)) as batches:
            async for events in batches:
                yield events
        first = answer = await self._held_to_format(reading.answer)
        if (first.unfit or reading.left_json) and self._held:
            self._options.formats.note_break(self._speaker)
        elif self._held and first.kept_for is None and not first.calls:
            self._options.formats.note_fit(self._speaker)
        fault, failed = None if self._exhausted else fault_of(first, self._demands), False
        if fault is not None:
            self._report.ask_again(fault.reason)
            # What demands hold anyway is not seen before it is judged, so there is nothing that it could repeat.
            again = Reason.SAID if first.said.shown else keep_for
            # A model that repeats its call although it was told means it; one that echoed a result was told of no call.
            reading = self._reading(again, may_repeat=fault.reason is not Reason.ECHO, final=True)
            async with aclosing(self._read(reading, fault)) as batches:
                async for events in batches:
                    yield events
            second = await self._held_to_format(reading.answer)
            failed = second.ending.error is not None
            answer = await self._held_to_format(settled(first, second, self._demands))
        # Nor one more where the second one failed, and what was shown of the first stands.
        plain = fault is not None and (fault.plain or failed)
        reason = None if self._exhausted or plain else nothing_left(first, answer, self._demands)
        if reason is not None:
            if first.doubtful and not answer.refused:
                self._report.lose(first.doubtful.reason)
            lost = answer.lost
            self._report.ask_again(reason)
            if keep_for is None and (first.said.shown or answer.said.shown):
                # Behind the words that announced a call, which are a message of their own.
                yield [AnswerMessageEnded()]
            reading = self._reading(keep_for, may_repeat=True, final=True)
            fault = Fault(reason, None if self._demands.tools else call_forbidden(), plain=True)
            async with aclosing(self._read(reading, fault, told=first.said.words)) as batches:
                async for events in batches:
                    yield events
            answer = await self._held_to_format(reading.answer)
            answer = replace(answer, lost=answer.lost or lost)
        for name in answer.let_misfits:
            self._report.let_misfit(name)
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
        self, keep_for: Reason | None, *, may_repeat: bool, final: bool = False, echoes: Sequence[str] = ()
    ) -> Reading:
        rules = ReadingRules(
            keep_for=keep_for,
            # Whoever gets the answer as a whole gains nothing by a call that has begun, and loses it if it breaks.
            release=self._options.release if self._request.streamed else CallRelease.WHOLE,
            parallel=self._request.parallel,
            may_repeat=may_repeat,
            final=final,
            key=self._key,
            # Where JSON is asked for, an answer that looks like a call may be that.
            demanded=self._demands.call,
            bare_calls=self._demands.call or (self._options.profile.bare_calls and self._demands.output is None),
            echoes=echoes,
            model_rules=self._options.profile.rules,
            named_results=self._options.profile.named_results,
            may_begin_so=self._quotes_headers if self._shows_headers else None,
            stop_strings=self._request.stop,
        )
        # For all answers together: the client pays for what it never sees.
        left = self._tokens_left
        return Reading(self._gate, self._report, rules, meter=None if left is None else TokenMeter(left))

    def _quotes_headers(self) -> bool:
        """Whether an answer that begins like a header of ours may show what somebody else wrote."""
        return shows_header(self._request.transcript)

    def _let_end(self, reading: Reading, prompt: Prompt) -> bool:
        """Lets an answer of which no more is wanted end by itself, where it is about to: an interrupt costs its lane.

        Returns whether it does.
        """
        if not (reading.stop and reading.stop.winds_down) or reading.goes_on or prompt.continuation.resume is None:
            return False
        if prompt.continuation.wind_down is not None:
            prompt.continuation.wind_down()
            prompt.continuation.wind_down = None
        return True

    def _is_held(self, prompt: Prompt) -> bool:
        schema = prompt.output_schema
        return schema is not None and self._backend.holds(schema)

    @property
    def _tells_json(self) -> bool:
        """Whether text that must be JSON leaves while it is written, where it can."""
        trusted = self._held and not self._options.formats.broken_by(self._speaker)
        return trusted or self._options.stream_json is StreamJson.EARLY

    @property
    def _tokens_left(self) -> int | None:
        limit = self._request.max_output_tokens
        return None if limit is None else max(0, limit - self._usage.output_tokens)

    @property
    def _exhausted(self) -> bool:
        """Whether one more answer would be cut before its first word."""
        return self._tokens_left == 0

    async def _held_to_format(self, answer: Answer) -> Answer:
        return await self._aside.held_to_format(answer, self._demands.output)

    async def _parsable(self, beside: BesideCalls, events: list[TurnEvent]) -> list[TurnEvent]:
        """What of `events` clients can parse that asked for JSON."""
        told = self._newest is not None and self._newest.tells_json
        return await self._aside.fitting(beside, events, told=told)

    async def _ask(self, fault: Fault | None) -> Prompt:
        prompt = await self._aside.made(partial(self._prompts.prompt, fault, max_tokens=self._tokens_left))
        self._lane_end.begin(prompt)
        return prompt

    async def _read(
        self, reading: Reading, fault: Fault | None = None, *, told: Sequence[str] = ()
    ) -> AsyncGenerator[list[TurnEvent], None]:
        """Asks the backend and reads its stream; leaving early ends the backend's turn.

        The client was `told` these lines already: they are not said again.
        """
        answered = False
        failure: BackendError | None = None
        self._lane_end.settle("second_try")
        prompt = await self._ask(fault)
        reading.show_lines(self._prompts.lines, told)
        self._newest = reading
        while failure is None:
            reading.hold_calls(prompt.calls_held)
            # Stop strings are not looked for in what leaves so.
            early = fault is None and self._request.streamed and not self._request.stop
            self._held = early and self._is_held(prompt)
            reading.tell_json(early=early and self._tells_json)
            try:
                async with self._backend.stream(prompt) as batches:
                    async for batch in batches:
                        answered = True
                        self._lane_end.hear(batch)
                        if events := await self._aside.received(reading, batch):
                            yield events
                        if reading.stop and reading.stop.reason and not self._let_end(reading, prompt):
                            self._report.interrupt(reading.stop.reason)
                            break
                break
            except BackendError as error:
                if reading.stop and reading.stop.reason and reading.stop.winds_down:
                    # The client has all that it asked for.
                    self._report.interrupt(reading.stop.reason)
                    break
                # Only what was refused before the first word may be asked once more: the client may have seen some.
                if not answered and self._prompts.ease(prompt, error):
                    prompt.continuation.settle(None)
                    prompt = await self._ask(fault)
                else:
                    failure = error.without_trace()
        if events := await self._aside.finished(reading, failure):
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
    if is_long(request, characters):
        return _begun_aside(begin, options.aside, request.owner)
    try:
        return begin().run()
    except RequestError as error:
        return _refused(error)


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
