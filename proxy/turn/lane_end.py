"""Whether the conversation can go on at the backend from the answer: settled once, when it is known what came of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from prompts import AssistantText, PastCall, meaning_of_answer, unescape

from ..contracts import (
    AnswerMessageEnded,
    AnswerText,
    Prompt,
    ToolCallArguments,
    ToolCallStarted,
    TurnEvent,
    TurnFailed,
    TurnFinished,
)
from .report import TurnReport

# Of a turn's events those that a client shows, or acts on.
_SEEN = (AnswerText, ToolCallStarted)
_SHOWN = re.compile(r"<tool_call>\s*+[\[{]")


class Given:
    """Shown all events of a turn as they leave: the entries that a client will send back with the conversation."""

    __slots__ = ("_arguments", "_entries", "_text")

    def __init__(self) -> None:
        self._entries: list[AssistantText | PastCall] = []
        self._text: list[str] = []
        self._arguments: list[str] = []

    def note(self, events: Iterable[TurnEvent]) -> None:
        for event in events:
            match event:
                case AnswerText(text):
                    self._text.append(text)
                case ToolCallArguments(text):
                    self._arguments.append(text)
                case ToolCallStarted(call_id, name):
                    self._end_entry()
                    self._entries.append(PastCall(call_id, name, ""))
                case AnswerMessageEnded():
                    self._end_entry()
                case _:
                    pass

    def _end_entry(self) -> None:
        if self._arguments and isinstance(call := self._entries[-1], PastCall):
            self._entries[-1] = PastCall(call.call_id, call.name, "".join(self._arguments))
        if self._text:
            self._entries.append(AssistantText("".join(self._text)))
        self._text, self._arguments = [], []

    def entries(self) -> Sequence[AssistantText | PastCall]:
        self._end_entry()
        return self._entries


class LaneEnd:
    """`begin` it with each prompt, and show it what leaves."""

    def __init__(self, report: TurnReport) -> None:
        self._report = report
        self._given = Given()
        self._prompt: Prompt | None = None
        self.shown = False
        """Anything left that a client shows."""

    def begin(self, prompt: Prompt) -> None:
        self._prompt = prompt

    def note(self, events: Sequence[TurnEvent], said: Callable[[], str | None]) -> None:
        """The turn's last event settles it. `said` tells the text between the blocks, as it came, or None if more did;
        it is not kept, for it may hold the turn.
        """
        self.shown = self.shown or any(isinstance(event, _SEEN) for event in events)
        # What was given is of interest only where the backend could go on from it.
        if self._prompt is not None and self._prompt.continuation.resume is not None:
            self._given.note(events)
        match events[-1]:
            case TurnFinished(_, incomplete):
                self.settle(self._report.difference or incomplete or self._rewritten(said))
            case TurnFailed():
                self.settle("failed")
            case _:
                pass

    def _rewritten(self, told: Callable[[], str | None]) -> str | None:
        """Whether the client got anything else than what the model wrote, white space and escapes aside."""
        if self._prompt is None or self._prompt.continuation.resume is None:
            return None
        if (said := told()) is None:
            return "rewritten"
        if self._report.answered_nothing == "sentence" and not said.strip():
            # A sentence of ours stands in the client's history where the model wrote nothing: that misleads nobody.
            return None
        given = "".join(entry.text for entry in self._given.entries() if isinstance(entry, AssistantText))
        # The tags of a call that is shown are escaped where the client sends it back.
        is_same = "".join(given.split()) == "".join(unescape(said).split()) and not _SHOWN.search(said)
        return None if is_same and not self._report.conversation.rewritten else "rewritten"

    def settle(self, spoilt: str | None) -> None:
        """`spoilt`: why it cannot. Only the first call counts."""
        prompt, self._prompt = self._prompt, None
        if prompt is not None:
            self._report.conversation.go_on(prompt.continuation.lane, spoilt)
            goes_on = spoilt is None and prompt.continuation.resume is not None
            prompt.continuation.settle(meaning_of_answer(self._given.entries()) if goes_on else None)
