"""The quote guard: a call that stands in the request's own untrusted text is a quotation, not a call.

A note may hold a whole call. A model that is asked to show the note writes it, and nobody has jailbroken
anything. So before a call is passed on, its name and its arguments, compared as values, are looked up among
all calls that can be read from the request, however a copy may spell it (`copies`), and as far gone as
`SentinelParser` would still repair it (`quoted_blocks`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from parser import CallCompleted, ParserEvent, ToolRegistry

from ..canonical import canonical
from ..escape import INVISIBLE, unescape
from ..transcript import PastCall, Text, ToolResult, Transcript, UserTurn
from .budget import ReadingBudget, TooMuchToReadError
from .copies import in_any_row, is_suspect, joined, page, pages, past_calls, readings, rows, typed
from .quoted_blocks import BlockReader, tags_as_read

# Strategy: calls are compared, not texts. A copy may spell a block in endless ways, but to be passed on it has to be
# read as a call, and a call has one name and one JSON value. Only then what remains is folded: differences that no
# model can be relied on to keep, and that a note could be written with on purpose. To fold too much is safe; two calls
# that differ in nothing but blanks, case or backslashes are rare, and the second of them is only shown instead of
# called.

# Backslashes behind `<` are our own escaping. `\n` and the like and `\u00..` below U+0020 are white space as JSON
# writes it. Everything unseen may get lost in a copy.
_FOLDED_AWAY = re.compile(rf"(?<=<)\\+|\\[bfnrt]|\\u00[01][0-9a-f]|[\\\s{INVISIBLE}]+", re.IGNORECASE)
# Characters between the tags. Less than this, as `{"name":`, is what any two broken blocks have in common.
_LEAST_QUOTATION = 10
_TAG = re.compile("</?tool_call>?")

FoldedCall = tuple[str, str]


def _fold(text: str) -> str:
    """`text` without what a copy may lose or change: white space, backslashes, unseen characters, type, case."""
    return _FOLDED_AWAY.sub("", typed(text)).casefold()


class QuoteGuard:
    """Knows the calls that stand in `strings`, which are read when the first question is asked.

    `transcript` is the conversation that they are from, if any. Names are compared as `registry` understands
    them. The work is a few searches without the tag's word in the request, linear in its length with it, and
    bounded by a `ReadingBudget`. What is too much to read is taken to hold every call.
    """

    __slots__ = (
        "_budget",
        "_calls",
        "_gathered",
        "_overflow",
        "_readings",
        "_registry",
        "_rows",
        "_suspect",
        "_transcript",
    )

    def __init__(self, strings: Iterable[str], registry: ToolRegistry, transcript: Transcript | None = None) -> None:
        self._registry = registry
        self._transcript = transcript
        # Nothing is read before it is asked for: an answer without a call asks nothing.
        self._rows = [tuple(strings)]
        self._gathered = False
        self._suspect: bool | None = None
        self._calls: set[FoldedCall] | None = None
        self._readings: str | None = None
        self._budget: ReadingBudget | None = None
        self._overflow = False

    @classmethod
    def of(cls, transcript: Transcript, registry: ToolRegistry, also: Iterable[str] = ()) -> QuoteGuard:
        """The guard over everything untrusted in one request."""
        return cls(also, registry, transcript)

    def stands_in_new_output(self, name: str, arguments: str) -> bool:
        entries = self._transcript.entries if self._transcript else ()
        newest = max((i for i, e in enumerate(entries) if isinstance(e, UserTurn)), default=-1)
        results = [
            p.text for e in entries[newest + 1 :] if isinstance(e, ToolResult) for p in e.parts if isinstance(p, Text)
        ]
        return QuoteGuard(results, self._registry).is_quotation(name, arguments)

    def is_quotation(self, name: str, arguments: str, *, before: str = "", demanded: bool = False) -> bool:
        """Whether a call of `name` with the JSON object `arguments` can be read from the request's own text."""
        calls = self._read()
        # Also when it was another question that took too much: the request is the same.
        if self._overflow:
            return True
        comparable = canonical(arguments)
        # What is no JSON object is no call that could be passed on, so there is nothing to quote.
        return comparable is not None and self._folded(name, comparable) in calls

    def is_suspect(self) -> bool:
        """Whether the tag's word stands anywhere in the request: else nothing was escaped and nothing can be quoted."""
        if self._suspect is None:
            self._suspect = any(map(in_any_row, self._gather()))
        return self._suspect

    def quotes_text(self, raw: str) -> bool:
        """Whether the text of a block that is no call stands in the request's own text, the same but for its folding.

        Never for a block that holds next to nothing.
        """
        # Here texts are compared after all: a broken block has no value that could be. That it is a quotation is no
        # matter of safety, since no call leaves: it decides whether a second attempt is worth its cost.
        block = _fold(raw)
        if len(_TAG.sub("", block)) < _LEAST_QUOTATION or not _TAG.search(block) or not self.is_suspect():
            return False
        try:
            folded = self._folded_readings()
            # The answer decides how often this is asked, and a model may be made to write thousands of broken blocks.
            # A search through all of it, for each block that an answer breaks off.
            self._allowance().spend(len(folded) // 64)
        except TooMuchToReadError:
            self._overflow = True
            return True
        return block in folded

    def quotes_bare(self, raw: str) -> bool:
        """Whether the JSON of a call that was written without tags stands in the request, the same but for its folding.

        Copied JSON is no call of anybody, so unlike a tagged one it needs no word of ours to be suspect.
        """
        # The object without what the answer put round it, as a fence: that need not stand in the request.
        call = _fold(raw[raw.find("{") : raw.rfind("}") + 1])
        return any(call in _fold("".join(row)) for row in self._gather())

    def _gather(self) -> list[tuple[str, ...]]:
        """The untrusted strings in all their orders; those of the transcript are collected by the first call."""
        if self._transcript and not self._gathered:
            self._gathered = True
            self._rows += rows(self._transcript, self._registry)
        return self._rows

    def _texts(self) -> Iterable[str]:
        """All suspect texts that a model may copy from the request; past calls only as the strings that they hold."""
        texts = [text for row in self._gather() for text in joined(row)]
        if self._transcript:
            texts += pages(self._transcript, self._registry)
        return filter(is_suspect, dict.fromkeys(texts))

    def _folded_readings(self) -> str:
        """All that may be copied from the request, in any order. A line each: there are no line breaks within them."""
        if self._readings is None:
            budget = self._allowance()
            folded: list[str] = []
            # White space is folded away, so that what stands in a row is found alone and together.
            texts = ["\n".join(row) for row in self._gather()]
            if self._transcript:
                texts += pages(self._transcript, self._registry)
            for text in filter(is_suspect, dict.fromkeys(texts)):
                for reading in readings(text, budget):
                    budget.spend(len(reading))
                    folded.append(_fold(reading))
            self._readings = "\n".join(folded)
        return self._readings

    def _allowance(self) -> ReadingBudget:
        # One for the request and all questions about it, made when its length is known.
        if self._budget is None:
            self._budget = ReadingBudget(sum(len(string) for row in self._gather() for string in row))
        return self._budget

    def _folded_name(self, name: str) -> str:
        # As `ToolRegistry` understands it, since that decides which tool is called: `Delete-Note` quotes `delete_note`.
        tool = self._registry.match(name)
        return _fold(tool.name if tool else name)

    def _folded(self, name: str, comparable: str) -> FoldedCall:
        return self._folded_name(name), _fold(tags_as_read(comparable))

    def _read(self) -> set[FoldedCall]:
        if self._calls is None:
            # Kept before it is filled: what was read until the budget was spent is not read a second time.
            self._calls = set()
            if self.is_suspect():
                try:
                    self._read_all(self._calls)
                except TooMuchToReadError:
                    self._overflow = True
        return self._calls

    def _read_all(self, calls: set[FoldedCall]) -> None:
        budget = self._allowance()
        reader = BlockReader(budget)
        for text in self._texts():
            for reading in readings(text, budget):
                for events in reader.read(reading):
                    calls.update(self._completed(events))
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

    def _completed(self, events: Iterable[ParserEvent]) -> Iterator[FoldedCall]:
        for event in events:
            if isinstance(event, CallCompleted) and (comparable := canonical(event.arguments)):
                yield self._folded(event.name, comparable)
