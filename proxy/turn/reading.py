"""One answer of the model, read as it comes: backend events in, turn events out.

    backend events --> text --meter--> parser --> text ---> shown text ----.
                                         |                                 +--> outlet --> the client
                                         '------> blocks -> passed calls --'

This module knows where the text and the blocks are, and where the answer ends. `shown_text` decides which text leaves,
`passed_calls` which calls leave, and `outlet` when. The result is an `Answer`, a plain value that `verdict` judges.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from parser import (
    BARE_ANSWERS,
    HEADED_ANSWERS,
    HELD_ANSWERS,
    AnswerParser,
    CallCompleted,
    CallMalformed,
    CallStarted,
    Opener,
    ParserEvent,
    ReadingEnded,
    SentinelParser,
    StrayCloser,
)

from ..contracts import (
    BackendEvent,
    MessageEnded,
    MessagePhase,
    ReasoningEnded,
    ReasoningPiece,
    TextPiece,
    TurnEnded,
    TurnEvent,
)
from ..errors import BackendError
from .blocks import LOOKED_AT, half_a_block
from .calls import CallGate
from .filters import masked
from .outlet import Outlet, Thoughts
from .passed_calls import PassedCalls, Stop
from .plan import Attempt, Plan
from .report import TurnReport
from .shown_text import ShownText
from .spent import Spent
from .verdict import Answer, Ending


class AnswerEnd(Struct):
    """How far an answer has come to its end.

    `over`: nothing of what may still come counts. More than white space came all the same if it `goes_on`, or waited in
    the parser as a `leftover`. `stop`: no more is wanted. It was cut as `incomplete` says, or its stream failed with
    `error`. `message`: one is over, but it is not known yet whether it was cut.
    """

    over: bool = False
    goes_on: bool = False
    leftover: bool = False
    stop: Stop | None = None
    incomplete: str | None = None
    error: BackendError | None = None
    message: bool = False


class Reading:
    """Feed it the backend's batches, then `finish`; what these return may leave at once.

    No more is read than may be `spent`. The model was shown these `lines` of ours: one that it repeats is taken out.
    `held`: the backend is asked to hold its model to a schema of calls. `early`: what must be JSON leaves as it comes,
    where it is JSON.
    """

    def __init__(
        self,
        plan: Plan,
        attempt: Attempt,
        gate: CallGate,
        report: TurnReport,
        *,
        spent: Spent | None = None,
        lines: Sequence[str] = (),
        held: bool = False,
        early: bool = False,
    ) -> None:
        self._plan = plan
        self._held = held
        self.spent = spent or Spent()
        self._outlet = outlet = Outlet(report, attempt.keep_for, plan.key.key)
        self._thoughts = Thoughts(outlet, plan.key.key)
        self.text = shown = ShownText(plan, attempt, outlet, report, lines, early=early)
        self._calls = PassedCalls(gate, attempt, report, outlet, shown, held=held)
        self._parser = self._new_parser() if plan.reads_calls else None
        # The text between the blocks, as the model wrote it: the pieces themselves, which others keep as well.
        self._said: list[str] = []
        # Whether the parser is in the middle of a call: its text is of the arguments.
        self._in_call = False
        self.end = AnswerEnd()

    @property
    def said(self) -> str | None:
        """The text between the blocks, as the model wrote it; None where more came behind its end."""
        return None if self.end.goes_on or self.end.leftover else "".join(self._said)

    def receive(self, batch: Sequence[BackendEvent]) -> list[TurnEvent]:
        """Turn events for a batch of backend events; adjacent text is read in one piece."""
        # A model that is faster than its reader fills a batch with pieces: read as one they cost what one costs.
        text = ""
        for event in batch:
            if isinstance(event, TextPiece):
                text += event.text
                continue
            if text:
                self._read(text)
                text = ""
            self._other(event)
        if text:
            self._read(text)
        return self._outlet.take()

    def finish(self, error: BackendError | None = None) -> list[TurnEvent]:
        """Turn events for the end of the backend's stream; `error` is what broke it off."""
        self.end.error = error
        self._close_message()
        self._end_message()
        self._thoughts.end()
        if not self.text.is_echo:
            self._outlet.speak()
        if not error:
            self._calls.finish()
            if self._plan.offers and not self._plan.demands:
                self._calls.look_for_text("".join(self._said)[:LOOKED_AT])
        return self._outlet.take()

    @property
    def answer(self) -> Answer:
        """What was read, once it is finished."""
        return Answer(
            kept_for=self._outlet.reason,
            kept=self._outlet.kept,
            said=self._outlet.left.said,
            rulings=tuple(self._calls.rulings),
            lost=tuple(self._calls.lost),
            written=masked(self.text.written, self._plan.key.key),
            repeats_line=self.text.repeats_line,
            ending=Ending(
                incomplete=self.end.incomplete,
                stop=self.text.stop_strings.reached,
                error=self.end.error,
                constrained=self._held and self.end.error is not None and self.spent.characters > 0,
            ),
        )

    def _other(self, event: BackendEvent) -> None:
        if isinstance(event, TurnEnded) and self.end.incomplete is None:
            # Of an answer that was cut here the backend counted more than the client gets.
            self.spent.counted = event.usage
            # What ended before, as by a stop string, is whole, however the backend's answer ended behind it.
            self.end.incomplete = None if self.end.stop else event.incomplete
        self._close_message()
        match event:
            case MessagePhase(phase):
                self.text.phase = phase
            case MessageEnded():
                self.end.message = True
            case ReasoningPiece(part, text, asked):
                if (taken := self.spent.take_thought(text)) and asked:
                    self._thoughts.feed(part, taken)
                if self.spent.full:
                    self._cut("--max-answer")
            case ReasoningEnded():
                self._thoughts.end_item()
            case _:  # the end of the turn
                self._end_message()

    def _close_message(self) -> None:
        """Ends a message that is over, as soon as it is known what comes next: it may be that it was cut."""
        if self.end.message:
            self.end.message = False
            self._end_message(ends=False)
            self.text.end_message()

    def _read(self, text: str) -> None:
        if self.end.message:
            self._close_message()
        text = self.spent.take(text)
        if self.end.over:
            self._pass_over(text)
            return
        if self._plan.reads_calls:
            self._parse(text)
        else:
            self._show(text)
        if self.spent.exhausted:
            self._cut("max_output_tokens")
        if self.spent.full:
            self._cut("--max-answer")

    def _cut(self, limit: str) -> None:
        """The answer ends here, unless it had ended before."""
        if not self.end.over:
            # The API has no other word for any limit. It is set before the end of the message: a call that is cut in
            # two is then not asked for anew.
            self.end.incomplete = "max_output_tokens"
            self._end_message()
            self._close(Stop(limit))
        # One that was to end by itself does not, where no more has room.
        self.end.goes_on = self.end.goes_on or self.spent.full

    def _close(self, stop: Stop) -> None:
        self.end.over = True
        if stop.reason:
            self.end.stop = stop

    def _parse(self, text: str) -> None:
        rest: str | None = text
        while rest is not None:
            if self._parser is None:
                self._parser = self._new_parser()
            rest = self._obey(self._parser.receive_text(rest))

    def _end_message(self, *, ends: bool = True) -> None:
        """A call does not reach over the end of a message: each is read by itself.

        JSON may, unless the answer `ends` as well.
        """
        # What waits in the parser, for it might have become a tag, is decided here: a tag cut in two is none.
        parser, self._parser = self._parser, None
        events = [] if parser is None else parser.receive_eof()
        if not self.end.over:
            if (self.end.incomplete or self.end.error) and (begun := half_a_block(events)):
                self._calls.take_out_half("".join(map(str, events[-begun:])))
                del events[-begun:]
            if (rest := self._obey(events)) is not None:
                self._parse(rest)
                self._end_message(ends=ends)
                return
            self._settle()
        else:
            # What still waits in the parser came behind the end.
            self.end.leftover = self.end.leftover or bool("".join(map(str, events)).strip())
        self.text.flush(ends=ends)
        self._look_for_stop()

    def _new_parser(self) -> SentinelParser | AnswerParser:
        plan, openers = self._plan, tuple[Opener, ...]()
        if plan.demands or self._held:
            # Also where it is not held now: a recording of one that was is replayed by another backend.
            openers = HELD_ANSWERS
        elif plan.reads_bare:
            openers = BARE_ANSWERS
        elif plan.has_headers:
            # Without the header, which is taken out, a person would be shown the JSON.
            openers = HEADED_ANSWERS
        if not openers:
            return SentinelParser(arguments=plan.live)
        # Where a call is demanded nothing is only shown.
        return AnswerParser(plan.request.registry, openers, arguments=plan.live, in_code=plan.demands)

    def _obey(self, events: Sequence[ParserEvent]) -> str | None:
        """Acts on events of the parser. Returns text that is to be read on with the parser that is there then."""
        for event in events:
            if self.end.over:
                self._pass_over(event if isinstance(event, str) else "a block")
                continue
            match event:
                case str(text):
                    if not self._in_call:
                        self._show(self._heard(text) if self._calls.waiting.calls else text)
                    elif self._outlet.leaving is not None:
                        self._outlet.feed_call(text)
                case ReadingEnded(reason, rest):
                    # The model goes on with a result. Behind a call of its own it made that up; without one it is
                    # part of something that the model quotes, and is text.
                    self._settle(result=True)
                    if not self._calls.came:
                        self._parser = SentinelParser(arguments=self._plan.live, in_code=self._plan.demands)
                        return rest
                    self._close(Stop(reason))
                case _:
                    self._pass(event)
        return None

    def _heard(self, text: str) -> str:
        """What of the text behind a call that waits for it is to be said now."""
        text = self._calls.hear(text)
        self._look_for_end()
        return text

    def _settle(self, *, result: bool = False) -> None:
        """Nothing more is to be heard of what waits."""
        if self._calls.waiting.calls:
            text = self._calls.settle(result=result)
            self._look_for_end()
            self._show(text)

    def _pass(self, event: CallStarted | CallCompleted | CallMalformed | StrayCloser) -> None:
        # Several calls of one block wait together.
        if isinstance(event, CallMalformed) or (isinstance(event, CallCompleted) and event.raw):
            self._settle()
            if self.end.over:
                self.end.goes_on = True
                return
        cut = self.end.incomplete is not None
        match event:
            case CallStarted():
                self._in_call = True
                self._calls.start(event)
            case CallCompleted():
                self._in_call = False
                self._calls.complete(event, cut=cut)
            case CallMalformed():
                self._in_call = False
                self._calls.fail(event, cut=cut)
            case StrayCloser(raw):
                self._calls.close(raw)
        self._look_for_end()

    def _look_for_end(self) -> None:
        self._look_for_stop()
        if self._calls.stop is not None:
            self._close(self._calls.stop)

    def _pass_over(self, text: str) -> None:
        """It came behind the end."""
        self.end.goes_on = self.end.goes_on or bool(text.strip())

    def _show(self, text: str) -> None:
        if self.end.over:
            self._pass_over(text)
            return
        self._said.append(text)
        self.text.feed(text)
        if self._plan.request.stop:
            self._look_for_stop()

    def _look_for_stop(self) -> None:
        if self.text.stop_strings.reached is None:
            return
        # A demanded call is all that is wanted: at OpenAI there is no word in front of one that could end it.
        waits = self._plan.demands and (self._in_call or not self._calls.came)
        if not waits:
            self._close(Stop("a stop string came", winds_down=True))
