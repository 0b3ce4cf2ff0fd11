"""The prompts of one turn, and how the turn goes on if the backend refuses a prompt before it answers.

too long, and the client lets us ----> without the oldest part of the conversation
a schema that it refuses ------------> without that schema: first the one of the calls, else the one of the answer
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from parser import Tool, ToolRegistry
from prompts import (
    Deferred,
    Image,
    Item,
    JsonAnswer,
    OwnLine,
    Part,
    Text,
    answer_now,
    answer_unless_open,
    nothing_said,
    render_turn,
    without_oldest,
    write_held,
)

from ..contracts import Prompt, TextBackend
from ..errors import BackendError
from ..schema.call_schemas import Unheld, UnheldError, call_schema, calls_form, calls_schema
from .held_calls import HoldCalls
from .plan import Again, Plan
from .report import TurnReport

# Prompts that are too long, each at least a quarter shorter than the one before: the last has a tenth of the first.
TRUNCATIONS = 8

# There are backends that never answer an empty input.
_NOTHING_SAID = (Text(nothing_said()),)


class Prompts:
    """Makes the prompts of a turn. Without a `backend` its calls are held to nothing."""

    def __init__(self, plan: Plan, report: TurnReport, backend: TextBackend | None = None) -> None:
        self._plan = plan
        self._report = report
        self._backend = backend
        self._transcript = plan.request.transcript
        self._truncations = 0
        # The backend's service has refused the schema of the calls, or that of the answer.
        self._calls_refused = self._schema_refused = False
        # As it is known when the turn begins.
        self._key_habit = None if plan.key.key is None else plan.key.habit.value
        # Of ours, at the end of the newest prompt.
        self.lines: Sequence[str] = ()

    def prompt(self, again: Again | None = None, *, max_tokens: int | None = None) -> Prompt:
        """For an answer of at most `max_tokens`; asked for `again` with a line that says why as the last.

        A plain one is without any tool, and from the results where they have just come.
        """
        plan, request = self._plan, self._plan.request
        plain = again is not None and again.plain
        held = None if plain else self._held_to(again)
        held_call = None if plain or held else self._held_call()
        # Without the block a model has nothing to imitate a call of.
        registry = ToolRegistry() if plain else plan.offered
        wanted = request.output_format
        rendered = render_turn(
            self._transcript,
            registry,
            request.choice,
            parallel=request.parallel,
            profile=plan.options.profile,
            key=plan.key.key,
            fault=self._last_line(again, held=held is not None),
            json_answer=JsonAnswer(wanted.schema) if wanted else None,
            alone=plain or (again is not None and again.unless_open),
        )
        self.lines = rendered.lines
        # A model that is held to a schema has no way to write a call.
        output = wanted.schema if wanted and not (len(registry) or self._schema_refused) else None
        return Prompt(
            model=request.model,
            developer=rendered.developer,
            parts=Deferred(lambda: rendered.parts if any(map(_shows, rendered.parts)) else _NOTHING_SAID),
            effort=request.effort,
            summary=request.summary,
            output_schema=held or output,
            head=rendered.head,
            items=Deferred(lambda: rendered.items or (Item("user", _NOTHING_SAID, ours=OwnLine.NO_MESSAGE),)),
            owner=request.owner,
            names=request.names,
            sampling=request.sampling,
            max_tokens=max_tokens,
            # In a call's JSON such a string ends nothing.
            stop=() if len(registry) else request.stop,
            tier=request.tier,
            verbosity=request.verbosity,
            call_schema=held_call,
            calls_held=held is not None,
            key_habit=self._key_habit,
            bare_head=rendered.bare_head,
            toolless=again is None and not len(request.registry),
        )

    def _held_to(self, again: Again | None) -> str | None:
        """The schema of an answer that has to be calls: one is demanded, or the model wants to make one.

        A backend that keeps conversations goes on behind such an answer with such answers alone, since its notation is
        not the prompt's. There it is for strict tools, and for when the model is asked `again`.
        """
        plan, options, backend = self._plan, self._plan.options.held_calls, self._backend
        wanted = plan.demands or (again is not None and again.to_call)
        if backend is None or self._calls_refused or not wanted or options.mode is HoldCalls.OFF:
            return None
        if backend.keeps_conversations and not (again or any(tool.strict for tool in plan.offered)):
            return None
        schema = self._sendable(lambda tools: calls_schema(tools, parallel=plan.request.parallel))
        if schema is None:
            return None
        refused = options.was_refused(plan.request.model, schema)
        if refused or not backend.holds(schema):
            self._report.held = (Unheld.REFUSED if refused else Unheld.SUBSET).value
            return None
        self._report.held = True
        return schema

    def _held_call(self) -> str | None:
        """The schema of a call within any other answer."""
        if self._plan.options.held_calls.mode is not HoldCalls.ALL or not self._plan.offers:
            return None
        return self._sendable(lambda tools: call_schema(tools, keyed=self._plan.key.key is not None))

    def _sendable(self, make: Callable[[Sequence[Tool]], str]) -> str | None:
        try:
            return make(tuple(self._plan.offered))
        except UnheldError as error:
            self._report.held = error.why.value
            return None

    def _last_line(self, again: Again | None, *, held: bool) -> str | None:
        match again:
            case None:
                line = None
            case Again(plain=True):
                line = answer_now(self._transcript) or again.line
            case Again(unless_open=True):
                line = answer_unless_open(self._transcript)
            case _:
                line = again.line
        form = write_held(calls_form(parallel=self._plan.request.parallel)) if held else None
        return " ".join(filter(None, [line, form])) or None

    def ease(self, refused: Prompt, error: BackendError) -> bool:
        """Makes the next prompt one that may be taken where this one was refused. False: there is none."""
        match error.code:
            case "context_length_exceeded" if self._plan.request.truncate and self._truncations < TRUNCATIONS:
                shorter = without_oldest(self._transcript)
                if shorter is None:
                    return False
                # Its calls go with their results, and the newest message stays (`truncation`).
                self._report.conversation.truncated += len(self._transcript.entries) - len(shorter.entries)
                self._transcript = shorter
                self._truncations += 1
                return True
            case "invalid_json_schema" if refused.output_schema is not None:
                if refused.calls_held:
                    self._calls_refused = True
                    self._plan.options.held_calls.note_refusal(self._plan.request.model, refused.output_schema)
                    self._report.held = Unheld.REFUSED.value
                else:
                    # The answer is checked by the schema all the same, so nothing is lost but a second answer.
                    self._schema_refused = True
                return True
            case _:
                return False


def _shows(part: Part) -> bool:
    return isinstance(part, Image) or bool(part.text.strip())
