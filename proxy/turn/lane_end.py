"""Whether the conversation can go on at the backend from the answer: settled once, when it is known what came of it."""

from __future__ import annotations

from collections.abc import Sequence

from ..contracts import BackendEvent, Prompt, TurnEvent, TurnFailed, TurnFinished
from .given import Given
from .report import TurnReport


class LaneEnd:
    """`begin` it with each prompt, and show it what the model wrote and what leaves, as `Given`."""

    def __init__(self, report: TurnReport) -> None:
        self._report = report
        self._given = Given()
        self._prompt: Prompt | None = None
        self._kept = False

    def begin(self, prompt: Prompt) -> None:
        self._prompt, self._kept = prompt, False

    def hear(self, batch: Sequence[BackendEvent]) -> None:
        # What was given is of interest only where the backend could go on from it. Asked for each delta.
        self._kept = self._prompt is not None and self._prompt.continuation.resume is not None
        if self._kept:
            self._given.hear(batch)

    def note(self, events: Sequence[TurnEvent]) -> None:
        """The turn's last event settles it."""
        if self._kept:
            self._given.note(events)
        match events[-1]:
            case TurnFinished(_, incomplete):
                self.settle(self._report.difference or incomplete or self._rewritten())
            case TurnFailed():
                self.settle("failed")
            case _:
                pass

    def _rewritten(self) -> str | None:
        if self._report.told_empty and self._given.wrote_nothing:
            # A sentence of ours stands in the client's history where the model wrote nothing: that misleads nobody.
            return None
        prompt = self._prompt if self._kept else None
        return "rewritten" if prompt and self._given.rewritten(held=prompt.calls_held) else None

    def settle(self, spoilt: str | None) -> None:
        """`spoilt`: why it cannot. Only the first call counts."""
        prompt, self._prompt = self._prompt, None
        if prompt is not None:
            self._report.conversation.go_on(prompt.continuation.lane, spoilt)
            goes_on = spoilt is None and prompt.continuation.resume is not None
            prompt.continuation.settle(self._given.meaning() if goes_on else None)
