"""The outlet of an answer: what may leave at once, and what is kept back, for which reason.

    THROUGH --a reason to keep it--> KEPT --what its row says--> THROUGH or OVER
       '----------------a good call leaves-----------------------> OVER

Text that has left cannot be taken back, and an answer may have to be asked for anew. So an answer is kept from the
point where that becomes possible. When it is decided, the answer leaves or is dropped. Once a call has left, nothing is
kept any more: if the answer were asked for anew, the call would come twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from msgspec import Struct

from ..contracts import (
    AnswerMessageEnded,
    AnswerText,
    Reasoning,
    ReasoningItemEnded,
    ToolCallArguments,
    ToolCallEnded,
    ToolCallStarted,
    TurnEvent,
)
from .filters import Mask
from .reason import Reason
from .report import TurnReport


class CallRelease(Enum):
    """When a call leaves: once it is whole and checked, or as it is being written."""

    WHOLE = "whole"
    LIVE = "live"


class _Row(NamedTuple):
    """What frees an answer that is kept for a reason."""

    call: bool = True
    """A good call takes along what stands before it."""
    repeats: bool = False
    """But not text: the client has it already."""
    end: bool = False
    """The end of an answer with which nothing is wrong."""


_USUAL = _Row()
_ROWS: Mapping[Reason | None, _Row] = {
    Reason.ARGUMENTS_MISFIT: _Row(call=False),
    Reason.JOINED: _Row(call=False, end=True),
    Reason.SAID: _Row(repeats=True),
}


# Pieces of text by which it is seen whether a second answer begins with it.
_COMPARED = 4096
# Characters. What stands in front of a call and says more than that it comes is an answer of its own.
MAX_PREFACE = 200


def text_of(events: Iterable[TurnEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, AnswerText))


def names_of_calls(events: Iterable[TurnEvent]) -> list[str]:
    return [event.name for event in events if isinstance(event, ToolCallStarted)]


class Said(Struct, frozen=True, kw_only=True):
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
        # How many pieces stand in front of the first block.
        self._before_block: int | None = None
        self.is_answer = False
        """It says more than that a call comes, whatever its text is."""

    def note(self, event: TurnEvent) -> None:
        if isinstance(event, AnswerText):
            if len(self._pieces) < _COMPARED:
                self._pieces.append(event.text)
        elif isinstance(event, AnswerMessageEnded):
            self._is_one_message = False

    def pass_block(self) -> None:
        if self._before_block is None:
            self._before_block = len(self._pieces)

    @property
    def said(self) -> Said:
        text, begun = "".join(self._pieces), self._before_block
        behind = "" if begun is None else "".join(self._pieces[begun:]).strip()
        is_preface = begun is not None and not (self.is_answer or behind) and len(text) <= MAX_PREFACE
        compares = self._is_one_message and len(self._pieces) < _COMPARED
        return Said(shown=bool(text), beginning=text if compares else "", preface=text if is_preface else "")


class Outlet:
    """Put in what is to leave, and take out what may. `reason` is why it is kept, from the beginning or by now.

    A call that is `leaving` goes while it is written, its arguments with `key` masked; reasoning, which is never kept,
    waits for its end: no API has items that lie in one another.
    """

    __slots__ = ("_behind", "_kept", "_mask", "_out", "_report", "is_over", "leaving", "left", "reason")

    def __init__(self, report: TurnReport, reason: Reason | None, key: str | None) -> None:
        self._report = report
        self.reason = reason
        self.is_over = False
        """A call has left, so all does."""
        self._mask = Mask(key)
        self._out: list[TurnEvent] = []
        self._kept: list[TurnEvent] = []
        self._behind: list[TurnEvent] = []
        self.left = LeftText()
        """The text that was let through, but for what stood in front of a call."""
        self.leaving: int | None = None
        """The parser's number of the call that leaves while it is written."""

    @property
    def kept(self) -> tuple[TurnEvent, ...]:
        return tuple(self._kept)

    @property
    def kept_text(self) -> str:
        return text_of(self._kept)

    @property
    def _row(self) -> _Row:
        return _ROWS.get(self.reason, _USUAL)

    def take(self) -> list[TurnEvent]:
        """What has left since the last time."""
        out, self._out = self._out, []
        return out

    def put(self, event: AnswerText | AnswerMessageEnded) -> None:
        if self.reason is None:
            self._out.append(event)
            self.left.note(event)
        # The end of a message of which nothing is here is none.
        elif self._kept or isinstance(event, AnswerText):
            self._kept.append(event)

    def let(self, event: AnswerText) -> None:
        """A piece of the answer itself leaves, whatever is kept."""
        self._out.append(event)
        self.left.note(event)
        self.left.is_answer = True

    def keep(self, reason: Reason, events: Sequence[TurnEvent] = ()) -> None:
        """From here on all is kept, and so are `events`, a call that no other frees.

        The first reason stays the reason, but for one that no call can free.
        """
        outweighs = reason is Reason.ARGUMENTS_MISFIT and self.reason is not Reason.SAID
        if not self.is_over and (self.reason is None or outweighs):
            self.reason = reason
        self._kept += events

    def pass_call(self, events: Sequence[TurnEvent] = (), *, joined: bool = False) -> None:
        """A good call leaves; one that is `joined` with the others of its answer leaves with these."""
        row = self._row
        if row.repeats:
            self._kept.clear()
        self._kept += events
        if joined and row.call and not self.is_over:
            self.reason = Reason.JOINED
        elif row.call:
            self._free(is_over=True)

    def speak(self) -> None:
        """What was kept as a possible echo is none."""
        if self.reason is Reason.ECHO:
            for event in self._kept:
                self.left.note(event)
            self._free(is_over=False)

    def end(self) -> None:
        """The answer is over, and nothing is wrong with its calls."""
        if self._row.end:
            self._free(is_over=True)

    def _free(self, *, is_over: bool) -> None:
        self.is_over, self.reason = is_over, None
        self._report.calls += names_of_calls(self._kept)
        self._out += self._kept
        self._kept.clear()

    def begin_call(self, index: int, start: ToolCallStarted) -> None:
        """A call leaves from here on while it is written. It is counted when it is whole."""
        self.pass_call()
        self._out.append(start)
        self.leaving = index

    def feed_call(self, text: str) -> None:
        if text := self._mask.feed(text):
            self._out.append(ToolCallArguments(text))

    def end_call(self, end: ToolCallEnded) -> None:
        self.leaving = None
        if text := self._mask.flush():
            self._out.append(ToolCallArguments(text))
        self._out += [end, *self._behind]
        self._behind.clear()

    def think(self, event: Reasoning | ReasoningItemEnded) -> None:
        (self._out if self.leaving is None else self._behind).append(event)


class Thoughts:
    """The reasoning on its way out, by its parts, with `key` masked: feed it, and `end` a part, or `end_item` all."""

    __slots__ = ("_mask", "_outlet", "_part")

    def __init__(self, outlet: Outlet, key: str | None) -> None:
        self._outlet = outlet
        self._mask = Mask(key)
        self._part = 0

    def feed(self, part: int, text: str) -> None:
        if part != self._part:
            self.end()
        self._part = part
        if text := self._mask.feed(text):
            self._outlet.think(Reasoning(part, text))

    def end(self) -> None:
        if text := self._mask.flush():
            self._outlet.think(Reasoning(self._part, text))

    def end_item(self) -> None:
        self.end()
        self._outlet.think(ReasoningItemEnded())
