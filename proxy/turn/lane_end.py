"""Whether the conversation can go on at the backend from this answer: decided once, when the answer is settled."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from parser import ToolRegistry
from prompts import AssistantText, PastCall, meanings_of_answer, unescape

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
from .outlet import text_of
from .report import TurnReport

# Of a turn's events those that a client shows, or acts on.
_SEEN = (AnswerText, ToolCallStarted)
_SHOWN = re.compile(r"<tool_call>\s*+[\[{]")


def entries_of(events: Iterable[TurnEvent]) -> Iterator[AssistantText | PastCall]:
    """The entries that a client will send back with the conversation, from all events of a turn as they left."""
    text: list[str] = []
    arguments: list[str] = []
    call: ToolCallStarted | None = None
    # What is open ends where the next begins, and at the end.
    for event in (*events, AnswerMessageEnded()):
        match event:
            case AnswerText(piece):
                text.append(piece)
            case ToolCallArguments(piece):
                arguments.append(piece)
            case ToolCallStarted() | AnswerMessageEnded():
                if call is not None:
                    yield PastCall(call.call_id, call.name, "".join(arguments))
                if text:
                    yield AssistantText("".join(text))
                call = event if isinstance(event, ToolCallStarted) else None
                text, arguments = [], []
            case _:
                pass


class LaneEnd:
    """`begin` it with each prompt, and show it what leaves."""

    def __init__(self, report: TurnReport, tools: ToolRegistry) -> None:
        self._report, self._tools = report, tools
        self._given: list[TurnEvent] = []
        self._prompt: Prompt | None = None
        self.shown = False
        """Anything left that a client shows."""

    def begin(self, prompt: Prompt) -> None:
        self._prompt = prompt

    def note(self, events: Sequence[TurnEvent], said: Callable[[], str | None]) -> None:
        """The turn's last event settles it. `said` gives the text between the blocks, as it came, or None if more did;
        it is not kept, for it may hold the turn.
        """
        self.shown = self.shown or any(isinstance(event, _SEEN) for event in events)
        # What was given is of interest only where the backend could go on from it.
        if self._prompt is not None and self._prompt.continuation.resume is not None:
            self._given += events
        if isinstance(end := events[-1], TurnFinished):
            self.settle(self._report.difference or end.incomplete or self._rewritten(said))
        elif isinstance(end, TurnFailed):
            self.settle("failed")

    def _rewritten(self, said: Callable[[], str | None]) -> str | None:
        """Whether the client got anything else than what the model wrote, white space and escapes aside."""
        if self._prompt is None or self._prompt.continuation.resume is None:
            return None
        if (wrote := said()) is None:
            return "rewritten"
        if self._report.answered_nothing == "sentence" and not wrote.strip():
            # A sentence of ours stands in the client's history where the model wrote nothing: that misleads nobody.
            return None
        # The tags of a call that is shown are escaped where the client sends it back.
        given, meant = text_of(self._given), unescape(wrote)
        # Most are the same to the letter, which is seen at a glance.
        is_same = given == meant or "".join(given.split()) == "".join(meant.split())
        return None if is_same and not (_SHOWN.search(wrote) or self._report.conversation.rewritten) else "rewritten"

    def settle(self, spoilt: str | None) -> None:
        """`spoilt`: why it cannot. Only the first call counts."""
        prompt, self._prompt = self._prompt, None
        if prompt is not None:
            # What came first stays.
            conversation = self._report.conversation
            conversation.lane = conversation.lane or prompt.continuation.lane
            conversation.spoilt = conversation.spoilt or spoilt
            goes_on = spoilt is None and prompt.continuation.resume is not None
            prompt.continuation.settle(meanings_of_answer([*entries_of(self._given)], self._tools) if goes_on else None)
