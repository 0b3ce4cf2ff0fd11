"""What a call is worth, by the key that it carries: the table of docs/reference/reliability.md, "The call key".

A call carries the key. A call without it is asked for once more. If a model is known never to write the key, a call
that it copies from the request is no call.
"""

from __future__ import annotations

from functools import cached_property

from prompts import PastCall, SentWords, ToolResult, canonical, essence, holds_word, texts_of, untrusted_strings

from .key_habits import KeyHabit
from .plan import Plan
from .read_call import ReadCall, Standing
from .reason import Fate, Reason, Ruling
from .turn_key import Carried, KeyMode

# Letters and digits of a result by which it is known again, and characters that hold so many.
_LETTERS_KNOWN, _RESULT_READ = 40, 1024


class KeyRule:
    """The rule for the calls of one turn."""

    def __init__(self, plan: Plan) -> None:
        self._request = plan.request
        self._key = plan.key
        # Then the call that the user put into the prompt is meant.
        self._demanded = plan.demands
        # A call of the first answer came without the key, and was no quotation.
        self._lacked = False

    @cached_property
    def sent(self) -> SentWords:
        return SentWords(self._request.transcript)

    def judge(self, call: ReadCall, at: Standing) -> Ruling | None:
        """What becomes of it if it may not be passed on as a call, None if it may. Learns from it."""
        if call.is_held(at):
            return None
        reason = self._reason(call, at)
        # Whoever requires the key does not ask for it.
        asks = at.may_ask and not (reason is Reason.NO_KEY and self._key.mode is KeyMode.REQUIRED)
        self._learn(call, at, reason, asks=asks)
        if reason is None:
            return None
        return Ruling(Fate.TEXT if reason is Reason.QUOTED else Fate.AGAIN if asks else Fate.GONE, reason, call.name)

    def _reason(self, call: ReadCall, at: Standing) -> Reason | None:
        match call.carried:
            case Carried.RIGHT:
                return self._with_key(call, at)
            case Carried.WRONG if self._key.mode is KeyMode.AUTO and (self._demanded or not at.quoted):
                # The block was copied as it is, or the key was copied wrong. Where a call is shown, it is made up.
                is_copied = self._is_copied_key(call) and self.is_copied(call)
                return Reason.QUOTED if is_copied else Reason.WRONG_KEY
            case _:
                return self._without_key(call, at)

    def _with_key(self, call: ReadCall, at: Standing) -> Reason | None:
        if at.quoted and self.results_of(call) is not None:
            return Reason.QUOTED
        # Models imitate the key of the calls that they were shown.
        if self.sent.quote_in_outputs(call.words):
            if at.may_ask:
                return Reason.IN_OUTPUT
            return None if self._demanded else Reason.QUOTED
        # JSON is not our notation: a plan in an output may be what the user asked to carry out.
        return Reason.IN_OUTPUT if at.may_ask and self._is_planned(call) else None

    def _without_key(self, call: ReadCall, at: Standing) -> Reason | None:
        # Where a call is demanded there is nothing to explain.
        quoted = at.quoted and not self._demanded
        match self._key.mode, self._key.habit:
            case KeyMode.REQUIRED, _:
                return Reason.QUOTED if quoted or self.is_copied(call) else Reason.NO_KEY
            case _, KeyHabit.NEVER:
                return Reason.QUOTED if quoted or self.is_copied(call) else None
            case _, KeyHabit.WRITES if quoted:
                return Reason.QUOTED
            case _ if at.may_ask:
                return Reason.NO_KEY
            case _ if self._demanded:
                return Reason.QUOTED if self.is_copied(call) else None
            case _ if at.behind_keyed and not quoted:
                return Reason.NO_KEY if self.is_copied(call) else None
            case _, KeyHabit.WRITES:
                return Reason.NO_KEY
            case _:
                return Reason.QUOTED if quoted or self._is_from_outputs(call) else None

    def _learn(self, call: ReadCall, at: Standing, reason: Reason | None, *, asks: bool) -> None:
        """What this call shows of its model."""
        match call.carried:
            case Carried.RIGHT if at.attempt.is_first and reason is None:
                self._key.note_key()
            case Carried.NOTHING if at.attempt.is_first and asks and reason is Reason.NO_KEY:
                self._lacked = self._lacked or self._is_own(call, at)
            case Carried.NOTHING if self._lacked and not at.attempt.is_first and self._is_own(call, at):
                self._key.note_lack()
            case _:
                pass

    def results_of(self, call: ReadCall) -> frozenset[str] | None:
        """The beginnings of the results that equal calls of the conversation have got; None if there are none."""
        same = {*map(canonical, call.forms)}
        # Most calls of a tool differ in their length, and need not be read.
        sizes = {len(essence(form)) for form in call.forms}
        results = [
            result
            for made, result in self._answered
            if made.name == call.name and len(essence(made.arguments)) in sizes and canonical(made.arguments) in same
        ]
        begins = {essence(result[:_RESULT_READ])[:_LETTERS_KNOWN] for result in results}
        return frozenset(filter(None, begins)) if results else None

    def was_answered(self, name: str) -> bool:
        """Whether a call of the tool has got its result."""
        return any(made.name == name for made, _ in self._answered)

    @cached_property
    def _answered(self) -> list[tuple[PastCall, str]]:
        """The calls of the conversation with their results."""
        entries = self._request.transcript.entries
        results = {entry.call_id: "\n".join(texts_of([entry])) for entry in entries if isinstance(entry, ToolResult)}
        calls = (entry for entry in entries if isinstance(entry, PastCall))
        return [(call, results[call.call_id]) for call in calls if call.call_id in results]

    def is_copied(self, call: ReadCall) -> bool:
        """Whether the words of a call without the key stand in the request."""
        return self._stands_in_request(call, demanded=self._demanded)

    def _is_own(self, call: ReadCall, at: Standing) -> bool:
        """Whether nothing says that a call without the key is shown or copied, whatever the request demands."""
        return not (at.quoted or self._stands_in_request(call, demanded=False))

    def _stands_in_request(self, call: ReadCall, *, demanded: bool) -> bool:
        if call.without_tags:
            return self.sent.quote_json(_json_of(call.call.raw), call.words, demanded=demanded)
        return self.sent.quote(call.words, demanded=demanded)

    def _is_planned(self, call: ReadCall) -> bool:
        """Whether it stands in new outputs as JSON without tags, and was not made before: errors name such calls."""
        return self.sent.quote_json_in_outputs(call.names, call.arguments) and self.results_of(call) is None

    def _is_from_outputs(self, call: ReadCall) -> bool:
        # JSON without tags is known by all of it, wherever it stands, so there is no need to be as careful.
        return self.is_copied(call) if call.without_tags else self.sent.quote_in_outputs(call.words)

    def _is_copied_key(self, call: ReadCall) -> bool:
        """Whether its key stands in the request, as the whole block may. Any other is ours, copied wrong."""
        sent = [*untrusted_strings(self._request.transcript, self._request.registry), *self._request.also_shown]
        return holds_word(self._key.written(call.call.extra).casefold(), sent)


def _json_of(raw: str) -> str:
    """The object without what the answer put round it, as a fence: that need not stand in the request."""
    return raw[raw.find("{") : raw.rfind("}") + 1]
