"""Which calls may leave, and as what. Names are the registry's business, quotations the guard's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import orjson

from parser import CallCompleted, Doubtful, Tier, ToolRegistry, fit, read_parameter_types
from prompts import PastCall, QuoteGuard, answered_calls, canonical, unescape_json

from ..contracts import TurnRequest
from ..ids import CALL_ID
from .strictness import StrictTools


class Refusal(Enum):
    """Why a block is not passed on as a call. All but `UNDECLARED` go out as text instead."""

    UNDECLARED = "undeclared"
    QUOTED = "quoted"
    NO_KEY = "no_key"


@dataclass(frozen=True, slots=True)
class Misfit:
    """A call of a strict tool whose arguments do not fit, and why."""

    name: str
    problem: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """A call for the client.

    `arguments` are the model's own characters, escaped tags restored, but for the `coercions` that the
    tool's schema took.
    """

    call_id: str
    name: str
    arguments: str
    repeated: bool
    coercions: tuple[str, ...] = ()


class CallGate:
    """Judges the calls of one request. Knows the ids and the calls that are already taken."""

    def __init__(
        self,
        request: TurnRequest,
        registry: ToolRegistry,
        *,
        mint: Callable[[str], str],
        strict: StrictTools,
        key: str | None = None,
    ) -> None:
        self.registry = registry
        self._strict = strict
        self._mint = mint
        self._key = key
        self._guard = QuoteGuard.of(request.transcript, registry)
        self._answered = answered_calls(request.transcript)
        # An id that comes twice would tie a result to two calls, and models repeat those that they were shown.
        self._ids = {entry.call_id for entry in request.transcript.entries if isinstance(entry, PastCall)}

    def judge(self, call: CallCompleted) -> Accepted | Refusal | Misfit | Doubtful:
        arguments = unescape_json(call.arguments)
        # First, so that a quoted call is shown whatever it is a call of: a note about a tool that nobody offers is text
        # that the user asked to see, and a call of that tool would be taken out.
        if self._guard.is_quotation(call.name, arguments) or (
            call.tier is Tier.BARE and self._guard.quotes_bare(call.raw)
        ):
            return Refusal.QUOTED
        tool = self.registry.match(call.name)
        if tool is None:
            return Refusal.UNDECLARED
        # Compared as JSON text: a key that is written as anything but a string is none.
        if self._key is not None and dict(call.extra).get("key") != orjson.dumps(self._key).decode():
            return Refusal.NO_KEY
        # Before the check, for a strict tool is called rightly when its schema says what a "3" is.
        coerced = fit(
            arguments,
            read_parameter_types(tool.parameters or ""),
            beside=[(key, unescape_json(value)) for key, value in call.extra],
            repaired=call.tier is not Tier.VALID,
        )
        if isinstance(coerced, Doubtful):
            return coerced
        if (problem := self._strict.problem(tool.name, coerced.arguments)) is not None:
            return Misfit(tool.name, problem)
        # A call of before was passed on coerced, so it may come again in either form.
        repeated = any((tool.name, canonical(told)) in self._answered for told in {arguments, coerced.arguments})
        return Accepted(self.take_id(call.id), tool.name, coerced.arguments, repeated, coerced.coercions)

    @property
    def may_leave_unfinished(self) -> bool:
        """Whether a call's end can bring nothing that changes or stops it: no key, schema, quotation or escaped tag."""
        return self._key is None and not self._strict.offered and not self._guard.is_suspect()

    @property
    def keeps_calls_together(self) -> bool:
        """Whether one call of an answer may be the reason to refuse all: some tool is strict."""
        return self._strict.offered

    def is_quoted_text(self, raw: str) -> bool:
        """Whether a block that cannot be read stands just so in the request."""
        return self._guard.quotes_text(raw)

    def take_id(self, written: str | None) -> str:
        """The id that the model wrote, if it is well-formed and new, else one of ours."""
        if written is None or written in self._ids or not CALL_ID.fullmatch(written):
            written = self._mint("call")
        self._ids.add(written)
        return written
