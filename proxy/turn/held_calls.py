"""Which calls a backend holds its model to: those that a request demands, and others where the owner wants it."""

from __future__ import annotations

from enum import Enum

from cachetools import LRUCache

from parser import ToolRegistry

from ..contracts import TextBackend, TurnRequest
from .call_schemas import Unheld, UnheldError, call_schema, calls_schema
from .report import TurnReport

# Refusals that are remembered: models and schemas are the clients'.
MOST_REFUSALS = 256


class HoldCalls(Enum):
    """`auto`: a demanded call is held where the backend can, as `HeldCalls.schema` says. `all`: any other, too."""

    AUTO = "auto"
    ALL = "all"
    OFF = "off"


class HeldCalls:
    """What of calls is held, and which schemas a model's server has refused; it remembers `most` of those."""

    def __init__(self, mode: HoldCalls = HoldCalls.AUTO, most: int = MOST_REFUSALS) -> None:
        self.mode = mode
        self._refused: LRUCache[tuple[str, str], None] = LRUCache(most)

    def note_refusal(self, model: str, schema: str) -> None:
        if self._refused.maxsize:
            self._refused[model, schema] = None

    def was_refused(self, model: str, schema: str) -> bool:
        return (model, schema) in self._refused


class CallHold:
    """What the calls of one turn are held to by its backend; `demanded`: the request demands one, `keyed`: with a key.

    Schemas are JSON text; None: nothing is held.
    """

    def __init__(
        self,
        held_calls: HeldCalls,
        request: TurnRequest,
        tools: ToolRegistry,
        backend: TextBackend,
        report: TurnReport,
        *,
        demanded: bool,
        keyed: bool,
    ) -> None:
        self._held_calls = held_calls
        self._request = request
        self._tools = tools
        self._backend = backend
        self._report = report
        self._demanded = demanded
        self._keyed = keyed
        self._refused = False

    def answer_schema(self, *, to_call: bool, again: bool) -> str | None:
        """For an answer that has to be calls: one is demanded, or the model wants `to_call`.

        A backend that keeps conversations goes on behind such an answer with such answers alone, since its notation is
        not the prompt's. There it is for strict tools, and for when the model is asked `again`.
        """
        if self._refused or not (self._demanded or to_call) or self._held_calls.mode is HoldCalls.OFF:
            return None
        if self._backend.keeps_conversations and not (again or any(tool.strict for tool in self._tools)):
            return None
        try:
            schema = calls_schema(tuple(self._tools), parallel=self._request.parallel)
        except UnheldError as error:
            why = error.why
        else:
            refused = self._held_calls.was_refused(self._request.model, schema)
            if not refused and self._backend.holds(schema):
                self._report.hold_calls()
                return schema
            why = Unheld.REFUSED if refused else Unheld.SUBSET
        self._report.unhold_calls(why.value)
        return None

    def call_schema(self) -> str | None:
        """For a call within any other answer."""
        if self._held_calls.mode is not HoldCalls.ALL or not len(self._tools):
            return None
        try:
            return call_schema(tuple(self._tools), keyed=self._keyed)
        except UnheldError as error:
            self._report.unhold_calls(error.why.value)
            return None

    def give_up(self, refused: str) -> None:
        """The schema of an answer was refused: no other of this turn is held."""
        self._refused = True
        self._held_calls.note_refusal(self._request.model, refused)
        self._report.unhold_calls(Unheld.REFUSED.value)
