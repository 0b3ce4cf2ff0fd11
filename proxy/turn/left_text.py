"""What of an answer's text has left: what a second answer may begin with, or only goes on from."""

from __future__ import annotations

from dataclasses import dataclass

from ..contracts import AnswerMessageEnded, AnswerText, TurnEvent

# Pieces of text by which it is seen whether a second answer begins with it.
_COMPARED = 4096
# Characters. What stands in front of a call and says more than that it comes is an answer of its own.
MAX_PREFACE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What the client has of an answer's text: whether any (`shown`), the `beginning` of its first message, and all of
    it where that is no more than some words in front of calls (`preface`).
    """

    shown: bool = False
    beginning: str = ""
    preface: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """The preface, by lines."""
        return tuple(filter(None, map(str.strip, self.preface.splitlines())))


class LeftText:
    """Tell it of what leaves, and of each block that does not leave as text."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._is_one_message = True
        self._has_block = False
        self.is_answer = False
        """It says more than that a call comes."""

    def note(self, event: TurnEvent) -> None:
        if isinstance(event, AnswerMessageEnded):
            self._is_one_message = False
        if not isinstance(event, AnswerText):
            return
        if len(self._pieces) < _COMPARED:
            self._pieces.append(event.text)
        if self._has_block and not event.text.isspace():
            self.is_answer = True

    def pass_block(self) -> None:
        self._has_block = True

    @property
    def said(self) -> Said:
        text = "".join(self._pieces)
        is_preface = self._has_block and not self.is_answer and len(text) <= MAX_PREFACE
        compares = self._is_one_message and len(self._pieces) < _COMPARED
        return Said(shown=bool(text), beginning=text if compares else "", preface=text if is_preface else "")
