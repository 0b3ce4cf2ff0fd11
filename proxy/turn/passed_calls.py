"""The calls of one answer: which of them leave, as what, and what is known of them in the end.

a call that begins --> leaves while it is written, where nothing later can refuse it
a whole call --its place, once what stands behind it tells--> gate
             gate ---> good ------------------------> release --> the client
                 |---> not meant, or of no tool ----> text, or taken out
                 '---> doubtful, or does not fit ---> held, for the verdict
a broken one --------> what there is of it, text, or taken out
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from parser import CallCompleted, CallMalformed, CallStarted, Tier
from prompts import Place

from ..contracts import ToolCallArguments, ToolCallEnded, ToolCallStarted, TurnEvent
from .blocks import QUOTED, TAKEN_OUT, UNREADABLE, MeantCall, begun_arguments, is_markup
from .call_key import Carried
from .calls import Accepted, CallGate, Doubted
from .coercion import Coercion, Doubtful
from .filters import masked
from .key_rule import Doubt, Refusal
from .leaving_call import LeavingCall
from .reading_rules import ReadingRules
from .release import Cue, Hold, Release
from .report import TurnReport
from .shown_text import ShownText
from .strictness import Misfit
from .verdict import Answer, names_of_calls
from .waiting_call import Showing


class PassedCalls:
    """Tell it of each block; what may leave now is put into `out`.

    `cut`, with a block: the answer was cut, and it may be in this block.
    """

    def __init__(
        self,
        gate: CallGate,
        report: TurnReport,
        out: list[TurnEvent],
        release: Release,
        said: ShownText,
        *,
        leaving: LeavingCall,
        rules: ReadingRules,
    ) -> None:
        self._gate = gate
        self._report = report
        self._out = out
        self._release = release
        self._said = said
        self._leaving = leaving
        self._rules = rules
        self._meant_call: MeantCall | None = None
        # Whole calls, all of one block, of which the text behind them will tell whether they are shown.
        self._waiting: list[tuple[CallCompleted, Showing]] = []
        self._waits_cut = self._waits_held = False
        self._closer = ""
        self.waits = False
        """Asked for each piece of text: `hear` is to be told of it first."""
        self._keyed = False
        self._good = 0
        self._undeclared = 0
        self._refused = False
        self._malformed: str | None = None
        self._doubtful: Doubted | None = None
        self._repeated: str | None = None
        self._adds_nothing = False
        self._misfits: list[Misfit] = []
        self._broken: str | None = None
        self.refused = False
        """A strict call does not fit. Calls go together: nothing more may leave."""
        self.stop: str | None = None
        """Why nothing more is wanted."""
        self.winds_down = False
        """Nor is more to be expected."""

    @property
    def came(self) -> bool:
        """A call came that could be read, good or not."""
        return bool(self._good or self._undeclared or self._adds_nothing)

    def start(self, call: CallStarted) -> None:
        # Without its tags a call is known when it is whole, and may be copied JSON.
        if call.bare or (tool := self._gate.registry.match(call.name)) is None:
            return
        # Once it has begun it can only end or break the turn, so it must be one that nothing later can refuse.
        before = self._said.before
        is_first = not (self.waits or self._doubtful)
        if self._rules.live and is_first and self._gate.may_leave_unfinished(call, before):
            self._said.flush()
            self._said.speak()
            # Counted when it is whole: one that breaks off was never called.
            started = ToolCallStarted(self._gate.take_id(call.id), tool.name)
            self._leave(self._release.meet(Cue.CALL))
            self._leaving.begin(call.index, started)
        elif carried := self._gate.is_meant(call, before):
            self._meant_call = MeantCall(call.index, tool.name, call.id, carried is Carried.RIGHT)

    def complete(self, call: CallCompleted, *, cut: bool, held: bool) -> None:
        """`held`: the model could write nothing but a call, because the request demands one."""
        if cut and call.tier is Tier.BARE:
            # What was cut may be the beginning of more than this call.
            raw, self._meant_call = call.before + call.raw, None
            reason = "the answer was cut in the middle of it"
            self.fail(CallMalformed(reason, raw, call.index, meant=is_markup(call.raw)), cut=cut)
            return
        self._said.pass_blank(call.before)
        showing = None if self._leaving.index == call.index else self._gate.showing(call, self._said.before)
        if showing is None:
            self._judge(call, quoted=False, cut=cut, held=held)
        elif (shown := showing.is_shown()) is not None:
            self._judge(call, quoted=shown, cut=cut, held=held)
        else:
            self._waiting.append((call, showing))
            self.waits, self._waits_cut, self._waits_held = True, cut, held

    def hear(self, text: str) -> str:
        """What follows a call that waits for it. Returns the text that is not needed for that any more."""
        for _, showing in self._waiting:
            showing.hear(text)
        if any(showing.is_shown() is None for _, showing in self._waiting):
            return ""
        return self.settle()

    def settle(self, *, result: bool = False) -> str:
        """No text follows what waits, but another block, or a `result` that the model made up. Returns as `hear`."""
        waiting, self._waiting, self.waits = self._waiting, [], False
        for call, showing in waiting:
            # A call that has its result is shown with it.
            shown = bool(showing.is_shown(ended=True)) or (result and showing.awaits_result)
            self._judge(call, quoted=shown, cut=self._waits_cut, held=self._waits_held)
        self.close(self._closer)
        return waiting[0][1].behind if waiting else ""

    def close(self, closer: str) -> None:
        """A second close tag came behind a call: it goes the way of that call."""
        if self.waits:
            self._closer += closer
            return
        self._closer = ""
        if closer and self._said.block_is_text:
            self._said.show_block(closer)

    def _judge(self, call: CallCompleted, *, quoted: bool, cut: bool, held: bool) -> None:
        # Text before it leaves before it.
        self._said.flush(ends=False)
        self._said.speak()
        live = self._leaving.index == call.index
        if self._meant_call is not None and self._meant_call.index == call.index:
            # Another one may have begun while this one waited.
            self._meant_call = None
        if self._doubtful is not None and not self._rules.final:
            # The whole answer is asked for once more: none of its calls leaves, or it would come twice.
            self._said.pass_call(call.name, call.before + call.raw)
            return
        # Behind a call that leaves anyway nothing is asked for once more: that call would come twice.
        may_ask = not (self._rules.final or self._good or live)
        verdict = self._gate.judge(
            call,
            quoted=quoted,
            may_ask=may_ask,
            first=not self._rules.final,
            behind_keyed=self._keyed,
            held=held,
        )
        raw = call.before + call.raw
        match verdict:
            case Refusal.UNDECLARED:
                self._undeclared += 1
                self._report.refuse(verdict.value, call.raw)
                self._said.pass_call(call.name, raw)
            case Refusal():
                self._refused = True
                self._report.refuse(verdict.value, call.raw)
                if live:
                    self._break(f"the call was refused: {verdict.value}", cut=cut)
                else:
                    self._refuse(verdict, call, raw)
            case Doubted():
                self._doubtful = self._doubtful or verdict
                self._report.doubt(verdict.doubt.value, call.raw)
                self._leave(self._release.meet(Cue.DOUBT))
                self._refuse(verdict.doubt, call, raw)
            case Doubtful(reason):
                self.fail(CallMalformed(reason, raw, call.index), cut=cut)
            case Misfit():
                self._report.refuse("arguments_misfit", call.raw)
                self._misfits.append(verdict)
                self.refused = True
            case Accepted(coercions=coercions) if live and Coercion.LIFTED in coercions:
                self._break("a part of the arguments came when they had ended", cut=cut)
            case Accepted():
                self._keyed = self._keyed or verdict.keyed
                self._accept(verdict, call, live=live)
                self._said.pass_call(call.name)

    def fail(self, block: CallMalformed, *, cut: bool) -> None:
        """A block that cannot be read."""
        self._said.pass_blank(block.before)
        self._said.flush(ends=False)
        self._said.speak()
        meant, self._meant_call = self._meant_call, None
        # A call that has no key goes behind no other: it would be run as one that is whole.
        if cut and meant is not None and (meant.keyed or not self._good):
            # Cut off, but meant: it leaves as far as it has come, as one whose arguments nobody can read.
            self._said.flush()
            events = (
                ToolCallStarted(self._gate.take_id(meant.id), meant.name),
                ToolCallArguments(masked(begun_arguments(block.raw), self._rules.key)),
                ToolCallEnded(complete=False),
            )
            self._leave(self._release.meet(Cue.CALL, events))
            return
        reason = masked(block.reason, self._rules.key)
        self._report.refuse(reason, block.raw)
        if block.index is not None and block.index == self._leaving.index:
            self._break(f"the call cannot be read: {reason}", cut=cut)
            return
        raw = block.before + block.raw
        # One that stands so in the request, or in a quotation, is quoted: asking anew would bring it again.
        quoted = Place(self._said.before).is_quoted or self._gate.is_quoted_text(block.raw)
        if quoted or not block.meant:
            self._report.show_markup("quotation" if quoted else "mention")
            self._said.show_block(raw)
            return
        if not self._good:
            self._malformed = block.reason
            self._leave(self._release.meet(Cue.DOUBT))
        self._said.take_out(raw, UNREADABLE)

    def finish(self) -> None:
        """The answer is over, and its stream did not fail."""
        if not self.refused:
            self._leave(self._release.meet(Cue.END))

    def told_in(self, answer: Answer) -> Answer:
        """`answer`, with what is known of its calls."""
        return replace(
            answer,
            calls=self._good,
            undeclared=self._undeclared,
            refused=self._refused,
            malformed=self._malformed,
            doubtful=self._doubtful,
            repeated=self._repeated,
            adds_nothing=self._adds_nothing,
            misfits=tuple(self._misfits),
            broken=self._broken,
        )

    def _accept(self, verdict: Accepted, call: CallCompleted, *, live: bool) -> None:
        self._said.flush()
        # What the schema took of arguments that have left as they were written helped nobody,
        # but for a remark beside them.
        taken = [rule for rule in verdict.coercions if not live or rule == Coercion.REMARK]
        rules = (*call.repairs, *taken)
        self._report.take_call(call.tier.value, rules, verdict.name, call.raw)
        if live:
            # Its arguments have left as they were written.
            self._good += 1
            if verdict.misfit is not None:
                self._report.let_misfit(verdict.name)
            self._report.pass_on([verdict.name])
            self._leaving.end(ToolCallEnded())
        else:
            self._pass_on(verdict)
        if not self._rules.parallel:
            self.stop, self.winds_down = "one call was asked for", True

    def _pass_on(self, call: Accepted) -> None:
        """A whole call leaves, or is held with the others or on suspicion."""
        events = (ToolCallStarted(call.call_id, call.name), ToolCallArguments(call.arguments), ToolCallEnded())
        if call.misfit is not None:
            # Behind a call that has left nothing is asked for once more: that call would come twice.
            if not (self._rules.final or self._release.hold is Hold.ANSWERED):
                self._misfits.append(call.misfit)
                self._good += 1
                self._leave(self._release.meet(Cue.MISFIT, events))
                return
            self._report.let_misfit(call.name)
        # Behind a call that leaves anyway this one repeats nothing any worse, and holding it would hold both.
        if (call.repeated or call.adds_nothing) and not (self._rules.may_repeat or self._good):
            self._repeated = call.name if call.repeated else self._repeated
            self._adds_nothing = True
            self._leave(self._release.meet(Cue.REPEAT, events))
            return
        self._good += 1
        self._leave(self._release.meet(Cue.JOINT_CALL if self._gate.keeps_calls_together else Cue.CALL, events))

    def _refuse(self, why: Refusal | Doubt, call: CallCompleted, raw: str) -> None:
        """A call that may not leave: a quotation is text, as is JSON without any notation of ours."""
        # The client's own word for it.
        tool = self._gate.registry.match(call.name)
        name = f"the tool '{tool.name}'" if tool else "a tool"
        if why is Refusal.QUOTED or not is_markup(call.raw) or self._gate.is_quoted_text(call.raw):
            if why is Refusal.QUOTED or (isinstance(why, Refusal) and is_markup(call.raw)):
                self._report.warn(QUOTED.format(tool=name))
            if is_markup(call.raw):
                self._report.show_markup("quotation")
            self._said.show_block(raw)
        else:
            self._said.take_out(raw, TAKEN_OUT[why.value].format(tool=name))

    def _break(self, reason: str, *, cut: bool) -> None:
        """A call that was leaving live is none: what has left cannot be taken back, so the turn must fail."""
        self._leaving.end(ToolCallEnded(complete=False))
        self.stop = reason
        # Where the answer was cut, the client knows already why the call has no end.
        if not cut:
            self._broken = reason

    def _leave(self, events: Sequence[TurnEvent]) -> None:
        """What a cue has set free, or let through."""
        self._out += events
        self._report.pass_on(names_of_calls(events))
