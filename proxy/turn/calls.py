"""Which calls may leave, and as what. Names are the registry's business, quotations the guard's.

    the key ------ stands in a tool output that is new ---> asked for once more --again--> text
      |                                                     (models can imitate the key of the calls they are shown)
      |----------- stands there as JSON without tags -----> asked for once more --again--> a call
      |----------- came for another call that was asked for, and is a quotation ----------> text
      '----------- else -----------------------------------------------------------------> a call
    another key -- that came along with a quotation --------------------------------------> text
      '---------------------------------------------------> asked for once more --again--> taken out
    no key ------- nothing in the request looks like it ---------------------------------> a call
      |----------- the guard knows it as a quotation ------------------------------------> text
      |----------- the model never writes the key ---------------------------------------> a call
      '--------------------------------> asked for once more --again, has written it before--> taken out
                                                            '--again, never has---------> a call

Where the key is required all blocks without it are taken out; where there is none the guard alone decides. What would
be taken out and stands in the request just so is a quotation, and text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from parser import (
    CallCompleted,
    CallStarted,
    Doubtful,
    Tier,
    ToolRegistry,
    fit,
    read_parameter_types,
)
from prompts import (
    Grounds,
    PastCall,
    QuoteGuard,
    canonical,
    holds_word,
    looping_calls,
    unescape_json,
    untrusted_strings,
)

from ..contracts import TurnRequest
from ..ids import CALL_ID
from .call_key import Carried, KeyHabit, KeyMode, TurnKey
from .masking import masked
from .strictness import Misfit, ToolSchemas


class Refusal(Enum):
    """Why a block is not passed on as a call. A quotation goes out as text instead, all others are taken out."""

    UNDECLARED = "undeclared"
    QUOTED = "quoted"
    NO_KEY = "no_key"
    WRONG_KEY = "wrong_key"


class Doubt(Enum):
    """Why a call is asked for once more before it is passed on or refused."""

    NO_KEY = "no_key"
    WRONG_KEY = "wrong_key"
    IN_OUTPUT = "in_output"


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
    that have just come. `misfit`: what is wrong with them, where the tool is not strict.
    """

    call_id: str
    name: str
    arguments: str
    repeated: bool
    coercions: tuple[str, ...] = ()
    misfit: Misfit | None = None
    adds_nothing: bool = False


