"""What is known of a whole conversation without its words. The part that each request repeats is looked at once."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from parser import ToolRegistry

from .beginnings import Beginnings, Begun
from .recent import Latest
from .transcript import (
    AssistantText,
    Entry,
    Guidance,
    PastCall,
    ToolResult,
    Transcript,
    bytes_taken,
    strings_of,
    strings_of_tools,
)

# Bytes that conversations may take of which this was found out lately, and that the latest one may take.
_MOST_BYTES = 2 * 2**20


class Outline(Struct, frozen=True):
    """`characters` are those that the model will read, and `bytes` about what entries take; `kinds` are the types of
    entries, `guidance` how many are that, and `phased` whether a text of the assistant has a phase. `brought` are the
    names of the tools that are shown where they came. `paired`: each id is that of one call and of one result behind
    it, but for those that are `waiting`.
    """

    characters: int = 0
    bytes: int = 0
    kinds: frozenset[type[Entry]] = frozenset()
    guidance: int = 0
    phased: bool = False
    brought: frozenset[str] = frozenset()
    paired: bool = True
    called: frozenset[str] = frozenset()
    waiting: frozenset[str] = frozenset()

    def behind(self, entries: Sequence[Entry]) -> Outline:
        """Of a conversation that goes on with these."""
        paired, called, waiting = self.paired, set[str](), set(self.waiting)
        brought = set[str]()
        phased = self.phased
        for entry in entries:
            if isinstance(entry, PastCall):
                paired = paired and entry.call_id not in self.called and entry.call_id not in called
                called.add(entry.call_id)
                waiting.add(entry.call_id)
            elif isinstance(entry, ToolResult):
                paired = paired and entry.call_id in waiting
                waiting.discard(entry.call_id)
                brought.update(entry.brings)
            elif isinstance(entry, AssistantText):
                phased = phased or entry.phase is not None
            elif isinstance(entry, Guidance):
                brought.update(entry.brings)
        kinds = [type(entry) for entry in entries]
        return Outline(
            self.characters + sum(map(len, strings_of(entries))),
            self.bytes + bytes_taken(entries),
            self.kinds.union(kinds),
            self.guidance + kinds.count(Guidance),
            phased,
            self.brought | brought,
            paired,
            self.called | called,
            frozenset(waiting),
        )


_BEGINNINGS: Beginnings[tuple[Entry, ...], Outline] = Beginnings(_MOST_BYTES)
# Each step of a request asks.
_LATEST: Latest[tuple[Entry, ...], Outline] = Latest()


def outline_of(entries: tuple[Entry, ...]) -> Outline:
    """What is known of `entries`."""
    if (known := _LATEST.get(entries)) is None:
        known = _found(entries)
        if known.bytes <= _MOST_BYTES:
            _LATEST.keep(entries, known)
    return known


def _found(entries: tuple[Entry, ...]) -> Outline:
    begun = _BEGINNINGS.find(None, entries)
    known, start = (Outline(), 0) if begun is None else (begun.made, len(begun.beginning))
    # Clients are seen to send the newest message again with other words.
    if new := entries[start:-1]:
        known = known.behind(new)
        _BEGINNINGS.keep(Begun(None, entries[:-1], known, known.bytes), begun)
        start = len(entries) - 1
    return known.behind(entries[start:])


def characters_sent(transcript: Transcript, registry: ToolRegistry) -> int:
    """Those of `untrusted_strings`."""
    others = (transcript.instructions or "", *strings_of_tools(registry))
    return outline_of(transcript.entries).characters + sum(map(len, others))
