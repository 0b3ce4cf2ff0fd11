"""One answer of the model, read as it comes: backend events in, turn events out.

    backend events --> text --meter--> parser --> text ------------------> shown text ----.
                                         |                                                +--> release --> the client
                                         '------> calls --> gate: may it leave, as what? -'

What leaves when is `release`'s business, whether a call is one the gate's. What the answer was in the end is an
`Answer`, a plain value that `verdict` judges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from parser import (
    CallCompleted,
    CallMalformed,
    CallStarted,
    Coercion,
    Doubtful,
    HeadedCallParser,
    HeldAnswerParser,
    ParserEvent,
    ReadingEnded,
    SentinelParser,
    StrayCloser,
    Tier,
)

from ..contracts import (
    BackendEvent,
    MessageEnded,
    MessagePhase,
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
from .blocks import NO_KEY, QUOTED, UNREADABLE, MeantCall, begun_arguments, is_half_a_tag, is_markup
from .call_key import Carried
from .calls import Accepted, CallGate, Doubted, Refusal
from .json_stream import JsonStream
from .masking import Mask, masked
from .own_notation import OwnNotation, TakenOut
from .release import CallRelease, Cue, Hold, Release
from .report import TurnReport
from .shown_text import ShownText
from .strictness import Misfit
from .tokens import CHARACTERS_PER_TOKEN, TokenMeter
from .verdict import Answer, names_of_calls
from .visible_text import VisibleText


class Reading:
    """Feed it the backend's batches, then `finish`; what these return may leave at once.

    Without a `gate` no call is read. `final`: nothing is asked for once more after this one. `may_repeat`: the call
    that the conversation goes round in is as good as any. `bare_calls`: an answer that is nothing but a call's JSON is
    that call; `demanded`: the request demands one. `keeps_tail`: nobody is shown what stands behind the last call.
    `echoes`, with `Hold.ECHO`: the results that it may repeat. `named_results`: their headers name the tool.
    `may_begin_so`: whether an answer may begin as a header of ours does; None: no such thing is taken out. `key` is
    masked in all that leaves. `stop` set: nothing more of this answer is wanted, and the backend's turn can be ended.
    """

    def __init__(
        self,
        gate: CallGate | None,
        report: TurnReport,
        *,
        hold: Hold = Hold.FREE,
        release: CallRelease = CallRelease.WHOLE,
        parallel: bool = True,
        final: bool = False,
        may_repeat: bool = False,
        key: str | None = None,
        bare_calls: bool = False,
        demanded: bool = False,
        keeps_tail: bool = False,
        echoes: Sequence[str] = (),
        named_results: bool = False,
        may_begin_so: Callable[[], bool] | None = None,
        stop_strings: Sequence[str] = (),
        meter: TokenMeter | None = None,
    ) -> None:
        self._gate = gate
        self._report = report
        self._live = release is CallRelease.LIVE
        self._parallel = parallel
        self._final = final
        self._may_repeat = may_repeat
        self._bare_calls = bare_calls
        self._demanded = demanded
        self._held = False
        self._meter = meter
        self._parser = self._new_parser()
        self._key = key
        self._thoughts = None if key is None else Mask(key)
        self._thought_part = 0
        self._live_mask = None if key is None else Mask(key)
        self._keeps_tail = keeps_tail
        self._release = Release(hold, keeps_tail=keeps_tail)
        self._out: list[TurnEvent] = []
        names = (tool.name for tool in gate.declared) if gate else ()
        self._notation = OwnNotation(
            names, named_results=named_results, may_begin_so=may_begin_so, told=report.take_out
        )
        self._said = ShownText(
            self._out, self._release, report, self._notation, VisibleText(stop_strings, key), echoes=echoes
        )
        # Whether the parser is in the middle of a call: its text is of the arguments.
        self._in_call = False
        # The call that is leaving while it is written, by the parser's number, and reasoning that came meanwhile.
        self._live_call: int | None = None
        self._meant_call: MeantCall | None = None
        # Whether a message is over, but not known yet whether it was cut.
        self._message_over = False
        self._after_call: list[TurnEvent] = []
        self._characters = 0
        # Whether nothing of what may still come counts. Asked for each delta.
        self._over = False
        # What the answer will have been.
        self._calls = 0
        self._undeclared = 0
        self._malformed: str | None = None
        self._doubtful: Doubted | None = None
        self._repeated: str | None = None
        self._misfits: list[Misfit] = []
        self._refused_misfit = False
        self._broken: str | None = None
        self._incomplete: str | None = None
        self._error: BackendError | None = None
        self.stop: str | None = None
        self.winds_down = False
        """Nothing more is wanted, but the model is likely to end the answer here by itself."""
        self.goes_on = False
        """It did not: more came than white space."""
        self.usage: Usage | None = None
        """As the backend counted it; None when it did not come to that."""

    @property
    def left_json(self) -> bool:
        """The text that was to be told as the JSON that it is did not begin as such."""
        return self._said.left_json

    def tell_json(self, *, early: bool) -> None:
        """Before the first text: whether what must be JSON leaves as it comes, where it is JSON."""
        self._said.tell_json(JsonStream(self._key) if early and self._release.hold is Hold.FORMAT else None)

    def hold_calls(self, held: bool) -> None:
        """Before the first text: whether the backend is asked to hold its model to a schema of calls."""
        if held != self._held:
            self._held = held
            self._parser = self._new_parser()

    def receive(self, batch: Sequence[BackendEvent]) -> list[TurnEvent]:
        """Turn events for a batch of backend events; adjacent text is read in one piece."""
        # A model that is faster than its reader fills a batch with pieces: read as one they cost what one costs.
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

    def finish(self, error: BackendError | None = None) -> list[TurnEvent]:
        """Turn events for the end of the backend's stream; `error` is what broke it off."""
        self._error = error
        self._close_message()
        self._end_message()
        self._end_thought()
        if not self._said.is_echo:
            self._said.speak()
        if not (self._refused_misfit or error):
            self._leave(self._release.meet(Cue.END))
        if self._release.cut_tail:
            self._report.take_out(TakenOut.AFTER_CALLS)
        return self._taken()

    @property
    def answer(self) -> Answer:
        """What was read, once it is finished."""
        return Answer(
            hold=self._release.hold,
            held=self._release.held,
            shown=self._said.shown,
            calls=self._calls,
            undeclared=self._undeclared,
            preface=self._said.is_preface,
            words=self._said.words,
            lost=tuple(self._said.lost),
            written=masked(self._said.written, self._key),
            malformed=self._malformed,
            doubtful=self._doubtful,
            repeated=self._repeated,
            misfits=tuple(self._misfits),
            broken=self._broken,
            incomplete=self._incomplete,
            ended_by_stop_string=self._said.stopped,
            error=self._error,
            constrained=self._held and self._error is not None and self._characters > 0,
        )

    @property
    def characters(self) -> int:
        """How much was read of it."""
        return self._characters

    @property
    def estimated_tokens(self) -> int:
        """What was read of it, for want of the backend's own count."""
        return self._characters // CHARACTERS_PER_TOKEN if self._meter is None else self._meter.spent

    def show_lines(self, lines: Sequence[str]) -> None:
        """The model was shown these lines of ours: one that it repeats is taken out."""
        self._notation.lines = lines

    # Reading

    def _taken(self) -> list[TurnEvent]:
        out = [*self._out]
        self._out.clear()
        return out

    def _other(self, event: BackendEvent) -> None:
        match event:
            case TextPiece(text):
                self._read(text)
            case MessagePhase(phase):
                self._close_message()
                self._said.phase = phase
            case MessageEnded():
                self._close_message()
                self._message_over = True
            case ReasoningPiece(part, text):
                self._close_message()
                self._think(part, text)
            case ReasoningEnded():
                self._close_message()
                self._end_thought()
                self._reason(ReasoningItemEnded())
            case TurnEnded(usage, incomplete):
                # Of an answer that was cut here the backend counted more than the client gets.
                if self._incomplete is None:
                    self.usage, self._incomplete = usage, incomplete
                self._close_message()
                self._end_message()

    def _close_message(self) -> None:
        """Ends a message that is over, as soon as it is known what comes next: it may be that it was cut."""
        if self._message_over:
            self._message_over = False
            self._end_message()
            self._said.end_message()

    def _think(self, part: int, text: str) -> None:
        if self._thoughts is not None:
            if part != self._thought_part:
                self._end_thought()
            self._thought_part, text = part, self._thoughts.feed(text)
        if text:
            self._reason(Reasoning(part, text))

    def _end_thought(self) -> None:
        """A part of the reasoning is over."""
        if self._thoughts is not None and (text := self._thoughts.flush()):
            self._reason(Reasoning(self._thought_part, text))

    def _reason(self, event: Reasoning | ReasoningItemEnded) -> None:
        """Reasoning is never held back, but a call that is leaving is not interrupted by it: no API has items that
        lie in one another.
        """
        (self._out if self._live_call is None else self._after_call).append(event)

    def _read(self, text: str) -> None:
        if self._message_over:
            self._close_message()
        if self._meter is not None:
            text = self._meter.take(text)
        self._characters += len(text)
        if self._over:
            self.goes_on = self.goes_on or bool(text.strip())
            return
        if self._gate is None:
            self._text(text)
        else:
            self._parse(text)
        if self._meter is not None and self._meter.exhausted:
            self._cut("max_output_tokens")

    def _cut(self, reason: str) -> None:
        """The answer ends here, unless it had ended before."""
        if not self._over:
            # Before the end of the message: a call that is cut in two is then not asked for anew.
            self._incomplete = reason
            self._end_message()
            self._end(reason)

    def _end(self, reason: str, *, winds_down: bool = False) -> None:
        """Nothing more is wanted of it."""
        self.stop, self.winds_down = reason, winds_down
        self._over = True

    def _parse(self, text: str) -> None:
        rest = self._obey(self._parser.receive_text(text))
        while rest is not None:
            rest = self._obey(self._parser.receive_text(rest))

    def _end_message(self) -> None:
        """A call does not reach over the end of a message: each is read by itself."""
        # What the parser held back, for it might have become a tag, is decided here: a tag cut in two is none.
        if self._gate is not None and not self._over:
            events = self._parser.receive_eof()
            if (self._incomplete or self._error) and events and is_half_a_tag(events[-1]):
                self._said.take_out(str(events.pop()), UNREADABLE)
            while (rest := self._obey(events)) is not None:
                self._parse(rest)
                events = self._parser.receive_eof()
            self._parser = self._new_parser()
        self._flush_text()

    def _new_parser(self) -> SentinelParser | HeadedCallParser | HeldAnswerParser:
        if (self._demanded or self._held) and self._gate is not None:
            # Also where it is not held now: a recording of one that was is replayed by another backend.
            return HeldAnswerParser(self._gate.declared, arguments=self._live)
        if self._bare_calls and self._gate is not None:
            return HeadedCallParser(self._gate.declared, arguments=self._live)
        return SentinelParser(arguments=self._live)

    def _obey(self, events: Sequence[ParserEvent]) -> str | None:
        """Acts on events of the parser. Returns text that is to be read on with the parser that is there then."""
        for event in events:
            if self._over:
                self.goes_on = self.goes_on or not (isinstance(event, str) and event.isspace())
                continue
            match event:
                case str(text):
                    if not self._in_call:
                        self._text(text)
                    elif self._live_call is not None:
                        self._tell_arguments(text)
                case CallStarted():
                    self._in_call = True
                    self._started(event)
                case CallCompleted():
                    self._in_call = False
                    self._completed(event)
                case StrayCloser(raw):
                    if self._said.block_is_text:
                        self._show_block(raw)
                case CallMalformed():
                    self._in_call = False
                    self._unreadable(event)
                case ReadingEnded(reason, rest):
                    # The model goes on with a result. Behind a call of its own it made that up; without one it is
                    # part of something that the model quotes, and is text.
                    if not (self._calls or self._undeclared or self._repeated):
                        self._parser = SentinelParser(arguments=self._live)
                        return rest
                    self._end(reason)
        return None

    # Text

    def _text(self, text: str) -> None:
        self._said.feed(text)
        self._look_for_stop()

    def _flush_text(self) -> None:
        self._said.flush()
        self._look_for_stop()

    def _show_block(self, raw: str) -> None:
        self._said.show_block(raw)
        self._look_for_stop()

    def _look_for_stop(self) -> None:
        if self._said.stopped:
            self._end("a stop string came", winds_down=True)

    # Calls

    def _completed(self, call: CallCompleted) -> None:
        assert self._gate is not None  # noqa: S101 -- the parser is only fed when there is a gate
        if self._incomplete and call.tier is Tier.BARE:
            # What was cut may be the beginning of more than this call.
            raw, self._meant_call = call.before + call.raw, None
            reason = "the answer was cut in the middle of it"
            self._unreadable(CallMalformed(reason, raw, call.index, meant=is_markup(call.raw)))
            return
        # Text before it leaves before it.
        self._flush_text()
        self._said.speak()
        live = self._live_call == call.index
        self._meant_call = None
        # Behind a call that leaves anyway nothing is asked for once more: that call would come twice.
        may_ask = not (self._final or self._calls or live)
        verdict = self._gate.judge(call, before=self._said.before, may_ask=may_ask, held=self._held)
        raw = call.before + call.raw
        match verdict:
            case Refusal.UNDECLARED:
                self._undeclared += 1
                self._report.refuse(verdict.value, call.raw)
                self._said.pass_call(call.name, raw)
                if self._keeps_tail:
                    self._leave(self._release.meet(Cue.TAKEN_OUT))
            case Refusal():
                self._report.refuse(verdict.value, call.raw)
                if live:
                    self._break(f"the call was refused: {verdict.value}")
                else:
                    self._refused(verdict, call, raw)
            case Doubted():
                self._doubtful = self._doubtful or verdict
                self._report.doubt(verdict.doubt.value, call.raw)
                self._leave(self._release.meet(Cue.DOUBT))
                self._refused(Refusal.NO_KEY, call, raw)
            case Doubtful(reason):
                self._unreadable(CallMalformed(reason, raw, call.index))
            case Misfit():
                self._report.refuse("arguments_misfit", call.raw)
                # Calls go together: nothing more may leave.
                self._misfits.append(verdict)
                self._refused_misfit = self._over = True
            case Accepted(coercions=coercions) if live and Coercion.LIFTED in coercions:
                self._break("a part of the arguments came when they had ended")
            case Accepted():
                self._accepted(verdict, call, live=live)
                self._said.pass_call(call.name)

    def _accepted(self, verdict: Accepted, call: CallCompleted, *, live: bool) -> None:
        # What the schema took of arguments that have left as they were written helped nobody.
        rules = (*call.repairs, *(() if live else verdict.coercions))
        self._report.take_call(call.tier.value, rules, verdict.name, call.raw)
        if live:
            # Its arguments have left as they were written.
            self._calls += 1
            if verdict.misfit is not None:
                self._report.let_misfit(verdict.name)
            self._report.pass_on([verdict.name])
            self._end_live(ToolCallEnded())
        else:
            self._pass_on(verdict)
        if not self._parallel:
            self._end("one call was asked for", winds_down=True)

    def _refused(self, refusal: Refusal, call: CallCompleted, raw: str) -> None:
        """A call that may not leave: a quotation is text, as is JSON without any notation of ours."""
        assert self._gate is not None  # noqa: S101 -- it was the gate that refused
        # The client's own word for it.
        tool = self._gate.registry.match(call.name)
        name = f"the tool '{tool.name}'" if tool else "a tool"
        if refusal is Refusal.QUOTED or not is_markup(call.raw) or self._gate.is_quoted_text(call.raw):
            if refusal is Refusal.QUOTED:
                self._report.warn(QUOTED.format(tool=name))
            if is_markup(call.raw):
                self._report.show_markup("quotation")
            self._show_block(raw)
        else:
            self._said.take_out(raw, NO_KEY.format(tool=name))

    def _pass_on(self, call: Accepted) -> None:
        """A whole call leaves, or is held with the others or on suspicion."""
        events = (ToolCallStarted(call.call_id, call.name), ToolCallArguments(call.arguments), ToolCallEnded())
        if call.misfit is not None:
            # Behind a call that has left nothing is asked for once more: that call would come twice.
            answered = self._release.hold is Hold.ANSWERED or (self._release.hold is Hold.TAIL and self._calls)
            if not (self._final or answered):
                self._misfits.append(call.misfit)
                self._calls += 1
                self._leave(self._release.meet(Cue.MISFIT, events))
                return
            self._report.let_misfit(call.name)
        # Behind a call that leaves anyway this one repeats nothing any worse, and holding it would hold both.
        if call.repeated and not (self._may_repeat or self._calls):
            self._repeated = call.name
            self._leave(self._release.meet(Cue.REPEAT, events))
            return
        self._calls += 1
        together = self._gate is not None and self._gate.keeps_calls_together
        self._leave(self._release.meet(Cue.JOINT_CALL if together else Cue.CALL, events))

    def _leave(self, events: Sequence[TurnEvent]) -> None:
        """What a cue has set free, or let through."""
        self._out += events
        self._report.pass_on(names_of_calls(events))

    def _unreadable(self, block: CallMalformed) -> None:
        self._flush_text()
        self._said.speak()
        meant, self._meant_call = self._meant_call, None
        # A call that has no key goes behind no other: it would be run as one that is whole.
        is_meant = meant is not None and block.index == meant.index and (meant.keyed or not self._calls)
        if self._incomplete and meant is not None and is_meant and self._gate is not None:
            # Cut off, but meant: it leaves as far as it has come, as one whose arguments nobody can read.
            events = (
                ToolCallStarted(self._gate.take_id(meant.id), meant.name),
                ToolCallArguments(masked(begun_arguments(block.raw), self._key)),
                ToolCallEnded(complete=False),
            )
            self._leave(self._release.meet(Cue.CALL, events))
            return
        self._report.refuse(masked(block.reason, self._key), block.raw)
        if block.index is not None and block.index == self._live_call:
            self._break(f"the call cannot be read: {masked(block.reason, self._key)}")
            return
        raw = block.before + block.raw
        # A broken block that stands so in the request is quoted, and asking anew would bring it again.
        quoted = self._gate is not None and self._gate.is_quoted_text(block.raw)
        if quoted or not block.meant:
            self._report.show_markup("quotation" if quoted else "mention")
            self._show_block(raw)
            return
        if not self._calls:
            self._malformed = block.reason
            self._leave(self._release.meet(Cue.DOUBT))
        self._said.take_out(raw, UNREADABLE)

    # Live calls

    def _started(self, call: CallStarted) -> None:
        # Without its tags a call is known when it is whole, and may be copied JSON.
        if self._gate is None or call.bare or (tool := self._gate.registry.match(call.name)) is None:
            return
        # Once it has begun it can only end or break the turn, so it must be one that nothing later can refuse.
        if self._live and self._gate.may_leave_unfinished(call):
            self._flush_text()
            self._said.speak()
            # Counted when it is whole: one that breaks off was never called.
            started = ToolCallStarted(self._gate.take_id(call.id), tool.name)
            self._leave(self._release.meet(Cue.CALL))
            self._out.append(started)
            self._live_call = call.index
        elif carried := self._gate.is_meant(call):
            self._meant_call = MeantCall(call.index, tool.name, call.id, carried is Carried.RIGHT)

    def _tell_arguments(self, text: str) -> None:
        if self._live_mask is not None:
            text = self._live_mask.feed(text)
        if text:
            self._out.append(ToolCallArguments(text))

    def _end_live(self, end: ToolCallEnded) -> None:
        self._live_call = None
        if self._live_mask is not None and (text := self._live_mask.flush()):
            self._out.append(ToolCallArguments(text))
        self._out += [end, *self._after_call]
        self._after_call.clear()

    def _break(self, reason: str) -> None:
        """A call that was leaving live is none: what has left cannot be taken back, so the turn must fail."""
        self._end_live(ToolCallEnded(complete=False))
        self.stop = reason
        self._over = True
        # Where the answer was cut, the client knows already why the call has no end.
        if not self._incomplete:
            self._broken = reason
