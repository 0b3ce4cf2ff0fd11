"""One turn, for people to look at: names and numbers, and its words where they are kept."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ...contracts import BackendEvent, Prompt, TurnEvent, TurnFailed, TurnFinished, Usage
from ...errors import ApiError
from ...turn import BlockNote, Reason, TurnReport, calls_left, fault_of, in_words, sentence_of
from .turn_transcript import HeardTurn, KeptWords

# Blocks of one turn that are marked: an answer may be nothing but tags.
MOST_MARKS = 100


class Mark(StrEnum):
    """What became of a block, as the page names it."""

    VALID = "valid"
    """It left as a call, as it was written."""
    REPAIRED = "repaired"
    """It left as a call, and something was changed or named otherwise."""
    MISFIT = "does not fit"
    """It left as a call although its arguments do not fit."""
    CUT = "cut"
    """It left as far as it had come when the answer was cut."""
    DISCARDED = "discarded"
    """It was a call, of an answer that did not leave."""
    REFUSED = "refused"
    """It did not leave as a call."""


class NotedBlock(Struct, frozen=True):
    """A block that a model wrote, as it wrote it where words are kept."""

    note: BlockNote
    block: str


class MarkedBlock(Struct, frozen=True):
    """`why` says in words what helped, or why it is no call."""

    mark: Mark
    name: str | None
    why: tuple[str, ...]
    attempt: int
    block: str

    @property
    def row(self) -> dict[str, object]:
        return {"mark": self.mark.value, "name": self.name, "why": self.why, "attempt": self.attempt + 1}


class TurnState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    LEFT = "left"


class TurnRecord:
    """One turn; a `TurnObserver`. `changed` is called when its summary would be another one.

    `key` is the name of the key that it was asked with, `method` that of its request, "WS" for one on a WebSocket.
    `turned_away`: nothing left but this error.
    """

    def __init__(
        self,
        id: str,
        *,
        at: float,
        began: float,
        route: str,
        client: str,
        model: str,
        method: str = "POST",
        key: str = "",
        owner: str = "",
    ) -> None:
        self.id = id
        self.at = at
        self.began = began
        self.method = method
        self.route = route
        self.client = client
        self.key = key
        self.model = model
        self.owner = owner
        self.group = id
        self.end: Hashable = None
        self.repeats: str | None = None
        """The turn that the page had asked again, as it was or in other words."""
        self.report = TurnReport()
        """What the turn says of itself; it is filled while it runs."""
        self.question = ""
        """How the newest message of the user begins, where words are kept."""
        self.blocks: list[NotedBlock] = []
        self.state = TurnState.RUNNING
        self.first: float | None = None
        self.over: float | None = None
        self.usage: Usage | None = None
        self.error: ApiError | None = None
        self.turned_away: ApiError | None = None
        self.dropped = False
        self.changed: Callable[[], None] = _nothing
        self.kept: KeptWords | None = None
        """As they come; `words` are settled."""
        self._told = 0

    @property
    def words(self) -> KeptWords | None:
        """None where they are not kept, or not any more."""
        if self.kept is not None:
            self.kept.settle()
        return self.kept

    def drop_words(self) -> None:
        """They are not kept any more; names and numbers stay."""
        self.kept = None
        self.dropped = True
        self.question = ""
        self.blocks = [replace(each, block="") for each in self.blocks]

    # What the turn makes of what the model wrote

    def judged(self, note: BlockNote, block: str) -> None:
        if len(self.blocks) == MOST_MARKS:
            return
        self.blocks.append(NotedBlock(note, block if self.kept is not None else ""))
        if self.kept is not None:
            self.kept.note_block(block)

    @property
    def marks(self) -> list[MarkedBlock]:
        """What has become of each block by now."""
        left = calls_left(self.report)
        newest = self.report.attempt if self.over is None else None
        return [self._marked(each, left=each.note in left or each.note.attempt == newest) for each in self.blocks]

    def _marked(self, each: NotedBlock, *, left: bool) -> MarkedBlock:
        note, why = each.note, list[str]()
        if not note.is_call:
            mark, why = Mark.REFUSED, [fault_of(note)]
        elif not left:
            mark, why = Mark.DISCARDED, [] if note.reason is Reason.GOOD else [fault_of(note)]
        else:
            if note.renamed:
                why.append(f"renamed from {note.renamed}")
            why += [in_words(rule) for rule in note.rules]
            special = {Reason.ARGUMENTS_MISFIT: Mark.MISFIT, Reason.CUT: Mark.CUT}
            mark = special.get(note.reason, Mark.REPAIRED if why else Mark.VALID)
        if note.problem and self.kept is not None:  # it may repeat what the model wrote
            why.append(note.problem)
        return MarkedBlock(mark, note.name or None, tuple(why), note.attempt, each.block)

    # What leaves

    def saw(self, batch: Sequence[TurnEvent], now: float) -> None:
        """Events of the turn, before its API makes its own of them. Its end is the last one of a batch."""
        if self.first is None:
            self.first = now
        if isinstance(end := batch[-1], TurnFinished):
            self.state = TurnState.DONE if end.incomplete is None else TurnState.INCOMPLETE
            self.usage = end.usage
        elif isinstance(end, TurnFailed):
            self.state, self.error = TurnState.FAILED, end.error
        if len(self.blocks) != self._told:
            self._told = len(self.blocks)
            self.changed()

    def left(self, events: Iterable[dict[str, object]], now: float) -> None:
        """Events as they leave."""
        if self.kept is not None:
            self.kept.note_left(events, now)

    def left_whole(self, body: Mapping[str, object]) -> None:
        """This leaves in one piece."""
        if (words := self.words) is not None:
            words.note_answer(body)

    def left_none(self, error: ApiError) -> None:
        """The request is refused; nothing else has left."""
        self.state, self.error, self.turned_away = TurnState.FAILED, error, error
        if (words := self.words) is not None:
            words.left.clear()
        self.changed()

    def close(self, now: float) -> None:
        """The turn is over, seen to its end or not. Only the first time tells."""
        if self.over is not None:
            return
        self.over = now
        if self.kept is not None:
            self.kept.settle()
        if self.state is TurnState.RUNNING:
            self.state = TurnState.LEFT
        self.changed()

    def repeat(self, other: TurnRecord) -> None:
        """It asks what `other` asked, or what somebody made of that."""
        self.repeats = other.id
        self.changed()

    # What the backend says

    def asked(self, prompt: Prompt, now: float) -> HeardTurn | None:
        """The backend is shown this."""
        return None if (words := self.words) is None else words.note_asked(prompt, now)

    def heard(self, turn: HeardTurn, batch: Sequence[BackendEvent], now: float) -> None:
        """It said this."""
        if self.kept is not None:
            self.kept.note_heard(turn, batch, now)

    def heard_line(self, turn: HeardTurn, now: float, ours: bool, message: Mapping[str, Any]) -> None:
        """This was sent for it, or has come."""
        if self.kept is not None:
            self.kept.note_line(turn, now, ours, message)

    # For everybody

    @property
    def summary(self) -> dict[str, object]:
        """Names and numbers; seconds from the turn's begin, `at` in seconds of the Unix clock."""
        usage = self.usage
        error = self.error
        return {
            "id": self.id,
            "group": self.group,
            "repeats": self.repeats,
            "at": self.at,
            "client": self.client,
            "key": self.key,
            "method": self.method,
            "path": self.route,
            "model": self.model,
            "state": self.state.value,
            "said": self._said(),
            "question": self.question,
            "tools": len(self.report.tools),
            "attempts": self.report.attempt + 1,
            "reasons": self.report.reasons,
            "calls": [each.row for each in self.marks],
            "first_seconds": _since(self.began, self.first),
            "seconds": _since(self.began, self.over),
            "input_tokens": usage and usage.input_tokens,
            "cached_tokens": usage and usage.cached_tokens,
            "output_tokens": usage and usage.output_tokens,
            "error": error and (error.code or error.type),
            "words": self.kept is not None,
        }

    def _said(self) -> str | None:
        answered = self.state in {TurnState.DONE, TurnState.INCOMPLETE}
        return None if self.over is None else sentence_of(self.report, answered=answered) or None


def _nothing() -> None:
    pass


def _since(began: float, at: float | None) -> float | None:
    return None if at is None else round(at - began, 3)
