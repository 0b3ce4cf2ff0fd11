"""What is known of a model: whether it writes the key into its calls.

    UNKNOWN --a first answer's call carries the key----------------------------------> WRITES
            --calls came without it, also when asked for once more, in two conversations-> NEVER
    WRITES, NEVER --so many turns without a new proof--------------------------------> UNKNOWN

It is known for each owner and model: one owner's conversations say nothing to another owner. A call counts for NEVER
only if it was neither shown nor copied: an explanation proves nothing. In a conversation that has shown such calls, the
model counts as one that never writes the key, so that it is not asked again in each turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from hashlib import blake2b
from typing import Protocol

from cachetools import LRUCache
from msgspec import Struct
from msgspec.structs import replace

from prompts import Text, UserTurn

from ..contracts import TurnRequest

# Owners' models of which something is known; their names are the clients' own words, so there must be an end.
MOST_KNOWN = 1000
# Conversations without the key that make a habit of it: one may be about calls.
ENOUGH_LACKING = 2
# Characters of each part of a message by which it is known.
_READ = 4096
# Turns with tools. A model without the key costs a second try in two conversations of so many turns.
MOST_TURNS = 200


class KeyHabit(Enum):
    """Whether a model writes the key, as far as anybody knows."""

    UNKNOWN = "unknown"
    WRITES = "writes"
    """A call without it is hardly meant."""
    NEVER = "never"
    """To ask for it again is worth nothing: its calls are judged by their place and their words."""


class Speaker(Struct, frozen=True):
    """Which model speaks, for whom, and in which conversation."""

    owner: str
    model: str
    conversation: str = ""

    @classmethod
    def of(cls, request: TurnRequest) -> Speaker:
        """A conversation is known by how its first user message begins, which every later request still has."""
        asked = (entry.parts for entry in request.transcript.entries if isinstance(entry, UserTurn))
        begins = [part.text[:_READ] if isinstance(part, Text) else part.url[:_READ] for part in next(asked, ())]
        digest = blake2b("\0".join(begins).encode("utf-8", "surrogatepass"), digest_size=8)
        return cls(request.owner, request.model, digest.hexdigest())


class Known(Struct, frozen=True):
    """What is known of one owner's model. `lacking`: conversations that have shown calls without the key.

    `turns` have passed since the last proof of anything.
    """

    habit: KeyHabit = KeyHabit.UNKNOWN
    lacking: tuple[str, ...] = ()
    turns: int = 0

    def with_key(self) -> Known:
        return Known(KeyHabit.WRITES)

    def without_key(self, conversation: str) -> Known:
        lacking = tuple(dict.fromkeys((*self.lacking, conversation)))
        return Known(KeyHabit.NEVER if len(lacking) >= ENOUGH_LACKING else self.habit, lacking)

    def habit_in(self, conversation: str) -> KeyHabit:
        """The habit, as far as this conversation has shown it."""
        is_shown = self.habit is KeyHabit.UNKNOWN and conversation in self.lacking
        return KeyHabit.NEVER if is_shown else self.habit


class KeyHabits(Protocol):
    """Remembers the habits of models."""

    def begin(self, speaker: Speaker) -> KeyHabit:
        """A turn begins: the habit that is known. Counts the turn."""

    def note_key(self, speaker: Speaker) -> None:
        """A call of a first answer carried the key."""

    def note_lack(self, speaker: Speaker) -> None:
        """A call came without the key, and again when it was asked for once more; it was no quotation."""


class Habits:
    """`KeyHabits` of this process; `known` are those of before."""

    def __init__(self, known: Iterable[tuple[str, str, Known]] = ()) -> None:
        self.replace(known)

    def replace(self, known: Iterable[tuple[str, str, Known]]) -> None:
        """Knows nothing else from now on."""
        self._known: LRUCache[tuple[str, str], Known] = LRUCache(MOST_KNOWN)
        self._known.update({(owner, model): one for owner, model, one in known})

    def begin(self, speaker: Speaker) -> KeyHabit:
        known = self.of(speaker)
        if known != Known():
            known = replace(known, turns=known.turns + 1)
            self._put(speaker, known if known.turns <= MOST_TURNS else Known())
        return self.of(speaker).habit_in(speaker.conversation)

    def note_key(self, speaker: Speaker) -> None:
        self._put(speaker, self.of(speaker).with_key())

    def note_lack(self, speaker: Speaker) -> None:
        self._put(speaker, self.of(speaker).without_key(speaker.conversation))

    def known(self) -> Iterator[tuple[str, str, Known]]:
        """All that is known: owner, model, what."""
        return ((owner, model, known) for (owner, model), known in [*self._known.items()])

    def of(self, speaker: Speaker) -> Known:
        """What is known of a model, for its owner."""
        return self._known.get((speaker.owner, speaker.model), Known())

    def _put(self, speaker: Speaker, known: Known) -> None:
        self._known[speaker.owner, speaker.model] = known


class FixedHabit(Struct, frozen=True):
    """`KeyHabits` that know one habit of all models and learn nothing: what becomes of a turn depends on it alone."""

    habit: KeyHabit = KeyHabit.UNKNOWN

    def begin(self, speaker: Speaker) -> KeyHabit:
        return self.habit

    def note_key(self, speaker: Speaker) -> None:
        pass

    def note_lack(self, speaker: Speaker) -> None:
        pass
