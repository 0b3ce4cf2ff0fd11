"""What a call is worth, by the key that it carries: the table of docs/reference/reliability.md, "The call key".

a call carries the key; one that does not is asked for once more; a model that never writes it is known as such,
and then what it copies from the request is no call
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from parser import CallCompleted, Tier
from prompts import CallWords, PastCall, SentWords, Text, ToolResult, canonical, essence, holds_word, untrusted_strings

from ..contracts import TurnRequest
from .call_key import Carried, KeyMode, TurnKey
from .key_habits import KeyHabit

# Letters and digits of a result by which it is known again, and characters that hold so many.
_TELLING_RESULT, _RESULT_READ = 40, 1024


class Refusal(Enum):
    """Why a block is not passed on as a call. A quotation goes out as text instead, all others are taken out."""

    UNDECLARED = "undeclared"
    QUOTED = "quoted"
    NO_KEY = "no_key"
    WRONG_KEY = "wrong_key"
    IN_OUTPUT = "in_output"


class Doubt(Enum):
    """Why a call is asked for once more before it is passed on or refused."""

    NO_KEY = "no_key"
    WRONG_KEY = "wrong_key"
    IN_OUTPUT = "in_output"


@dataclass(frozen=True, slots=True)
class KeyedCall:
    """A call that the rule judges, its key where it belongs: the `name` of its tool, and its un-escaped `arguments`.

    `quoted`: it stands where a call is shown. `may_ask`: the model can be asked for it once more. `behind_keyed`: a
    call with the key stands in front of it in the answer.
    """

    call: CallCompleted
    name: str
    arguments: str
    quoted: bool = False
    may_ask: bool = False
    behind_keyed: bool = False

    @property
    def names(self) -> frozenset[str]:
        return frozenset({self.name, self.call.name})

    @property
    def words(self) -> CallWords:
        return CallWords.of(self.names, self.arguments)

    @property
    def without_tags(self) -> bool:
        return self.call.tier in {Tier.BARE, Tier.HELD}


class KeyRule:
    """The rule for the calls of one request. `demanded`: the request demands a call."""

    def __init__(self, request: TurnRequest, key: TurnKey, *, demanded: bool) -> None:
        self._request = request
        self._key = key
        self._demanded = demanded
        self.sent = SentWords(request.transcript)

    def worth(self, call: KeyedCall) -> Refusal | Doubt | None:
        """Why it may not be passed on as a call, None if it may."""
        match self._key.carried(call.call.extra):
            case Carried.RIGHT:
                return self._with_key(call)
            case Carried.WRONG if self._key.mode is KeyMode.AUTO:
                # The block was copied as it is, or the key was copied wrong.
                if self._is_copied_key(call) and self.is_copied(call):
                    return Refusal.QUOTED
                return Doubt.WRONG_KEY if call.may_ask else Refusal.WRONG_KEY
            case _:
                return self._without_key(call)

    def _with_key(self, call: KeyedCall) -> Refusal | Doubt | None:
        if call.quoted and self.results_of(call) is not None:
            return Refusal.QUOTED
        # Models imitate the key of the calls that they were shown.
        if self._is_from_tagged_outputs(call):
            if call.may_ask:
                return Doubt.IN_OUTPUT
            return None if self._demanded else Refusal.QUOTED
        # JSON is not our notation: a plan in an output may be what the user asked to carry out.
        return Doubt.IN_OUTPUT if call.may_ask and self._is_planned(call) else None

    def _without_key(self, call: KeyedCall) -> Refusal | Doubt | None:
        # Where a call is demanded there is nothing to explain.
        quoted = call.quoted and not self._demanded
        match self._key.mode, self._key.habit:
            case KeyMode.REQUIRED, _:
                return Refusal.QUOTED if quoted or self.is_copied(call) else Refusal.NO_KEY
            case _, KeyHabit.NEVER:
                return Refusal.QUOTED if quoted or self.is_copied(call) else None
            case _, KeyHabit.WRITES if quoted:
                return Refusal.QUOTED
            case _ if call.may_ask:
                return Doubt.NO_KEY
            case _ if self._demanded:
                return Refusal.QUOTED if self.is_copied(call) else None
            case _ if call.behind_keyed and not quoted:
                return Refusal.NO_KEY if self.is_copied(call) else None
            case _, KeyHabit.WRITES:
                return Refusal.NO_KEY
            case _:
                return Refusal.QUOTED if quoted or self._is_from_outputs(call) else None

    def results_of(self, call: KeyedCall) -> frozenset[str] | None:
        """The beginnings of the results that equal calls of the conversation have got; None if there are none."""
        told = canonical(call.arguments)
        # Most calls of a tool differ in their length, and need not be read.
        size = len(essence(call.arguments))
        results = [
            result
            for made, result in self._answered
            if made.name == call.name and len(essence(made.arguments)) == size and canonical(made.arguments) == told
        ]
        begins = {essence(result[:_RESULT_READ])[:_TELLING_RESULT] for result in results}
        return frozenset(filter(None, begins)) if results else None

    def was_answered(self, name: str) -> bool:
        """Whether a call of the tool has got its result."""
        return any(made.name == name for made, _ in self._answered)

    @cached_property
    def _answered(self) -> list[tuple[PastCall, str]]:
        """The calls of the conversation with their results."""
        entries = self._request.transcript.entries
        results = {entry.call_id: _text_of(entry) for entry in entries if isinstance(entry, ToolResult)}
        calls = (entry for entry in entries if isinstance(entry, PastCall))
        return [(call, results[call.call_id]) for call in calls if call.call_id in results]

    def is_copied(self, call: KeyedCall) -> bool:
        """Whether the words of a call without the key stand in the request."""
        return self._stands_in_request(call, demanded=self._demanded)

    def is_own(self, call: KeyedCall) -> bool:
        """Whether nothing says that a call without the key is shown or copied, whatever the request demands."""
        return not (call.quoted or self._stands_in_request(call, demanded=False))

    def _stands_in_request(self, call: KeyedCall, *, demanded: bool) -> bool:
        if call.without_tags:
            return self.sent.quote_json(_json_of(call.call.raw), call.words, demanded=demanded)
        return self.sent.quote(call.words, demanded=demanded)

    def _is_planned(self, call: KeyedCall) -> bool:
        """Whether it stands in new outputs as JSON without tags, and was not made before: errors tell such calls."""
        return self.sent.quote_json_in_outputs(call.names, call.arguments) and self.results_of(call) is None

    def _is_from_outputs(self, call: KeyedCall) -> bool:
        # JSON without tags is told by all of it, wherever it stands, so there is no need to be as careful.
        return self.is_copied(call) if call.without_tags else self._is_from_tagged_outputs(call)

    def _is_from_tagged_outputs(self, call: KeyedCall) -> bool:
        return self.sent.outputs_hold_tag and self.sent.quote_in_outputs(call.words)

    def _is_copied_key(self, call: KeyedCall) -> bool:
        """Whether its key stands in the request, as the whole block may. Any other is ours, copied wrong."""
        sent = [*untrusted_strings(self._request.transcript, self._request.registry), *self._request.also_shown]
        return holds_word(self._key.written(call.call.extra).casefold(), sent)


def _text_of(result: ToolResult) -> str:
    return "\n".join(part.text for part in result.parts if isinstance(part, Text))


def _json_of(raw: str) -> str:
    """The object without what the answer put round it, as a fence: that need not stand in the request."""
    return raw[raw.find("{") : raw.rfind("}") + 1]
