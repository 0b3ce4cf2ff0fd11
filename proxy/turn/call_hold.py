"""What the calls of one turn are held to by its backend."""

from __future__ import annotations

from ..contracts import TextBackend
from .call_schemas import HoldCalls, Unheld, UnheldError, call_schema, calls_schema
from .plan import Plan
from .report import TurnReport


class CallHold:
    """Schemas are JSON text; None: nothing is held."""

    def __init__(self, plan: Plan, backend: TextBackend, report: TurnReport) -> None:
        self._plan = plan
        self._backend = backend
        self._report = report
        self._refused = False

    def answer_schema(self, *, to_call: bool, again: bool) -> str | None:
        """For an answer that has to be calls: one is demanded, or the model wants `to_call`.

        A backend that keeps conversations goes on behind such an answer with such answers alone, since its notation is
        not the prompt's. There it is for strict tools, and for when the model is asked `again`.
        """
        if self._refused or not (self._plan.demands or to_call) or self._plan.options.held_calls.mode is HoldCalls.OFF:
            return None
        if self._backend.keeps_conversations and not (again or any(tool.strict for tool in self._plan.offered)):
            return None
        try:
            schema = calls_schema(tuple(self._plan.offered), parallel=self._plan.request.parallel)
        except UnheldError as error:
            why = error.why
        else:
            refused = self._plan.options.held_calls.was_refused(self._plan.request.model, schema)
            if not refused and self._backend.holds(schema):
                self._report.held = True
                return schema
            why = Unheld.REFUSED if refused else Unheld.SUBSET
        self._report.held = why.value
        return None

    def call_schema(self) -> str | None:
        """For a call within any other answer."""
        if self._plan.options.held_calls.mode is not HoldCalls.ALL or not len(self._plan.offered):
            return None
        try:
            return call_schema(tuple(self._plan.offered), keyed=self._plan.key.key is not None)
        except UnheldError as error:
            self._report.held = error.why.value
            return None

    def give_up(self, refused: str) -> None:
        """The schema of an answer was refused: no other of this turn is held."""
        self._refused = True
        self._plan.options.held_calls.note_refusal(self._plan.request.model, refused)
        self._report.held = Unheld.REFUSED.value
