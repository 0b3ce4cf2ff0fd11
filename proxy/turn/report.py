"""What happened in a turn, by names and numbers. Holds no prompt text, no arguments, no secrets."""

from __future__ import annotations

from collections import Counter, defaultdict
from enum import StrEnum

from msgspec import Struct, field

from ..contracts import Lane
from ..schema.coercion import Coercion
from .block_note import BlockNote, TurnObserver
from .reason import Reason


class Count(StrEnum):
    """What is counted in a turn, each by names, as logs call it."""

    TIERS = "tiers"
    """Calls that were read, by how much they had to be helped."""
    REPAIRED = "repaired"
    """The rules that helped."""
    REFUSED = "refused"
    """Blocks that did not leave as calls, by reason; a block that was doubted only if nothing better came."""
    TAKEN_OUT = "taken_out"
    """Parts of an answer that nobody is to see, by kind."""
    MARKUP = "markup_shown"
    """Blocks that left as text, by why."""
    MISFITS = "misfits"
    """Calls that left though they do not fit their tool's schema, by tool."""
    UNCHECKED = "unchecked"
    """Calls and answers that left though nobody can tell whether they fit, by reason."""
    PAIRED = "paired"
    """What was done so that each past call has a result."""


class LaneReport(Struct):
    """How the backend found the conversation, if it keeps any (`lane`), and why it cannot go on there (`spoilt`).

    `truncated` entries were left out because it was too long. `rewritten`: a call left otherwise than it was written.
    It ends with the `results` of so many calls.
    """

    lane: Lane | None = None
    spoilt: str | None = None
    truncated: int = 0
    rewritten: bool = False
    results: int = 0


class TurnReport(Struct):
    """Filled while the turn runs; read once it is over.

    `tools` are those on offer, and `calls` those that left. `again` says why each further answer was asked for,
    `interrupted` why an answer was ended before its model did. `warnings` are sentences for the client, about what it
    may miss. `held`: the decoder held the calls to their schemas, or why not where that was wanted. `notes` say of each
    block in order what became of it; `observer` hears its words. `answered_nothing`: of no answer anything was left,
    and what the client got, as `EmptyAnswers` names it. `unfit`: the last answer is not the JSON that was asked for.
    """

    tools: tuple[str, ...] = ()
    calls: list[str] = field(default_factory=list)
    counts: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    again: list[Reason] = field(default_factory=list)
    interrupted: str | None = None
    warnings: list[str] = field(default_factory=list)
    conversation: LaneReport = field(default_factory=LaneReport)
    held: bool | str = False
    notes: list[BlockNote] = field(default_factory=list)
    answered_nothing: str | None = None
    unfit: bool = False
    observer: TurnObserver | None = None

    def count(self, what: Count, *names: str) -> None:
        self.counts[what].update(names)

    def note(self, note: BlockNote, block: str | None = None) -> None:
        """This was made of a `block`, or of text that looks like one. Nothing is counted."""
        self.notes.append(note)
        if self.observer is not None and block is not None:
            self.observer.judged(note, block)

    def warn(self, sentence: str) -> None:
        """The client is to be told. ASCII on one line, with no word but ours and the names of its tools."""
        if sentence not in self.warnings:
            self.warnings.append(sentence)

    def let_misfit(self, tool: str) -> None:
        """A call leaves though it does not fit."""
        self.count(Count.MISFITS, tool)
        self.warn(f"A call of the tool '{tool}' left with arguments that do not fit its schema.")

    @property
    def attempt(self) -> int:
        """How many answers were asked for before the one that is read."""
        return len(self.again)

    @property
    def reasons(self) -> list[str]:
        """Why anything of it did not leave as it was written, or was asked for anew."""
        noted = {note.reason for note in self.notes if note.reason is not Reason.GOOD}
        return sorted({*noted, *self.again})

    @property
    def difference(self) -> str | None:
        """Why the client has another conversation now than the backend; None when it has not."""
        differences = {
            "second_try": self.again,
            "interrupted": self.interrupted,
            "refused": self.counts[Count.REFUSED],
            "repaired": self.counts[Count.REPAIRED].keys() - {Coercion.LEFT_OUT},
            "rewritten": self.counts[Count.TAKEN_OUT],
        }
        return next((why for why, found in differences.items() if found), None)
