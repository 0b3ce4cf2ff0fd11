"""The calls that can be read from one part of a request."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain

from parser import CallCompleted, ParserEvent, ToolRegistry

from ..canonical import canonical
from ..escape import unescape
from ..transcript import PastCall, Transcript
from .bare_calls import bare_blocks, may_hold_call
from .budget import ReadingBudget, TooMuchToReadError
from .characters import fold
from .copies import borders, in_a_row, in_any_row, joined, page, pages, past_calls
from .decodings import readings
from .mentions import Mention, essences, mention
from .quoted_blocks import BlockReader, tags_as_read
from .suspicion import is_suspect, may_hold_tag

# Strategy: calls are compared, not texts. A copy may spell a block in endless ways, but to be passed on it has to be
# read as a call, and a call has one name and one JSON value. Only then what remains is folded: differences that no
# model can be relied on to keep, and that a note could be written with on purpose. To fold too much is safe; two calls
# that differ in nothing but blanks, case or backslashes are rare, and the second of them is only shown instead of
# called.
#
# What is too much to read is asked for less: whether one of its strings mentions the call at all. "Yes" to everything
# would take all calls from a conversation about broken blocks, and "no" would make "many broken blocks, then the call"
# a way round the guard; the string that has the call mentions it, whatever else it has. Calls that are cut over two
# such strings are read from the ends that meet.

FoldedCall = tuple[str, str]
Rows = Callable[[], list[tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A call that may be a quotation: as it is compared with what was read, and as it would be mentioned."""

    folded: FoldedCall
    mention: Mention

    @classmethod
    def of(cls, name: str, arguments: str, registry: ToolRegistry) -> AskedCall | None:
        """None for what is no JSON object: no call that could be passed on, so there is nothing to quote."""
        comparable = canonical(arguments)
        if comparable is None:
            return None
        tool = registry.match(name)
        names = {name, tool.name} if tool else {name}
        return cls(_folded(name, comparable, registry), mention(names, arguments))


def _folded(name: str, comparable: str, registry: ToolRegistry) -> FoldedCall:
    # As `ToolRegistry` understands it, since that decides which tool is called: `Delete-Note` quotes `delete_note`.
    tool = registry.match(name)
    return fold(tool.name if tool else name), fold(tags_as_read(_without_types(comparable)))


# How the text of a JSON value other than a string begins.
_VALUE = re.compile(r"\s*[\[{\d-]")


def _untyped(value: object) -> object:
    """A value of canonical JSON with a string, as it would be written, for each number and constant in it."""
    # Other notations have no types, and a model that writes such a call as JSON gives its values some.
    match value:
        case str(text):
            if _VALUE.match(text) and (inner := canonical(f'{{"":{text}}}')):
                return _untyped(json.loads(inner).get("", text))
            return "null" if text == "None" else text
        case {"\0number": str(written)}:
            return written
        case dict(members):
            return {key: _untyped(member) for key, member in members.items()}
        case list(items):
            return [_untyped(item) for item in items]
        case _:
            return json.dumps(value)


def _without_types(comparable: str) -> str:
    try:
        return json.dumps(_untyped(json.loads(comparable)), ensure_ascii=False)
    except RecursionError:
        return comparable