class CallGate:
    """Judges the calls of one request, of which the tools of `registry` may be called. Knows the ids that are taken.

    `rounds`: so often a call was made and answered that goes round. `demanded`: the request demands a call, so the one
    that the user put into the prompt is meant. `grounds`: those of a call behind results, where it is to be doubted.
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
        rounds: int = 2,
        grounds: Grounds | None = None,
    ) -> None:
        self.registry = registry
        self.declared = request.registry
        """Also the tools that may not be called now: their calls are known, and taken out."""
        self._schemas = schemas
        self._request = request
        self._mint = mint
        self._key = key
        self._demanded = demanded
        self._guard = QuoteGuard.of(request.transcript, request.registry, also=request.also_shown)
        self._looping = looping_calls(request.transcript, rounds)
        self._grounds = grounds or None
        # An id that comes twice would tie a result to two calls, and models repeat those that they were shown.
        self._ids = {entry.call_id for entry in request.transcript.entries if isinstance(entry, PastCall)}
        self._asked_for_key = False
        # Calls that are asked for once more, by a line that tells the key: until one of them comes, it marks no other.
        self._awaited: set[tuple[str, str | None]] = set()

    def judge(
        self, call: CallCompleted, *, before: str, may_ask: bool, held: bool
    ) -> Accepted | Refusal | Doubted | Doubtful | Misfit:
        """`before` is the text in front of the call; `may_ask`: the model can be asked for it once more.
        `held`: its model could write nothing but a call, because the request demands one.
        """
        tool = self.registry.match(call.name)
        wanted = read_parameter_types((tool and tool.parameters) or "")
        call = self._key.found_in(call, wanted.members)
        arguments = unescape_json(call.arguments)
        meant = held and call.tier is Tier.HELD
        suspicion = None if meant else self._suspicion(call, arguments, before, may_ask=may_ask)
        # First, so that a quoted call is shown whatever it is a call of: a note about a tool that nobody offers is text
        # that the user asked to see, and a call of that tool would be taken out.
        if suspicion is Refusal.QUOTED:
            return suspicion
        if tool is None:
            return Refusal.UNDECLARED
        if isinstance(suspicion, Doubt):
            self._asked_for_key = self._asked_for_key or suspicion is Doubt.NO_KEY
            if suspicion is not Doubt.IN_OUTPUT:
                self._awaited.add((tool.name, canonical(arguments)))
            return Doubted(tool.name, suspicion)
        if suspicion is not None:
            return suspicion
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
        return Accepted(self.take_id(call.id), tool.name, coerced.arguments, repeated, coerced.coercions, misfit, idle)

    def _suspicion(self, call: CallCompleted, arguments: str, before: str, *, may_ask: bool) -> Refusal | Doubt | None:
        """Why it may not be meant, as the table above has it."""
        match self._key.carried(call.extra):
            case Carried.RIGHT:
                self._key.learn(KeyHabit.WRITES)
                if self._meet_awaited(call, arguments) and self._is_quotation(call, arguments, before):
                    return Refusal.QUOTED
                if self._guard.stands_in_new_output(call.name, arguments):
                    return Doubt.IN_OUTPUT if may_ask else None if self._demanded else Refusal.QUOTED
                # JSON is not our notation: a plan in a result may be what the user asked to carry out.
                bare = may_ask and self._guard.stands_bare_in_new_output(call.name, arguments)
                return Doubt.IN_OUTPUT if bare else None
            case Carried.WRONG if self._key.mode is KeyMode.AUTO:
                if self._is_copied_key(call) and self._is_quotation(call, arguments, before):
                    return Refusal.QUOTED
                return Doubt.WRONG_KEY if may_ask else Refusal.WRONG_KEY
            case _:
                return self._keyless(call, arguments, before, may_ask=may_ask)

    def _keyless(self, call: CallCompleted, arguments: str, before: str, *, may_ask: bool) -> Refusal | Doubt | None:
        if self._is_quotation(call, arguments, before):
            return Refusal.QUOTED
        match self._key.mode, self._key.habit:
            case KeyMode.OFF, _:
                return None
            case KeyMode.REQUIRED, _:
                return Refusal.NO_KEY
            case _, KeyHabit.NEVER:
                return None
            case _, _ if not (self._guard.is_suspect() or self._guard.stands_bare_in_new_output(call.name, arguments)):
                return None
            case _ if may_ask:
                return Doubt.NO_KEY
            case _, KeyHabit.WRITES:
                return Refusal.NO_KEY
            case _:
                if self._asked_for_key:
                    self._key.learn(KeyHabit.NEVER)
                return None

    def _is_quotation(self, call: CallCompleted, arguments: str, before: str) -> bool:
        """Whether it is one without a look at its key."""
        if self._guard.is_quotation(call.name, arguments, before=before, demanded=self._demanded):
            return True
        bare = call.tier in {Tier.BARE, Tier.HELD}
        return bare and self._guard.quotes_bare(call.raw, before=before, demanded=self._demanded)

    def _is_copied_key(self, call: CallCompleted) -> bool:
        """Whether its key stands in the request, as the whole block may. Any other is ours, copied wrong."""
        sent = [*untrusted_strings(self._request.transcript, self._request.registry), *self._request.also_shown]
        return holds_word(self._key.written(call.extra).casefold(), sent)

    def _meet_awaited(self, call: CallCompleted, arguments: str) -> bool:
        """Notes where this one was asked for. Returns whether another was, and has not come yet."""
        tool = self.registry.match(call.name)
        if tool is not None and (tool.name, canonical(arguments)) in self._awaited:
            self._awaited.clear()
        return bool(self._awaited)

    def may_leave_unfinished(self, call: CallStarted) -> bool:
        """Whether the end of a call that has begun can bring nothing that changes or stops it."""
        # A misfit, a quotation or an escaped tag are seen at the end only, and so is a key behind the name.
        if self._schemas.strict or self._guard.is_suspect() or self._grounds:
            return False
        # So is whether the conversation goes round, and whether a result has it.
        tool = self.registry.match(call.name)
        if tool is None or any(name == tool.name for name, _ in self._looping):
            return False
        if self._guard.may_stand_bare_in_new_output(tool.name):
            return False
        match self._key.carried(call.extra):
            case Carried.RIGHT:
                return True
            case Carried.WRONG:
                return False
            case Carried.NOTHING:
                return self._key.mode is not KeyMode.REQUIRED

    def is_meant(self, call: CallStarted) -> Carried | None:
        """Whether a call that has begun is one whatever comes, and by what: its key, or that nothing can be quoted."""
        match self._key.carried(call.extra):
            case Carried.NOTHING if self._key.mode is not KeyMode.REQUIRED and not self._guard.is_suspect():
                return Carried.NOTHING
            case Carried.RIGHT:
                return Carried.RIGHT
            case _:
                return None

    @property
    def keeps_calls_together(self) -> bool:
        """Whether one call may be the reason to refuse all: some tool is strict, or none is seen before the end."""
        return self._schemas.strict or not self._request.streamed

    def is_quoted_text(self, raw: str) -> bool:
        """Whether a block that cannot be read stands just so in the request."""
        return self._guard.quotes_text(raw)

    def take_id(self, written: str | None) -> str:
        """The id that the model wrote, if it is well-formed, new and without the key, else one of ours."""
        if written is None or written in self._ids or not CALL_ID.fullmatch(self._without_key(written)):
            written = self._mint("call")
        self._ids.add(written)
        return written

    def _without_key(self, text: str) -> str:
        return masked(text, self._key.key)
