"""The last turns: names and numbers, and their words if `--inspect` keeps them. Bounded, in memory only.

    turns       the oldest record goes
    bytes       the words of the oldest go, its numbers stay

Requests that continue one another are one group: a later conversation begins with the earlier one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from contextlib import suppress
from itertools import accumulate
from operator import xor

from prompts import Text, UserTurn

from ...contracts import TurnRequest
from .record import TurnRecord
from .turn_transcript import ENTRY, KeptWords

# Characters of a question by which a row is known.
QUESTION = 90


class TurnLog:
    """The last `turns` turns; with `words`, what they say, up to `size` bytes together."""

    def __init__(self, turns: int, size: int, *, words: bool) -> None:
        self.limit = turns
        self.size = size
        self.keeps_words = words
        self.used = 0
        self._records: dict[str, TurnRecord] = {}
        self._groups: dict[Hashable, str] = {}

    @property
    def records(self) -> Iterable[TurnRecord]:
        """The oldest first."""
        return self._records.values()

    def get(self, id: str) -> TurnRecord | None:
        return self._records.get(id)

    def begin(self, record: TurnRecord, request: TurnRequest, owner: str, body: bytes | None) -> None:
        """A turn begins: its record is the newest."""
        self._records[record.id] = record
        self._find_group(record, request, owner)
        if self.keeps_words:
            record.question = _question(request)
            record.kept = KeptWords(owner, body, lambda size: self._grow(record, size))
            # Its strings are once more in what the prompts are made of.
            self._grow(record, 2 * len(body or b"") + ENTRY)
        while len(self._records) > self.limit:
            oldest = self._records.pop(next(iter(self._records)))
            self._drop(oldest)
            if self._groups.get(oldest.end) == oldest.group:
                del self._groups[oldest.end]

    def _find_group(self, record: TurnRecord, request: TurnRequest, owner: str) -> None:
        # Python's own hash is keyed anew in each process: it tells nothing of the text, and nobody finds collisions.
        placed = map(hash, enumerate(request.transcript.entries))
        begun: list[int] = []
        with suppress(TypeError):  # an entry that is a table: what stands in front of it tells enough
            begun.extend(accumulate(placed, xor, initial=hash((owner, request.model))))
            record.end = begun.pop()
        # That of the longest beginning.
        record.group = next(filter(None, map(self._groups.get, reversed(begun))), record.group)
        if record.end is not None:
            self._groups[record.end] = record.group

    def _grow(self, record: TurnRecord, size: int) -> None:
        if record.kept is None:
            return
        record.kept.size += size
        self.used += size
        if self.used > self.size:
            for each in self._records.values():
                self._drop(each)
                if self.used <= self.size:
                    break

    def _drop(self, record: TurnRecord) -> None:
        if record.kept is None:
            return
        self.used -= record.kept.size
        record.drop_words()


def _question(request: TurnRequest) -> str:
    """How the newest message of the user begins, on one line."""
    asked = next((entry for entry in reversed(request.transcript.entries) if isinstance(entry, UserTurn)), None)
    text = next((part.text for part in asked.parts if isinstance(part, Text)), "") if asked else ""
    words = " ".join(text[: 4 * QUESTION].split())
    return words if len(words) <= QUESTION else f"{words[:QUESTION].rstrip()}…"
