"""One answer of the model, read into what the client may see of it.

Text leaves as it comes. It is held back from the point on where the whole answer may yet be asked for
anew, and released or dropped when that is decided:

    free --- choice demands a call, none came yet ----> held (REQUIRED)
    free --- the text must be JSON, no call came yet -> held (FORMAT)
    free --- a block that cannot be read -------------> held (MALFORMED)
    free --- a call that already has its result ------> held (REPEATED)
    free --- text, in an answer asked for anew -------> held (SHOWN)
    free, held --- a good call, some tool is strict --> held (STRICT)
    held --- a good call -----------------------------> free

STRICT lasts until the answer is over: its calls leave together or not at all, so that a second answer,
asked for because one of them does not fit, repeats nothing that has left. FORMAT lasts as long: JSON is
worth nothing in part, and no backend promises that what it held its model to is what the client asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from parser import (
    ArgumentsDelta,
    BareAnswerParser,
    CallCompleted,
    CallMalformed,
    CallStarted,
    ParserEvent,
    ReadingEnded,
    SentinelParser,
    StrayCloser,
    TextDelta,
    Tier,
)

from ..contracts import (
    AnswerMessageEnded,
    AnswerText,
    BackendEvent,
    MessageEnded,
    Reasoning,
    ReasoningEnded,
    ReasoningItemEnded,
    ReasoningPiece,
    TextPiece,
    ToolCallArguments,
    ToolCallEnded,
    ToolCallStarted,
    TurnEnded,
    TurnEvent,
    Usage,
)
from ..errors import BackendError
from .calls import Accepted, CallGate, Misfit, Refusal
from .options import CallRelease
from .report import TurnReport
from .text import VisibleText
from .tokens import CHARACTERS_PER_TOKEN, TokenMeter


class Hold(Enum):
    """Why events are being held back."""

    REQUIRED = "required"
    MALFORMED = "malformed"
    REPEATED = "repeated"
    SHOWN = "shown"
    FORMAT = "format"
    STRICT = "strict"


class Answer:
    """Feed it the backend's batches, then `finish`. What it returns may leave at once.

    `stop` set: nothing more of this answer is wanted, the backend's turn can be ended.
    `written` is the text that was held back because of its format, its escaped tags not restored.
    `misfit` set: a strict tool's call does not fit, and nothing of this answer may leave any more.
    `broken` set: a call that was already leaving live turned out to be none; the turn must fail.
    """

    def __init__(
        self,
        gate: CallGate | None,
        report: TurnReport,
        *,
        hold: Hold | None = None,
        release: CallRelease = CallRelease.WHOLE,
        parallel: bool = True,
        may_repeat: bool = False,
        bare_calls: bool = False,
        stop_strings: Sequence[str] = (),
        meter: TokenMeter | None = None,
    ) -> None:
        self._gate = gate
        self._report = report
        self._live = release is CallRelease.LIVE
        self._parallel = parallel
        self._may_repeat = may_repeat
        self._meter = meter
        self._bare_calls = bare_calls
        self._parser = self._new_parser()
        self._visible = VisibleText(stop_strings)
        self._out: list[TurnEvent] = []
        self._refused_last = False
        self._live_call: int | None = None
        self._after_call: list[TurnEvent] = []
        self.hold = hold
        self.held: list[TurnEvent] = []
        self.written: list[str] = []
        self.calls = 0
        self.undeclared = 0
        self.shown = False
        self.characters = 0
        self.malformed: str | None = None
        self.repeated: str | None = None
        self.misfit: Misfit | None = None
        self.stop: str | None = None
        self.broken: str | None = None
        self.usage: Usage | None = None
        self.incomplete: str | None = None
        self.error: BackendError | None = None

    def receive(self, batch: Sequence[BackendEvent]) -> list[TurnEvent]:
        """Turn events for a batch of backend events; adjacent text is read in one piece."""
        text: list[str] = []
        for event in batch:
            if isinstance(event, TextPiece):
                text.append(event.text)
                continue
            if text:
                self._read("".join(text))
                text.clear()
            self._other(event)
        if text:
            self._read("".join(text))
        return self._taken()

    def finish(self) -> list[TurnEvent]:
        """Turn events for the end of the backend's stream, whether it was whole or was cut; `error` is set before."""
        self._end_message()
        if self.hold is Hold.STRICT and not (self.misfit or self.error):
            self._release()
        return self._taken()

    @property
    def empty(self) -> bool:
        """Nothing was shown, nothing is held: the client would get an empty answer."""
        return not self.shown and not self.held and not self.calls

    @property
    def ended_at_stop_string(self) -> bool:
        return self._visible.stopped

    @property
    def estimated_tokens(self) -> int:
        """What was read of it, for want of the backend's own count."""
        return self.characters // CHARACTERS_PER_TOKEN if self._meter is None else self._meter.spent

    # Reading

    def _taken(self) -> list[TurnEvent]:
        out, self._out = self._out, []
        return out

    def _other(self, event: BackendEvent) -> None:
        match event:
            case TextPiece(text):
                self._read(text)
            case MessageEnded():
                self._end_message()
                self._show(AnswerMessageEnded())
            case ReasoningPiece(part, text):
                self._reason(Reasoning(part, text))
            case ReasoningEnded():
                self._reason(ReasoningItemEnded())
            case TurnEnded(usage, incomplete):
                # Of an answer that was cut here the backend counted more than the client gets.
                if self.incomplete is None:
                    self.usage, self.incomplete = usage, incomplete
                self._end_message()

    def _reason(self, event: Reasoning | ReasoningItemEnded) -> None:
        """Reasoning is never held back, but a call that is leaving is not interrupted by it."""
        (self._out if self._live_call is None else self._after_call).append(event)

    def _read(self, text: str) -> None:
        if self._meter is not None:
            text = self._meter.take(text)
        self.characters += len(text)
        if self.stop or self.misfit:
            return
        if self._gate is None:
            self._text(text)
        else:
            self._parse(text)
        if self._meter is not None and self._meter.exhausted:
            self._cut("max_output_tokens")

    def _cut(self, reason: str) -> None:
        """The answer ends here, unless it had ended before."""
        if not (self.stop or self.misfit):
            self.incomplete = reason
            self._end_message()
            self._report.interrupted = self.stop = reason

    def _parse(self, text: str) -> None:
        rest = self._obey(self._parser.receive_text(text))
        while rest is not None:
            rest = self._obey(self._parser.receive_text(rest))

    def _end_message(self) -> None:
        """A call does not reach over the end of a message: each is read by itself."""
        if not (self.stop or self.misfit) and self._gate is not None:
            while (rest := self._obey(self._parser.receive_eof())) is not None:
                self._parse(rest)
            self._parser = self._new_parser()
        self._flush_text()

    def _new_parser(self) -> SentinelParser | BareAnswerParser:
        if self._bare_calls and self._gate is not None:
            return BareAnswerParser(self._gate.registry)
        return SentinelParser()

    def _obey(self, events: Sequence[ParserEvent]) -> str | None:
        """Acts on events of the parser. Returns text that is to be read on with the parser that is there then."""
        for event in events:
            if self.stop or self.misfit:
                break
            match event:
                case TextDelta(text):
                    self._text(text)
                case CallStarted():
                    self._started(event)
                case ArgumentsDelta(index, text):
                    if self._live_call == index:
                        self._out.append(ToolCallArguments(text))
                case CallCompleted():
                    self._completed(event)
                case StrayCloser(raw):
                    if self._refused_last:
                        self._text(raw)
                case CallMalformed():
                    self._malformed(event)
                case ReadingEnded(reason, rest):
                    # The model goes on with a result: of its own call, or as part of what it quotes.
                    if not (self.calls or self.undeclared or self.repeated):
                        self._parser = SentinelParser()
                        return rest
                    self._report.interrupted = self.stop = reason
        return None

    # Text

    def _text(self, text: str) -> None:
        if self.hold is Hold.FORMAT:
            self.written.append(text)
        if text := self._visible.feed(text):
            self._show(AnswerText(text))
        if self._visible.stopped:
            self._report.interrupted = self.stop = "a stop string came"

    def _flush_text(self) -> None:
        if text := self._visible.flush():
            self._show(AnswerText(text))
        if self._visible.stopped:
            self._report.interrupted = self.stop = "a stop string came"

    def _show(self, event: TurnEvent) -> None:
        if self.hold is not None:
            # The end of a message that is not there needs no holding.
            if not isinstance(event, AnswerMessageEnded) or self.held:
                self.held.append(event)
            return
        if isinstance(event, AnswerText):
            self.shown = True
        self._out.append(event)

    def _keep(self, hold: Hold) -> None:
        if self.hold is None and not self.calls:
            self.hold = hold

    # Calls

    def _completed(self, call: CallCompleted) -> None:
        assert self._gate is not None  # noqa: S101  # the parser is only fed when there is a gate
        if self.incomplete and call.tier is Tier.BARE:
            self._malformed(CallMalformed("the answer was cut in the middle of it", call.before + call.raw, call.index))
            return
        self._flush_text()
        live = self._live_call == call.index
        verdict = self._gate.judge(call)
        self._refused_last = isinstance(verdict, Refusal) and verdict is not Refusal.UNDECLARED
        match verdict:
            case Refusal.UNDECLARED:
                self.undeclared += 1
                self._report.refused[verdict.value] += 1
            case Refusal():
                self._report.refused[verdict.value] += 1
                if live:
                    self._break(f"the call was refused: {verdict.value}")
                else:
                    self._text(call.before + call.raw)
                    self._flush_text()
            case Misfit():
                self._report.refused["arguments_misfit"] += 1
                self.misfit = verdict
            case Accepted():
                self._report.tiers[call.tier.value] += 1
                self._report.repairs.update(call.repairs)
                if not live:
                    self._report.repairs.update(verdict.coercions)
                self._pass_on(verdict, live=live)

    def _pass_on(self, call: Accepted, *, live: bool) -> None:
        whole = (ToolCallStarted(call.call_id, call.name), ToolCallArguments(call.arguments), ToolCallEnded())
        if call.repeated and not (live or self._may_repeat or self.calls):
            self._keep(Hold.REPEATED)
            self.repeated = call.name
            self.held.extend(whole)
        elif self._gate is not None and self._gate.keeps_calls_together:
            self.calls += 1
            self._drop_what_was_shown()
            self.hold = Hold.STRICT
            self.held.extend(whole)
        else:
            self.calls += 1
            self._report.calls.append(call.name)
            if live:
                self._end_live(ToolCallEnded())
            else:
                self._release()
                self._out.extend(whole)
        if not self._parallel:
            self._report.interrupted = self.stop = "one call was asked for"

    def _release(self) -> None:
        """A good call came: what was held leaves before it, unless it repeats what was shown before."""
        self._drop_what_was_shown()
        self._out.extend(self.held)
        self._report.calls += names_of_calls(self.held)
        self.held.clear()
        self.hold = None

    def _drop_what_was_shown(self) -> None:
        if self.hold is Hold.SHOWN:
            self.held.clear()

    def _malformed(self, block: CallMalformed) -> None:
        self._flush_text()
        self._report.refused[block.reason] += 1
        if block.index is not None and block.index == self._live_call:
            self._break(f"the call cannot be read: {block.reason}")
            return
        if self._gate is None or not self._gate.is_quoted_text(block.raw):
            self.malformed = block.reason
            self._keep(Hold.MALFORMED)
        self._text(block.raw)
        self._flush_text()

    # Live calls

    def _started(self, call: CallStarted) -> None:
        if not self._live or self._gate is None:
            return
        tool = self._gate.registry.match(call.name)
        if tool is not None and self._gate.may_leave_unfinished:
            self._flush_text()
            self._release()
            self._live_call = call.index
            self._out.append(ToolCallStarted(self._gate.take_id(call.id), tool.name))

    def _end_live(self, end: ToolCallEnded) -> None:
        self._live_call = None
        self._out += [end, *self._after_call]
        self._after_call.clear()

    def _break(self, reason: str) -> None:
        self._end_live(ToolCallEnded(complete=False))
        self.stop = reason
        if not self.incomplete:
            self.broken = reason


def names_of_calls(events: Sequence[TurnEvent]) -> list[str]:
    return [event.name for event in events if isinstance(event, ToolCallStarted)]
