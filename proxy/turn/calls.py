"""Which calls may leave: those of tools on offer that are meant, fit their schemas, and do not go round."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from parser import CallCompleted, CallStarted
from prompts import Grounds, ModelRule, PastCall, Place, canonical, looping_calls

from ..ids import CALL_ID
from ..schema.coercion import Doubtful, read_parameter_types
from .filters import masked
from .key_habits import KeyHabit
from .key_rule import KeyRule
from .plan import Plan
from .read_call import ReadCall, Showing, Standing
from .reason import Fate, Reason, Ruling
from .turn_key import Carried, KeyMode


class CallGate:
    """Judges the calls of one turn, of which `mint` makes the ids."""

    def __init__(self, plan: Plan, mint: Callable[[str], str]) -> None:
        self.plan = plan
        self._mint = mint
        self._key = plan.key
        self._rule = KeyRule(plan)
        self._grounds = Grounds(plan.request.transcript) if plan.doubts(ModelRule.NOTHING_NEW) else None

    # Both are looked for when a call comes, for that takes a look at all of the conversation.
    @cached_property
    def _taken_ids(self) -> set[str]:
        return {entry.call_id for entry in self.plan.request.transcript.entries if isinstance(entry, PastCall)}

    @cached_property
    def _looping(self) -> frozenset[tuple[str, str]]:
        return looping_calls(self.plan.request.transcript)

    def take_id(self, written: str | None) -> str:
        """The id that the model wrote, if it is well-formed, new and without the key, else one of ours. One that comes
        twice ties a result to two calls, and models repeat those that they saw.
        """
        if written is None or written in self._taken_ids or not CALL_ID.fullmatch(masked(written, self._key.key)):
            written = self._mint("call")
        self._taken_ids.add(written)
        return written

    def read(self, call: CallCompleted) -> ReadCall:
        tool = self.plan.offered.match(call.name)
        call = self._key.found_in(call, read_parameter_types((tool and tool.parameters) or "").members)
        return ReadCall(call, tool, self._key.carried(call.extra), self._key.key, self.plan.schemas)

    def showing(self, call: ReadCall, before: str) -> Showing | None:
        """What will say whether a call behind the text `before` is shown; None where that is no matter."""
        if call.carried is Carried.RIGHT:
            results = self._rule.results_of(call)
            return None if results is None else Showing(Place(before), results)
        return None if call.without_tags else Showing(Place(before))

    def judge(self, call: ReadCall, at: Standing) -> Ruling:
        """What becomes of it."""
        # The first one that has something to say rules. They are no attribute: what holds its own methods is a cycle,
        # so the request of each turn would be there until somebody looks for cycles.
        for judge in (self._undeclared, self._rule.judge, self._unreadable, self._misfit, self._idle):
            if ruling := judge(call, at):
                return ruling
        return Ruling(Fate.CALL, Reason.ARGUMENTS_MISFIT if call.problem else Reason.GOOD, call.name, call.problem)

    def _undeclared(self, call: ReadCall, at: Standing) -> Ruling | None:
        if call.tool is not None:
            return None
        # Asked for once more it would be none either. But one that is only shown is text that the user asked to see.
        shown = at.quoted or (call.carried is not Carried.RIGHT and self._rule.is_copied(call))
        if shown and not call.is_held(at):
            return Ruling(Fate.TEXT, Reason.QUOTED)
        return Ruling(Fate.GONE, Reason.UNDECLARED, call.name)

    def _unreadable(self, call: ReadCall, at: Standing) -> Ruling | None:
        if isinstance(call.fitted, Doubtful):
            return Ruling(Fate.AGAIN, Reason.MALFORMED, call.name, call.fitted.reason)
        return None

    def _misfit(self, call: ReadCall, at: Standing) -> Ruling | None:
        if call.problem and call.tool and call.tool.strict:
            return Ruling(Fate.REFUSE, Reason.ARGUMENTS_MISFIT, call.name, call.problem)
        # A tool that is not strict says itself what it cannot use.
        asks = call.problem and at.attempt.is_first and not at.left
        return Ruling(Fate.AGAIN, Reason.ARGUMENTS_MISFIT, call.name, call.problem, then=Fate.CALL) if asks else None

    def _idle(self, call: ReadCall, at: Standing) -> Ruling | None:
        """A call that gets the conversation no further."""
        # Behind a call that leaves anyway this one repeats nothing any worse, and to keep it would keep both.
        if at.attempt.may_repeat or at.good or at.left or call.tool is None or isinstance(call.fitted, Doubtful):
            return None
        if self._looping and any((call.name, canonical(form)) in self._looping for form in call.forms):
            reason = Reason.REPEATED
        elif self._grounds and self._grounds.adds_nothing(call.tool, call.fitted.arguments):
            reason = Reason.NOTHING_NEW
        else:
            return None
        return Ruling(Fate.AGAIN, reason, call.name, call.problem, then=Fate.CALL)

    def may_leave_unfinished(self, call: CallStarted, before: str) -> bool:
        """Whether nothing that is still to come can change or stop a call that has begun behind the text `before`."""
        # A misfit is seen at the end only, and so is a key behind the name.
        if self.plan.schemas.strict or self._grounds:
            return False
        # So is whether the conversation goes round, and whether a result has it.
        tool = self.plan.offered.match(call.name)
        if tool is None or any(name == tool.name for name, _ in self._looping):
            return False
        # So is whether it is shown, of a call for which that counts.
        place = Place(before)
        stands_free = not (place.is_quoted or place.is_listed or place.may_be_quoted)
        match self._key.carried(call.extra):
            case Carried.RIGHT if stands_free or not self._rule.was_answered(tool.name):
                sent = self._rule.sent
                return not (sent.outputs.hold_tag or sent.name_in_outputs(tool.name))
            case Carried.NOTHING if stands_free and self._key.mode is not KeyMode.REQUIRED:
                return self._key.habit is KeyHabit.NEVER and not self._rule.sent.hold_tag
            case _:
                return False

    def is_certain(self, call: CallStarted, before: str) -> Carried | None:
        """Whether a call that has begun is one whatever comes, and by what: its key, or that nothing can be quoted."""
        carried = self._key.carried(call.extra)
        keyless = carried is Carried.NOTHING and self._key.mode is not KeyMode.REQUIRED
        free = keyless and not (self._rule.sent.hold_tag or Place(before).is_quoted)
        return carried if free or carried is Carried.RIGHT else None

    def is_quoted_text(self, raw: str) -> bool:
        """Whether a block that leaves as no call stands just so in the request."""
        return self._rule.sent.hold_text(raw)