class ReadableCalls:
    """Knows the calls that stand in `rows()`, strings in all orders of copying, which is asked for when one is needed.

    `transcript` is the conversation that they are from, and `tools` what is shown beside it, if any. Names are
    compared as `registry` understands them. `budget()` is what all reading of blocks may cost.
    """

    def __init__(
        self,
        rows: Rows,
        registry: ToolRegistry,
        *,
        transcript: Transcript | None = None,
        tools: ToolRegistry | None = None,
        budget: Callable[[], ReadingBudget] | None = None,
    ) -> None:
        self._gather = rows
        self._registry = registry
        self._transcript = transcript
        self._tools = ToolRegistry() if tools is None else tools
        self._budget = budget or self._own_budget
        # Nothing is read before it is asked for: an answer without a call asks nothing.
        self._rows: list[tuple[str, ...]] | None = None
        self._suspect: bool | None = None
        self._calls: set[FoldedCall] | None = None
        self._cut_calls: set[FoldedCall] | None = None
        self._bare_calls: set[FoldedCall] | None = None
        self._bare_beyond = False
        self._essences: list[str] | None = None
        self._beyond = False
        self.too_much = False
        """Whether there was more than could be read. Known once a question was asked."""

    @property
    def rows(self) -> list[tuple[str, ...]]:
        if self._rows is None:
            self._rows = self._gather()
        return self._rows

    @property
    def length(self) -> int:
        """In characters, counted in every order that they may be copied in."""
        return sum(len(string) for row in self.rows for string in row)

    def is_suspect(self) -> bool:
        """Whether the tag's word stands anywhere in it: else nothing was escaped and nothing can be quoted."""
        if self._suspect is None:
            self._suspect = any(map(in_any_row, self.rows))
        return self._suspect

    def has(self, call: AskedCall) -> bool:
        """Whether `call` can be read from it; where that is too much to say, whether a string of it mentions `call`."""
        return call.folded in self._read() or (self.too_much and (self.mentions(call.mention) or self.has_cut(call)))

    def has_cut(self, call: AskedCall) -> bool:
        """Whether `call` can be read from the end of one string and the beginning of the next."""
        if self._cut_calls is None:
            self._cut_calls = set()
            # Where somebody has made thousands of borders, what was read counts. A string that has a call alone is
            # found without this.
            with suppress(TooMuchToReadError):
                self._read_texts(chain.from_iterable(map(borders, self.rows)), self._own_budget(), self._cut_calls)
        return call.folded in self._cut_calls

    def has_bare(self, call: AskedCall) -> bool:
        """Whether `call` stands in it as JSON without tags; where that is too much to say, as `has` does."""
        if self._bare_calls is None:
            self._bare_calls = set()
            try:
                self._read_bare(self._bare_calls, self._own_budget())
            except TooMuchToReadError:
                self._bare_beyond = True
        return call.folded in self._bare_calls or (self._bare_beyond and self.mentions(call.mention))

    def _read_bare(self, calls: set[FoldedCall], budget: ReadingBudget) -> None:
        reader = BlockReader(budget)
        for text in dict.fromkeys(text for row in self.rows for text in (*row, in_a_row(row))):
            for reading in readings(text, budget):
                for block in bare_blocks(reading, budget):
                    for events in reader.read(block):
                        calls.update(self._completed(events))

    def may_have_bare(self, name: str) -> bool:
        """Whether a call of the tool `name` may stand in it as JSON."""
        return any(may_hold_call(in_a_row(row), name) for row in self.rows)

    def mentions(self, mentioned: Mention) -> bool:
        """Whether one of its strings has all of `mentioned`; of texts that are beyond even that, yes."""
        if self._essences is None:
            self._essences = []
            budget = self._own_budget()
            strings = dict.fromkeys(string for row in self.rows for string in row)
            try:
                self._essences += (essences(string, budget) for string in strings if string)
            except TooMuchToReadError:
                self._beyond = True
        return self._beyond or any(map(mentioned.stands_in, self._essences))

    def holds(self, folded: str) -> bool:
        """Whether this text stands in it, the same but for its folding."""
        return any(folded in fold("".join(row)) for row in self.rows)

    def texts(self) -> Iterator[str]:
        """All texts that may be copied, in whatever order, where white space does not matter."""
        yield from ("\n".join(row) for row in self.rows)
        if self._transcript:
            yield from pages(self._transcript, self._tools)

    def _own_budget(self) -> ReadingBudget:
        return ReadingBudget(self.length)

    def _texts(self) -> Iterable[str]:
        """All texts that may be copied; past calls only as the strings that they hold."""
        yield from (text for row in self.rows for text in joined(row))
        if self._transcript:
            yield from pages(self._transcript, self._tools)

    def _read(self) -> set[FoldedCall]:
        if self._calls is None:
            # Kept before it is filled: what was read until the budget was spent is not read a second time.
            self._calls = set()
            if self.is_suspect():
                try:
                    self._read_all(self._calls, self._budget())
                except TooMuchToReadError:
                    self.too_much = True
        return self._calls

    def _read_all(self, calls: set[FoldedCall], budget: ReadingBudget) -> None:
        reader = self._read_texts(self._texts(), budget, calls)
        if not self._transcript:
            return
        # A copy of the whole page has the past calls in it, perhaps in the middle of a block. They themselves
        # may come again.
        # The past calls are allowed on top, as a long loop has more of them than any note has blocks.
        more = sum(isinstance(entry, PastCall) for entry in self._transcript.entries)
        past, shown = (
            {
                call
                for reading in readings(text, budget)
                for events in reader.read(reading, more=more)
                for call in self._completed(events)
            }
            for text in (past_calls(self._transcript), unescape(page(self._transcript)))
        )
        calls |= shown - past

    def _read_texts(self, texts: Iterable[str], budget: ReadingBudget, calls: set[FoldedCall]) -> BlockReader:
        reader = BlockReader(budget)
        # Most texts that have the word have no tag: those are not decoded.
        for text in filter(may_hold_tag, dict.fromkeys(texts)):
            for reading in readings(text, budget):
                for events in reader.read(reading):
                    calls.update(self._completed(events))
        return reader

    def _completed(self, events: Iterable[ParserEvent]) -> Iterator[FoldedCall]:
        for event in events:
            if isinstance(event, CallCompleted) and (comparable := canonical(event.arguments)):
                yield _folded(event.name, comparable, self._registry)


class FoldedTexts:
    """All readings of some texts, folded, a line each: there are no line breaks within them.

    Raises `TooMuchToReadError`.
    """

    def __init__(self, texts: Callable[[], Iterable[str]], budget: Callable[[], ReadingBudget]) -> None:
        self._texts = texts
        self._budget_of = budget
        self._budget: ReadingBudget | None = None
        self._folded: str | None = None

    def has(self, folded: str) -> bool:
        """Whether `folded` stands in one of them; behind a line break, whether one begins with it."""
        if self._budget is None:
            self._budget = self._budget_of()
        if self._folded is None:
            lines = [""]
            for text in filter(is_suspect, dict.fromkeys(self._texts())):
                for reading in readings(text, self._budget):
                    self._budget.spend(len(reading))
                    lines.append(fold(reading))
            self._folded = "\n".join(lines)
        # The answer decides how often this is asked, and a model may be made to write thousands of broken blocks. Each
        # is a search through all of it.
        self._budget.spend(len(self._folded) // 64)
        return folded in self._folded
