"""Text beside calls in an answer that has to be JSON: SDKs parse all text that they get, and raise on any other."""

from __future__ import annotations

from collections.abc import Sequence

from ..contracts import AnswerMessageEnded, AnswerText, ToolCallStarted, TurnEvent
from .json_output import JsonOutput, Unfit
from .outlet import text_of
from .reason import Reason
from .report import Count, TurnReport


class BesideCalls:
    """Shown all events of a turn as they are to leave. Without a call in it, an answer is the verdict's."""

    def __init__(self, output: JsonOutput, report: TurnReport) -> None:
        self._output = output
        self._report = report
        self._called = False

    def fitting(self, events: Sequence[TurnEvent], *, streamed: bool) -> list[TurnEvent]:
        """`events` without text beside calls that is not the JSON asked for.

        `streamed`: what came before the first call is JSON that left while it was written, as far as it came.
        """
        calls = [place for place, event in enumerate(events) if isinstance(event, ToolCallStarted)]
        if not (self._called or calls):
            return [*events]
        first = calls[0] if streamed and not self._called else 0
        self._called = True
        left, beside = events[:first], events[first:]
        text = text_of(beside)
        if not text or not isinstance(self._output.read(text, alone=True), Unfit):
            return [*events]
        if not (text.isspace() or self._report.counts[Count.TAKEN_OUT][Reason.BESIDE_CALLS]):
            self._report.count(Count.TAKEN_OUT, Reason.BESIDE_CALLS)
            self._report.warn("Text beside a call was left out: it is not the JSON that was asked for.")
        return [*left, *(event for event in beside if not isinstance(event, AnswerText | AnswerMessageEnded))]
