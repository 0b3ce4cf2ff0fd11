"""What happened in a turn, by names and numbers. Holds no prompt text, no arguments, no secrets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..contracts import Lane
from .block_note import BlockNote
from .observer import TurnObserver
from .reason import Fate, Reason, Ruling


@dataclass(slots=True)
class TurnReport:
    """Filled while the turn runs; read once it is over.

    `tiers` counts calls by how much they had to be helped, `repairs` the rules that helped, by name;
    `refused` counts blocks that did not leave as calls, by reason; `again` why one more answer was
    asked for; `misfits` the calls that left though they do not fit their tool's schema, by tool; `unchecked` what left
    though nobody can tell whether it fits, by reason.
    `paired` counts what was done so that each past call has a result, by name.
    `taken_out` counts what of an answer nobody is to see, by kind, and `markup` blocks that left as text, by why.
    `truncated` counts the entries of the conversation that were left out because it was too long. `warnings` are
    sentences for the client, about what it may miss. `lane` is how the backend found the conversation, if it keeps any.
    `held`: the decoder was asked to hold the calls to their schemas; `unheld` is why not, where it was wanted.
    `notes` say of each block in order what became of it. `answered_nothing`: of no answer anything was left, and with
    `told_empty` the client got a sentence of ours in its place.
    `observer` hears of each block, whose words nothing here holds.
    """

    tools: tuple[str, ...] = ()
    calls: list[str] = field(default_factory=list)
    tiers: Counter[str] = field(default_factory=Counter)
    repairs: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    taken_out: Counter[str] = field(default_factory=Counter)
    markup: Counter[str] = field(default_factory=Counter)
    again: list[Reason] = field(default_factory=list)
    interrupted: str | None = None
    misfits: Counter[str] = field(default_factory=Counter)
    unchecked: Counter[str] = field(default_factory=Counter)
    paired: Counter[str] = field(default_factory=Counter)
    truncated: int = 0
    warnings: list[str] = field(default_factory=list)
    lane: Lane | None = None
    spoilt: str | None = None
    held: bool = False
    unheld: str | None = None
    notes: list[BlockNote] = field(default_factory=list)
    answered_nothing: bool = False
    told_empty: bool = False
    observer: TurnObserver | None = None

    def offer(self, names: Iterable[str]) -> None:
        """The tools that the model is offered."""
        self.tools = tuple(names)

    def pair(self, repairs: Mapping[str, int]) -> None:
        """Results of the conversation did not pair with their calls; this was done about it."""
        self.paired.update(repairs)

    def take_call(self, tier: str, rules: Sequence[str], note: BlockNote, block: str) -> None:
        """A call was read from this block, with the help of these rules."""
        self.tiers[tier] += 1
        self.repairs.update(rules)
        self.note(note, block)

    def note(self, note: BlockNote, block: str) -> None:
        """This was made of a block. Nothing is counted."""
        self.notes.append(note)
        if self.observer is not None:
            self.observer.judged(note, block)

    @property
    def attempt(self) -> int:
        """How many answers were asked for before the one that is read."""
        return len(self.again)

    def pass_on(self, names: Iterable[str]) -> None:
        """Calls left for the client."""
        self.calls += names

    def refuse(self, reason: str, note: BlockNote, block: str) -> None:
        """A block did not leave as a call."""
        self.refused[reason] += 1
        self.note(note, block)

    def see_text(self, reason: Reason, tool: str, warning: str, *, fenced: bool = False) -> None:
        """A call of this tool stands in the answer where it is text to the parser as well."""
        ruling = Ruling(Fate.TEXT, reason, tool)
        self.notes.append(BlockNote(attempt=self.attempt, ruling=ruling, name=tool, fenced=fenced))
        self.warn(warning)

    def end_with_nothing(self, *, told: bool) -> None:
        """Nothing of any answer is left; `told`: a sentence of ours leaves in its place."""
        self.answered_nothing, self.told_empty = True, told

    def lose(self, reason: str) -> None:
        """A block that was doubted did not come again, and nothing else did."""
        self.refused[reason] += 1

    def take_out(self, what: str) -> None:
        """Something of the answer is not shown."""
        self.taken_out[str(what)] += 1

    def show_markup(self, why: str) -> None:
        """A block left as text."""
        self.markup[why] += 1

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
            "refused": self.refused,
            "repaired": self.repairs,
            "rewritten": self.taken_out,
        }
        return next((why for why, found in differences.items() if found), None)

    def go_on(self, lane: Lane | None, spoilt: str | None) -> None:
        """How the conversation was found at the backend, and why it cannot go on from here, if it cannot."""
        self.lane = self.lane or lane
        self.spoilt = self.spoilt or spoilt

    def warn(self, sentence: str) -> None:
        """The client is to be told. ASCII on one line, with no word but ours and the names of its tools."""
        if sentence not in self.warnings:
            self.warnings.append(sentence)

    def ask_again(self, reason: Reason) -> None:
        self.again.append(reason)

    def interrupt(self, reason: str) -> None:
        """The answer was ended before the model ended it."""
        self.interrupted = reason

    def hold_calls(self) -> None:
        """The decoder is asked to hold an answer's calls to their schemas."""
        self.held = True

    def unhold_calls(self, reason: str) -> None:
        """It would be, if it could."""
        self.held, self.unheld = False, reason

    def leave_out(self, entries: int) -> None:
        """So much of the conversation was not shown."""
        self.truncated += entries

    def let_misfit(self, tool: str) -> None:
        """A call leaves though it does not fit."""
        self.misfits[tool] += 1
        self.warn(f"A call of the tool '{tool}' left with arguments that do not fit its schema.")

    def give_up_check(self, reason: str) -> None:
        """Nobody can tell whether something fits its schema."""
        self.unchecked[reason] += 1
