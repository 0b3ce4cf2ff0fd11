"""The calls of one answer: which of them leave, as what, and what is known of them in the end.

a call that begins --> leaves while it is written, if nothing later can refuse it
a whole call --its place, once what stands behind it is enough--> the judges --Ruling--> outlet
a broken one --------> what there is of it, text, or taken out
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from parser import CallCompleted, CallMalformed, CallStarted, Tier
from prompts import Place

from ..contracts import ToolCallArguments, ToolCallEnded, ToolCallStarted
from ..schema.coercion import Coerced, Coercion
from .block_note import BlockNote, name_in, safe_name
from .blocks import (
    QUOTED,
    TAKEN_OUT,
    UNTAGGED,
    BegunCall,
    begun_arguments,
    call_in_code,
    is_markup,
    unreadable,
    untagged_call,
)
from .calls import CallGate
from .filters import masked
from .outlet import Outlet
from .plan import Attempt
from .read_call import ReadCall, Standing, Waiting
from .reason import DOUBTS, Fate, Reason, Ruling
from .report import Count, TurnReport
from .shown_text import ShownText
from .turn_key import Carried


class Stop(NamedTuple):
    """Nothing more is wanted: why, if the backend is to be stopped. `winds_down`: nor is more to be expected."""

    reason: str | None
    winds_down: bool = False


class PassedCalls:
    """Tell it of each block. `cut`, with a block: the answer was cut, and it may be in this block.

    `held`: the model could write nothing but calls, because the request demands one.
    """

    def __init__(
        self,
        gate: CallGate,
        attempt: Attempt,
        report: TurnReport,
        outlet: Outlet,
        text: ShownText,
        *,
        held: bool,
    ) -> None:
        self._gate = gate
        self._report = report
        self._outlet = outlet
        self._text = text
        self._begun: BegunCall | None = None
        self.waiting = Waiting()
        """The text behind these calls goes to `hear` first."""
        # Where the next call stands, but for what is asked when it comes.
        self._standing = Standing(attempt=attempt, held=held)
        self.rulings: list[Ruling] = []
        self.lost: list[str] = []
        """What a client is told of blocks that were taken out."""
        self.stop: Stop | None = None

    @property
    def came(self) -> bool:
        """A call came that could be read, good or not."""
        idle = (Reason.REPEATED, Reason.NOTHING_NEW)
        return any(each.is_good or each.reason is Reason.UNDECLARED or each.is_again(*idle) for each in self.rulings)

    def _add(self, ruling: Ruling) -> None:
        """What became of the newest block."""
        self.rulings.append(ruling)
        # Noted once, for each block asks, and an answer may have thousands.
        if ruling.is_good and not self._standing.good:
            self._standing = replace(self._standing, good=True)
        elif ruling.is_again(*DOUBTS) and not self._standing.doubted:
            self._standing = replace(self._standing, doubted=True)

    def start(self, call: CallStarted) -> None:
        plan = self._gate.plan
        # Without its tags a call is known when it is whole, and may be copied JSON.
        if call.bare or (tool := plan.offered.match(call.name)) is None:
            return
        # Once it has begun it can only end or break the turn, so it must be one that nothing later can refuse.
        before = self._text.before
        is_first = not (self.waiting.calls or self._standing.doubted)
        if plan.live and is_first and self._gate.may_leave_unfinished(call, before):
            self._text.flush()
            self._outlet.speak()
            self._outlet.begin_call(call.index, ToolCallStarted(self._gate.take_id(call.id), tool.name))
        elif carried := self._gate.is_certain(call, before):
            self._begun = BegunCall(call.index, tool.name, call.id, carried is Carried.RIGHT)

    def complete(self, call: CallCompleted, *, cut: bool) -> None:
        if cut and call.tier is Tier.BARE:
            # What was cut may be the beginning of more than this call.
            raw, self._begun = call.before + call.raw, None
            reason = "the answer was cut in the middle of it"
            self.fail(CallMalformed(reason, raw, call.index, meant=is_markup(call.raw)), cut=cut)
            return
        self._text.go_on(call.before)
        read = self._gate.read(call)
        showing = None if self._outlet.leaving == call.index else self._gate.showing(read, self._text.before)
        shown = showing.is_shown() if showing else False
        if showing is not None and shown is None:
            self.waiting.calls.append((read, showing))
            self.waiting.cut = cut
        else:
            self._judge(read, quoted=bool(shown), cut=cut)

    def hear(self, text: str) -> str:
        """What follows a call that waits for it. Returns the text that is not needed for that any more."""
        return self.settle() if self.waiting.hear(text) else ""

    def settle(self, *, result: bool = False) -> str:
        """No text follows what waits, but another block, or a `result` that the model made up. Returns as `hear`."""
        waiting, self.waiting = self.waiting, Waiting()
        for call, showing in waiting.calls:
            # A call that has its result is shown with it.
            shown = bool(showing.is_shown(waiting.behind, ended=True)) or (result and showing.results is not None)
            self._judge(call, quoted=shown, cut=waiting.cut)
        self.close(waiting.closer)
        return waiting.behind

    def close(self, closer: str) -> None:
        """A second close tag came behind a call: it goes the way of that call."""
        if self.waiting.calls:
            self.waiting.closer += closer
        elif closer and self._text.block_is_text:
            self._text.show_block(closer)
        elif closer:
            self._report.conversation.rewritten = True

    def finish(self) -> None:
        """The answer is over, and its stream did not fail."""
        if not any(each.fate is Fate.REFUSE for each in self.rulings):
            self._outlet.end()

    def look_for_text(self, text: str) -> None:
        """Tells of a call that is text to the parser as well, in the beginning of an answer that has no other."""
        offered = self._gate.plan.offered
        if self.rulings or not text:
            return
        if (shown := call_in_code(text, offered)) is not None:
            tool, fenced = shown
            reason, warning = Reason.QUOTED, QUOTED.format(tool=f"the tool '{tool}'")
        elif tool := untagged_call(text, offered) or "":
            fenced, reason, warning = False, Reason.UNTAGGED, UNTAGGED.format(tool=tool)
        else:
            return
        ruling = Ruling(Fate.TEXT, reason, tool)
        self._report.note(BlockNote(attempt=self._report.attempt, ruling=ruling, name=tool, fenced=fenced))
        self._report.warn(warning)

    def _masked(self, text: str) -> str:
        return masked(text, self._gate.plan.key.key)

    def _note(self, ruling: Ruling, written: str, block: str, rules: Sequence[str] = ()) -> BlockNote:
        written = safe_name(self._masked(written))
        note = BlockNote(
            attempt=self._report.attempt,
            ruling=ruling,
            name=written if ruling.reason is Reason.UNDECLARED else ruling.name or written,
            written=written,
            problem=self._masked(ruling.problem),
            rules=tuple(rules),
            fenced=self._text.before.count("```") % 2 == 1,
        )
        self._report.note(note, block)
        return note

    def _rule(self, ruling: Ruling, written: str, block: str, rules: Sequence[str] = ()) -> None:
        self._add(ruling)
        self._note(ruling, written, block, rules)

    def _judge(self, read: ReadCall, *, quoted: bool, cut: bool) -> None:
        call = read.call
        # Text before it leaves before it.
        self._text.flush(ends=False)
        self._outlet.speak()
        if self._begun is not None and self._begun.index == call.index:
            # Another one may have begun while this one waited.
            self._begun = None
        if self._standing.doubted:
            # None of the calls of such an answer leaves, or it would come twice.
            self._rule(Ruling(Fate.GONE, Reason.JOINED, read.name), call.name, call.raw)
            self._text.pass_call(call.name, read.raw)
            return
        at = replace(self._standing, quoted=quoted, left=self._outlet.is_over)
        ruling = self._gate.judge(read, at)
        if ruling.reason is Reason.MALFORMED:
            self.fail(CallMalformed(ruling.problem, read.raw, call.index), cut=cut)
        elif isinstance(read.fitted, Coerced) and Fate.CALL in {ruling.fate, ruling.then}:
            self._accept(ruling, read, read.fitted, cut=cut)
        else:
            self._refuse(ruling, read, cut=cut)

    def _accept(self, ruling: Ruling, read: ReadCall, fitted: Coerced, *, cut: bool) -> None:
        """A whole call leaves, or is kept with the others or on suspicion."""
        call, live = read.call, self._outlet.leaving == read.call.index
        if live and Coercion.LIFTED in fitted.coercions:
            self._break("a part of the arguments came when they had ended", cut=cut)
            return
        self._text.flush()
        # What the schema took of arguments that have left as they were written helped nobody,
        # but for a remark beside them.
        taken = [rule for rule in fitted.coercions if not live or rule == Coercion.REMARK]
        rules = (*call.repairs, *taken)
        self._report.count(Count.TIERS, call.tier.value)
        self._report.count(Count.REPAIRED, *rules)
        self._rule(ruling, call.name, call.raw, rules or (() if call.tier is Tier.VALID else (call.tier.value,)))
        if read.carried is Carried.RIGHT:
            self._standing = replace(self._standing, behind_keyed=True)
        if ruling.problem and not ruling.is_again(Reason.ARGUMENTS_MISFIT):
            self._report.let_misfit(ruling.name)
        call_id = None
        if live:
            # Its arguments have left as they were written.
            self._report.calls.append(ruling.name)
            self._outlet.end_call(ToolCallEnded())
        else:
            call_id = self._gate.take_id(call.id)
            events = (ToolCallStarted(call_id, ruling.name), ToolCallArguments(fitted.arguments), ToolCallEnded())
            if ruling.fate is Fate.AGAIN:
                self._outlet.keep(ruling.reason, events)
            else:
                self._outlet.pass_call(events, joined=self._gate.plan.keeps_calls_together)
        # A call that leaves live may have left before its id came.
        named = call.name == ruling.name and call.id in {None, call_id}
        as_written = named and (live or fitted.arguments == read.arguments or {*taken} == {Coercion.LEFT_OUT})
        if not as_written or call.tier is not (Tier.HELD if self._standing.held else Tier.VALID):
            self._report.conversation.rewritten = True
        self._text.pass_call(call.name)
        if not self._gate.plan.request.parallel:
            self.stop = Stop("one call was asked for", winds_down=True)

    def _refuse(self, ruling: Ruling, read: ReadCall, *, cut: bool) -> None:
        """It leaves as no call, at least not now."""
        block, reason = read.call.raw, ruling.reason
        note = self._note(ruling, read.call.name, block)
        if ruling.fate is Fate.AGAIN:
            # Counted by what comes of it.
            self._outlet.keep(reason)
        else:
            self._report.count(Count.REFUSED, reason)
        if self._outlet.leaving == read.call.index:
            self._break(f"the call was refused: {reason}", cut=cut)
            return
        self._add(ruling)
        if ruling.fate is Fate.REFUSE:
            self.stop = Stop(None)
            return
        tool = f"the tool '{ruling.name}'" if ruling.name else "a tool"
        marked, quoted = is_markup(block), reason is Reason.QUOTED
        if reason is Reason.UNDECLARED:
            self._text.pass_call(read.call.name, read.raw)
            self.lost.append(TAKEN_OUT[reason].format(tool=f"'{note.name}'" if note.name else "a tool"))
        elif marked and not (quoted or self._gate.is_quoted_text(block)):
            self._lose(read.raw, TAKEN_OUT[reason].format(tool=tool))
        else:
            # A quotation is text, as is JSON without any notation of ours; all else is taken out.
            if quoted or (marked and ruling.fate is not Fate.AGAIN):
                self._report.warn(QUOTED.format(tool=tool))
            if marked:
                self._report.count(Count.MARKUP, "quotation")
            self._text.show_block(read.raw)

    def fail(self, block: CallMalformed, *, cut: bool) -> None:
        """A block that cannot be read."""
        self._text.go_on(block.before)
        self._text.flush(ends=False)
        self._outlet.speak()
        begun, self._begun = self._begun, None
        # A call that has no key goes behind no other: it would be run as one that is whole.
        if cut and begun is not None and (begun.keyed or not self._standing.good):
            # Cut off, but meant: it leaves as far as it has come, as one whose arguments nobody can read.
            self._rule(Ruling(Fate.CALL, Reason.CUT, begun.name), begun.name, block.raw)
            self._text.flush()
            self._outlet.pass_call([
                ToolCallStarted(self._gate.take_id(begun.id), begun.name),
                ToolCallArguments(self._masked(begun_arguments(block.raw))),
                ToolCallEnded(complete=False),
            ])  # fmt: skip
            return
        name, raw, problem = name_in(self._masked(block.raw)), block.before + block.raw, self._masked(block.reason)
        self._report.count(Count.REFUSED, problem)
        if block.index is not None and block.index == self._outlet.leaving:
            self._note(Ruling(Fate.REFUSE, Reason.CUT if cut else Reason.BROKEN, problem=problem), name, block.raw)
            self._break(f"the call cannot be read: {problem}", cut=cut)
            return
        # One that stands so in the request, or in a quotation, is quoted: asking anew would bring it again.
        quoted = Place(self._text.before).is_quoted or self._gate.is_quoted_text(block.raw)
        if quoted or not block.meant:
            reason = Reason.QUOTED if quoted else Reason.MENTION
            self._rule(Ruling(Fate.TEXT, reason, problem=block.reason), name, block.raw)
            self._report.count(Count.MARKUP, "quotation" if quoted else "mention")
            self._text.show_block(raw)
            return
        good = self._standing.good
        fate = Fate.AGAIN if self._standing.attempt.is_first and not good else Fate.GONE
        self._rule(Ruling(fate, Reason.MALFORMED, problem=block.reason), name, block.raw)
        if not good:
            self._outlet.keep(Reason.MALFORMED)
        self._lose(raw, unreadable(name))

    def take_out_half(self, raw: str) -> None:
        """The beginning of a block, in which the answer was cut."""
        self._rule(Ruling(Fate.GONE, Reason.CUT), "", raw)
        self._lose(raw, unreadable(""))

    def _lose(self, raw: str, sentence: str) -> None:
        """A block goes, and the client is told so in a `sentence`."""
        if self._text.take_out(raw):
            self._report.count(Count.TAKEN_OUT, Reason.BLOCK)
            self.lost.append(sentence)

    def _break(self, reason: str, *, cut: bool) -> None:
        """A call that was leaving live is none: what has left cannot be taken back, so the turn must fail."""
        self._outlet.end_call(ToolCallEnded(complete=False))
        self.stop = Stop(reason)
        # Where the answer was cut, the client knows already why the call has no end.
        self._add(Ruling(Fate.REFUSE, Reason.CUT if cut else Reason.BROKEN, problem=reason))
