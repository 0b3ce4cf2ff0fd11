"""Where in a request a call can be read: in what is new, in what was said before, or in what always stands there.

standing   instructions, system and developer messages, tools: they explain calls, and to call so is no quotation
older      the conversation before the last user message
new        that message and all behind it, texts beside the transcript, and what is whole only across these borders
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from parser import ToolRegistry

from ..conversation import in_call_order
from ..transcript import Guidance, Text, ToolResult, Transcript, UserTurn
from .budget import ReadingBudget
from .copies import rows, untrusted_strings
from .readable import ReadableCalls


class Zones:
    """The parts of a request, each read when it is asked for. `also` are new texts beside the transcript."""

    def __init__(self, transcript: Transcript, registry: ToolRegistry, also: Sequence[str], length: int) -> None:
        said = [entry for entry in transcript.entries if not isinstance(entry, Guidance)]
        messages = [place for place, entry in enumerate(said) if isinstance(entry, UserTurn)]
        # Where nobody has asked anything, all of it is what the model answers to.
        last = messages[-1] if messages else 0
        self._registry = registry
        self._also = tuple(also)
        self._older, self._new = tuple(said[:last]), tuple(said[last:])
        self._guidance = tuple(entry for entry in transcript.entries if isinstance(entry, Guidance))
        self._instructions = transcript.instructions
        # One for all zones: together they are as long as the request.
        self._budget = ReadingBudget(length)

    @cached_property
    def new(self) -> ReadableCalls:
        return self._calls(Transcript(self._new), also=self._also)

    @cached_property
    def message(self) -> ReadableCalls:
        """The last user message."""
        return self._calls(Transcript(tuple(entry for entry in self._new[:1] if isinstance(entry, UserTurn))))

    @cached_property
    def behind_message(self) -> ReadableCalls:
        """What is new but for the last user message."""
        entries = self._new[1:] if self.question is not None else self._new
        return self._calls(Transcript(entries), also=self._also)

    @cached_property
    def results(self) -> ReadableCalls:
        """The tool results behind the last user message, as they were sent and as they are shown."""
        sent, shown = (
            tuple(untrusted_strings(Transcript(tuple(entries)), ToolRegistry()))
            for entries in (
                [entry for entry in self._new if isinstance(entry, ToolResult)],
                [entry for entry in in_call_order(self._new) if isinstance(entry, ToolResult)],
            )
        )
        return ReadableCalls(lambda: list(dict.fromkeys([sent, shown])), self._registry, budget=lambda: self._budget)

    @cached_property
    def older(self) -> ReadableCalls:
        return self._calls(Transcript(self._older))

    @cached_property
    def standing(self) -> ReadableCalls:
        return self._calls(Transcript(self._guidance, self._instructions), tools=self._registry)

    @property
    def question(self) -> str | None:
        """The text of the last user message."""
        match self._new[:1]:
            case [UserTurn(parts)]:
                return "\n".join(part.text for part in parts if isinstance(part, Text))
            case _:
                return None

    def _calls(
        self, transcript: Transcript, *, also: tuple[str, ...] = (), tools: ToolRegistry | None = None
    ) -> ReadableCalls:
        shown = ToolRegistry() if tools is None else tools
        return ReadableCalls(
            lambda: [also, *rows(transcript, shown)],
            self._registry,
            transcript=transcript,
            tools=shown,
            budget=lambda: self._budget,
        )
