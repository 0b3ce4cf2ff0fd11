"""What of an answer the client was given, as the entries that it will send back with the conversation."""

from __future__ import annotations

from collections.abc import Sequence

from prompts import AssistantText, PastCall, meaning_of_answer

from ..contracts import AnswerMessageEnded, AnswerText, ToolCallArguments, ToolCallStarted, TurnEvent


class Given:
    """Shown all events of a turn as they leave."""

    __slots__ = ("_calls", "_entries", "_text")

    def __init__(self) -> None:
        self._entries: list[AssistantText | ToolCallStarted] = []
        self._text: list[str] = []
        self._calls: dict[str, list[str]] = {}

    def note(self, events: Sequence[TurnEvent]) -> None:
        for event in events:
            match event:
                case AnswerText(text):
                    self._text.append(text)
                case ToolCallArguments(text):
                    self._calls[next(reversed(self._calls))].append(text)
                case ToolCallStarted(call_id):
                    self._end_text()
                    self._entries.append(event)
                    self._calls[call_id] = []
                case AnswerMessageEnded():
                    self._end_text()
                case _:
                    pass

    def _end_text(self) -> None:
        if self._text:
            self._entries.append(AssistantText("".join(self._text)))
            self._text.clear()

    def meaning(self) -> bytes:
        """Of all that was noted, as a conversation would have it."""
        self._end_text()
        return meaning_of_answer(
            [
                entry
                if isinstance(entry, AssistantText)
                else PastCall(entry.call_id, entry.name, "".join(self._calls[entry.call_id]))
                for entry in self._entries
            ]
        )
