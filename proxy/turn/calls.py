"""Which calls may leave, and as what: by their key (`key_rule`), their tool and its schema."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from parser import (
    CallCompleted,
    CallStarted,
    Tier,
    ToolRegistry,
)
from prompts import (
    Grounds,
    PastCall,
    Place,
    canonical,
    looping_calls,
    unescape_json,
)

from ..contracts import TurnRequest
from ..ids import CALL_ID
from .call_key import Carried, KeyMode, TurnKey
from .coercion import Doubtful, fit, read_parameter_types
from .filters import masked
from .key_habits import KeyHabit
from .key_rule import Doubt, KeyedCall, KeyRule, Refusal
from .strictness import Misfit, ToolSchemas
from .waiting_call import Showing


@dataclass(frozen=True, slots=True)
class Doubted:
    """A call that may not be meant."""

    name: str
    doubt: Doubt


@dataclass(frozen=True, slots=True)
class Accepted:
    """A call for the client.

    `arguments` are the model's own characters, escaped tags restored and the call key masked, but for the `coercions`
    that the tool's schema took. `repeated`: the conversation goes round in this very call; it `adds_nothing` to results
    that have just come. `misfit`: what is wrong with them, where the tool is not strict. `keyed`: it carried the key.
    """

    call_id: str
    name: str
    arguments: str
    repeated: bool
    coercions: tuple[str, ...] = ()
    misfit: Misfit | None = None
    adds_nothing: bool = False
    keyed: bool = False


class CallGate:
    """Judges the calls of one request, of which the tools of `registry` may be called. Knows the ids that are taken.

    `demanded`: the request demands a call, so the one that the user put into the prompt is meant. `grounds`: those of a
    call behind results, where it is to be doubted.
    """

    def __init__(
        self,
        request: TurnRequest,
        registry: ToolRegistry,
        *,
        mint: Callable[[str], str],
        schemas: ToolSchemas,
        key: TurnKey,
        demanded: bool = False,
        grounds: Grounds | None = None,
    ) -> None:
        self.registry = registry
        self.declared = request.registry
        """Also the tools that may not be called now: their calls are known, and taken out."""
        self._schemas = schemas
        self._request = request
        self._mint = mint
        self._key = key
        self._rule = KeyRule(request, key, demanded=demanded)
        self._looping = looping_calls(request.transcript)
        self._grounds = grounds or None
        # An id that comes twice would tie a result to two calls, and models repeat those that they were shown.
        self._ids = {entry.call_id for entry in request.transcript.entries if isinstance(entry, PastCall)}
        # A call of the first answer came without the key, and was no quotation.
        self._lacked = False

    def showing(self, call: CallCompleted, before: str) -> Showing | None:
        """What will tell whether a call behind the text `before` is shown; None where that is no matter."""
        read = self._read(call)
        match self._key.carried(read.call.extra):
            case Carried.RIGHT:
                results = self._rule.results_of(read)
                return None if results is None else Showing(Place(before), results)
            case _ if read.without_tags:
                return None
            case _:
                return Showing(Place(before))

    def judge(
        self, call: CallCompleted, *, quoted: bool, may_ask: bool, first: bool, behind_keyed: bool, held: bool
    ) -> Accepted | Refusal | Doubted | Doubtful | Misfit:
        """`quoted`: it stands where a call is shown; `may_ask`: the model can be asked for it once more.

        `first`: it stands in the first answer; `behind_keyed`: in an answer with the key in a call before it. `held`:
        its model could write nothing but a call, because the request demands one.
        """
        read = replace(self._read(call), quoted=quoted, may_ask=may_ask, behind_keyed=behind_keyed)
        call, arguments = read.call, read.arguments
        tool = self.registry.match(call.name)
        meant = held and call.tier is Tier.HELD
        if tool is None:
            # Asked for once more it would be none either. But a note about a tool that nobody offers is text that the
            # user asked to see.
            return Refusal.UNDECLARED if meant or not self._is_shown(read) else Refusal.QUOTED
        ruling = None if meant else self._rule.worth(read)
        if not meant:
            self._learn(read, ruling, first=first)
        if isinstance(ruling, Doubt):
            return Doubted(tool.name, ruling)
        if ruling is not None:
            return ruling
        wanted = read_parameter_types(tool.parameters or "")
        arguments = self._without_key(arguments)
        # Before the check, for a tool is called rightly when its schema says what a "3" is.
        coerced = fit(
            arguments,
            wanted,
            beside=[(key, unescape_json(value)) for key, value in call.extra],
            repaired=call.tier not in {Tier.VALID, Tier.HELD},
        )
        if isinstance(coerced, Doubtful):
            return coerced
        misfit = self._schemas.misfit(tool, coerced.arguments)
        if misfit is not None and misfit.strict:
            return misfit
        # A call of before was passed on coerced, so it may come again in either form.
        repeated = bool(self._looping) and any(
            (tool.name, canonical(told)) in self._looping for told in {arguments, coerced.arguments}
        )
        idle = self._grounds is not None and self._grounds.adds_nothing(tool, coerced.arguments)
        return Accepted(
            self.take_id(call.id),
            tool.name,
            coerced.arguments,
            repeated,
            coerced.coercions,
            misfit,
            idle,
            keyed=self._key.carried(call.extra) is Carried.RIGHT,
        )

    def _read(self, call: CallCompleted) -> KeyedCall:
        tool = self.registry.match(call.name)
        call = self._key.found_in(call, read_parameter_types((tool and tool.parameters) or "").members)
        return KeyedCall(call, tool.name if tool else call.name, unescape_json(call.arguments))

    def _is_shown(self, call: KeyedCall) -> bool:
        """Whether a call that nobody can make is text: where it stands in the request, and not in a sentence alone."""
        return self._key.carried(call.call.extra) is not Carried.RIGHT and self._rule.is_copied(call)

    def _learn(self, call: KeyedCall, ruling: Refusal | Doubt | None, *, first: bool) -> None:
        """What this call shows of its model."""
        match self._key.carried(call.call.extra):
            case Carried.RIGHT if first and ruling is None:
                self._key.note_key()
            case Carried.NOTHING if first and ruling is Doubt.NO_KEY:
                self._lacked = self._lacked or self._rule.is_own(call)
            case Carried.NOTHING if self._lacked and not first and self._rule.is_own(call):
                self._key.note_lack()
            case _:
                pass

    def may_leave_unfinished(self, call: CallStarted, before: str) -> bool:
        """Whether nothing that is still to come can change or stop a call that has begun behind the text `before`."""
        # A misfit is seen at the end only, and so is a key behind the name.
        if self._schemas.strict or self._grounds:
            return False
        # So is whether the conversation goes round, and whether a result has it.
        tool = self.registry.match(call.name)
        if tool is None or any(name == tool.name for name, _ in self._looping):
            return False
        # So is whether it is shown, of a call for which that counts.
        place = Place(before)
        stands_free = not (place.is_quoted or place.is_listed or place.may_be_quoted)
        match self._key.carried(call.extra):
            case Carried.RIGHT if stands_free or not self._rule.was_answered(tool.name):
                sent = self._rule.sent
                return not (sent.outputs_hold_tag or sent.name_in_outputs(tool.name))
            case Carried.NOTHING if stands_free and self._key.mode is not KeyMode.REQUIRED:
                return self._key.habit is KeyHabit.NEVER and not self._rule.sent.hold_tag
            case _:
                return False

    def is_meant(self, call: CallStarted, before: str) -> Carried | None:
        """Whether a call that has begun is one whatever comes, and by what: its key, or that nothing can be quoted."""
        match self._key.carried(call.extra):
            case Carried.RIGHT:
                return Carried.RIGHT
            case Carried.NOTHING if self._key.mode is not KeyMode.REQUIRED:
                return None if self._rule.sent.hold_tag or Place(before).is_quoted else Carried.NOTHING
            case _:
                return None

    @property
    def keeps_calls_together(self) -> bool:
        """Whether one call may be the reason to refuse all: some tool is strict, or none is seen before the end."""
        return self._schemas.strict or not self._request.streamed

    def is_quoted_text(self, raw: str) -> bool:
        """Whether a block that leaves as no call stands just so in the request."""
        return self._rule.sent.hold_text(raw)

    def take_id(self, written: str | None) -> str:
        """The id that the model wrote, if it is well-formed, new and without the key, else one of ours."""
        if written is None or written in self._ids or not CALL_ID.fullmatch(self._without_key(written)):
            written = self._mint("call")
        self._ids.add(written)
        return written

    def _without_key(self, text: str) -> str:
        return masked(text, self._key.key)
