"""One answer of the model, read as it comes: backend events in, turn events out.

    backend events --> text --meter--> parser --> text ---> shown text ----.
                                         |                                 +--> outlet --> the client
                                         '------> blocks -> passed calls --'

Where in it the text and the blocks are, and where the answer ends, is known here. What leaves of its text is
`shown_text`'s business, what of its calls `passed_calls`', and when that of `outlet`. What the answer was in the end
is an `Answer`, a plain value that `verdict` judges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from parser import (
    BARE_ANSWERS,
    HEADED_ANSWERS,
    HELD_ANSWERS,
    AnswerParser,
    CallCompleted,
    CallMalformed,
    CallStarted,
    ParserEvent,
    ReadingEnded,
    SentinelParser,
    StrayCloser,
)
from prompts import ModelRule, Unescaper

from ..contracts import (
    BackendEvent,
    MessageEnded,
    MessagePhase,
    Reasoning,
    ReasoningEnded,
    ReasoningItemEnded,
    ReasoningPiece,
    TextPiece,
    TurnEnded,
    TurnEvent,
    Usage,
)
from ..errors import BackendError
from .blocks import half_a_block
from .calls import CallGate
from .filters import (
    Chain,
    LineRule,
    Mask,
    OwnNotation,
    StopStrings,
    TakenOut,
    headers,
    invented_results,
    masked,
    own_lines,
)
from .json_stream import JsonStream
from .outlet import Outlet
from .passed_calls import PassedCalls, Stop
from .reading_rules import ReadingRules
from .reason import Reason
from .report import TurnReport
from .shown_text import ShownText
from .tokens import CHARACTERS_PER_TOKEN, TokenMeter
from .verdict import Answer, Ending


class Reading:
    """Feed it the backend's batches, then `finish`; what these return may leave at once.

    Without a `gate` no call is read. `stop` set: nothing more of this answer is wanted, and the backend's turn can be
    ended.
    """

    def __init__(
        self,
        gate: CallGate | None,
        report: TurnReport,
        rules: ReadingRules = ReadingRules(),  # noqa: B008 -- frozen
        *,
        meter: TokenMeter | None = None,
    ) -> None:
        key = rules.key
        self._rules = rules
        self._declared = gate.declared if gate else None
        self._held = False
        self._meter = meter
        self._thoughts = None if key is None else Mask(key)
        self._thought_part = 0
        self._outlet = outlet = Outlet(report, rules.keep_for, key)
        self._notation = OwnNotation(self._line_rules(), everywhere=rules.named_results, told=report.take_out)
        self._stop_strings = StopStrings(rules.stop_strings) if rules.stop_strings else None
        mask = None if key is None else Mask(key)
        visible = Chain([each for each in (mask, Unescaper(), self._stop_strings) if each is not None])
        self._said = said = ShownText(outlet, self._notation, visible, echoes=rules.echoes)
        self._calls: PassedCalls | None = None
        if gate is not None:
            self._parser = self._new_parser()
            self._calls = PassedCalls(gate, report, outlet, said, rules=rules)
        # Whether the parser is in the middle of a call: its text is of the arguments.
        self._in_call = False
        # Whether a message is over, but not known yet whether it was cut.
        self._message_over = False
        self._characters = 0
        # Whether nothing of what may still come counts. Asked for each delta.
        self._over = False
        self._incomplete: str | None = None
        self._error: BackendError | None = None
        self.stop: Stop | None = None
        """Nothing more is wanted of it."""
        self.goes_on = False
        """More came all the same than white space."""
        self.usage: Usage | None = None
        """As the backend counted it; None when it did not come to that."""

    @property
    def left_json(self) -> bool:
        """The text that was to be told as the JSON that it is did not begin as such."""
        return self._said.left_json

    @property
    def tells_json(self) -> bool:
        """Its text leaves as it comes, as the JSON that it is."""
        return self._said.tells_json

    def tell_json(self, *, early: bool) -> None:
        """Before the first text: whether what must be JSON leaves as it comes, where it is JSON."""
        tells = early and self._outlet.reason is Reason.OUTPUT_INVALID
        self._said.tell_json(JsonStream(self._rules.key) if tells else None)

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
        return self._outlet.take()

    def finish(self, error: BackendError | None = None) -> list[TurnEvent]:
        """Turn events for the end of the backend's stream; `error` is what broke it off."""
        self._error = error
        self._close_message()
        self._end_message()
        self._end_thought()
        if not self._said.is_echo:
            self._outlet.speak()
        if self._calls is not None and not error:
            self._calls.finish()
        return self._outlet.take()

    @property
    def answer(self) -> Answer:
        """What was read, once it is finished."""
        return Answer(
            kept_for=self._outlet.reason,
            kept=self._outlet.kept,
            said=self._outlet.left.said,
            rulings=() if self._calls is None else tuple(self._calls.rulings),
            lost=() if self._calls is None else tuple(self._calls.lost),
            written=masked(self._said.written, self._rules.key),
            repeats_line=TakenOut.OWN_LINE in self._notation.took,
            ending=Ending(
                incomplete=self._incomplete,
                by_stop_string=self._stopped,
                error=self._error,
                constrained=self._held and self._error is not None and self._characters > 0,
            ),
        )

    @property
    def characters(self) -> int:
        """How much was read of it."""
        return self._characters

    @property
    def estimated_tokens(self) -> int:
        """What was read of it, for want of the backend's own count."""
        return self._characters // CHARACTERS_PER_TOKEN if self._meter is None else self._meter.spent

    def show_lines(self, lines: Sequence[str], said: Sequence[str]) -> None:
        """The model was shown these lines of ours, and the client those: one that it repeats is taken out."""
        if (lines or said) and ModelRule.OWN_LINE in self._rules.model_rules:
            self._notation.know(own_lines(lines, said))

    def _line_rules(self) -> Iterator[LineRule]:
        names, named = [tool.name for tool in self._declared or ()], self._rules.named_results
        if self._rules.may_begin_so is not None and ModelRule.HEADER in self._rules.model_rules:
            yield headers(self._rules.may_begin_so, names, named=named)
        if self._declared is not None and ModelRule.INVENTED_RESULT in self._rules.model_rules:
            yield invented_results(names, named=named)

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
                self._outlet.think(ReasoningItemEnded())
            case TurnEnded(usage, incomplete):
                # Of an answer that was cut here the backend counted more than the client gets.
                if self._incomplete is None:
                    self.usage = usage
                    # What ended before, as by a stop string, is whole, however the backend's answer ended behind it.
                    self._incomplete = incomplete if self.stop is None or self.stop.reason is None else None
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
            self._outlet.think(Reasoning(part, text))

    def _end_thought(self) -> None:
        """A part of the reasoning is over."""
        if self._thoughts is not None and (text := self._thoughts.flush()):
            self._outlet.think(Reasoning(self._thought_part, text))

    def _read(self, text: str) -> None:
        if self._message_over:
            self._close_message()
        if self._meter is not None:
            text = self._meter.take(text)
        self._characters += len(text)
        if self._over:
            self.goes_on = self.goes_on or bool(text.strip())
            return
        if self._calls is None:
            self._text(text)
        else:
            self._parse(self._calls, text)
        if self._meter is not None and self._meter.exhausted:
            self._cut("max_output_tokens")

    def _cut(self, reason: str) -> None:
        """The answer ends here, unless it had ended before."""
        if not self._over:
            # Before the end of the message: a call that is cut in two is then not asked for anew.
            self._incomplete = reason
            self._end_message()
            self._end(Stop(reason))

    def _end(self, stop: Stop) -> None:
        self.stop, self._over = stop, True

    def _parse(self, calls: PassedCalls, text: str) -> None:
        rest = self._obey(calls, self._parser.receive_text(text))
        while rest is not None:
            rest = self._obey(calls, self._parser.receive_text(rest))

    def _end_message(self) -> None:
        """A call does not reach over the end of a message: each is read by itself."""
        # What the parser held back, for it might have become a tag, is decided here: a tag cut in two is none.
        if self._calls is not None and not self._over:
            events = self._parser.receive_eof()
            if (self._incomplete or self._error) and (begun := half_a_block(events)):
                self._calls.take_out_half("".join(map(str, events[-begun:])))
                del events[-begun:]
            while (rest := self._obey(self._calls, events)) is not None:
                self._parse(self._calls, rest)
                events = self._parser.receive_eof()
            self._settle(self._calls)
            self._parser = self._new_parser()
        self._said.flush()
        self._look_for_stop()

    def _new_parser(self) -> SentinelParser | AnswerParser:
        if (self._rules.demanded or self._held) and self._declared is not None:
            # Also where it is not held now: a recording of one that was is replayed by another backend.
            return AnswerParser(self._declared, HELD_ANSWERS, arguments=self._rules.live)
        if self._rules.bare_calls and self._declared is not None:
            return AnswerParser(self._declared, BARE_ANSWERS, arguments=self._rules.live)
        if self._rules.may_begin_so is not None and self._declared is not None:
            # Without the header, which is taken out, a person would be shown the JSON.
            return AnswerParser(self._declared, HEADED_ANSWERS, arguments=self._rules.live)
        return SentinelParser(arguments=self._rules.live)

    def _obey(self, calls: PassedCalls, events: Sequence[ParserEvent]) -> str | None:
        """Acts on events of the parser. Returns text that is to be read on with the parser that is there then."""
        for event in events:
            if self._over:
                self.goes_on = self.goes_on or not (isinstance(event, str) and event.isspace())
                continue
            match event:
                case str(text):
                    if not self._in_call:
                        self._text(self._heard(calls, text) if calls.waits else text)
                    elif self._outlet.leaving is not None:
                        self._outlet.feed_call(text)
                case ReadingEnded(reason, rest):
                    # The model goes on with a result. Behind a call of its own it made that up; without one it is
                    # part of something that the model quotes, and is text.
                    self._settle(calls, result=True)
                    if not calls.came:
                        self._parser = SentinelParser(arguments=self._rules.live)
                        return rest
                    self._end(Stop(reason))
                case _:
                    self._pass(calls, event)
        return None

    def _heard(self, calls: PassedCalls, text: str) -> str:
        """What of the text behind a call that waits for it is to be said now."""
        text = calls.hear(text)
        self._look_for_end(calls)
        return text

    def _settle(self, calls: PassedCalls, *, result: bool = False) -> None:
        """Nothing more is to be heard of what waits."""
        if calls.waits:
            text = calls.settle(result=result)
            self._look_for_end(calls)
            self._text(text)

    def _pass(self, calls: PassedCalls, event: CallStarted | CallCompleted | CallMalformed | StrayCloser) -> None:
        # Several calls of one block wait together.
        if isinstance(event, CallMalformed) or (isinstance(event, CallCompleted) and event.raw):
            self._settle(calls)
            if self._over:
                self.goes_on = True
                return
        cut = self._incomplete is not None
        match event:
            case CallStarted():
                self._in_call = True
                calls.start(event)
            case CallCompleted():
                self._in_call = False
                calls.complete(event, cut=cut, held=self._held)
            case CallMalformed():
                self._in_call = False
                calls.fail(event, cut=cut)
            case StrayCloser(raw):
                calls.close(raw)
        self._look_for_end(calls)

    def _look_for_end(self, calls: PassedCalls) -> None:
        self._look_for_stop()
        if calls.stop is not None:
            self._end(calls.stop)

    def _text(self, text: str) -> None:
        if self._over:
            self.goes_on = self.goes_on or bool(text.strip())
            return
        self._said.feed(text)
        if self._stop_strings is not None:
            self._look_for_stop()

    @property
    def _stopped(self) -> bool:
        return self._stop_strings is not None and self._stop_strings.reached

    def _look_for_stop(self) -> None:
        if self._stop_strings is None or not self._stop_strings.reached:
            return
        # A demanded call is all that is wanted: at OpenAI there is no word in front of one that could end it.
        waits = self._rules.demanded and self._calls is not None and (self._in_call or not self._calls.came)
        if not waits:
            self._end(Stop("a stop string came", winds_down=True))
