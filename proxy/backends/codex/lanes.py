"""Lanes: threads that hold a conversation, so that its next request sends only what is new.

    fresh --turn--> busy --ended by itself, delivered as written------> idle --taken--> busy
                     '--- interrupted, failed, delivered otherwise ----> forgotten    (spoilt)
                                        idle --too old, too many, too large--> forgotten

A provider reads a prompt from its cache when a request begins with all that an earlier one held, under one key, and
codex uses the thread's id for that key. So a request takes the idle lane that holds the longest true beginning of its
own history. A lane keeps a digest of what it holds, never the text itself.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from operator import attrgetter

from msgspec import Struct, field
from msgspec.structs import replace

from prompts import Item, OwnLine, Part, Text, as_one_round, no_tools

from ...contracts import Prompt, Usage
from .errors import MAX_INPUT, too_long
from .options import LaneBounds
from .requests import is_asked
from .spare_threads import Started

# Characters of a lane. A reminder stays in the thread, so it goes out again only behind so many more.
REMINDED_FOR = 20_000
_DIGEST_SIZE = 16
# Lines of ours that say how to answer.
_BINDING = frozenset({OwnLine.DEMAND, OwnLine.NO_TOOLS, OwnLine.FAULT})
# Characters of a token, for an answer that is known by its tokens.
_TOKEN = 4

_meaning = attrgetter("meaning")
_role = attrgetter("role")

Identity = tuple[str, str, str | None, str | None, bool]


class Unsaid(Struct, frozen=True):
    """What a thread does not hold yet: messages that stand there when its turn begins, and the turn's own input."""

    older: Sequence[Item]
    newest: Sequence[Part]
    tiered: bool = False
    """It was told a service tier, which codex keeps until it is told none."""
    outputs: bool = False
    """Results go out as outputs of tools, and stand among `older`."""


class HeldThread(Struct, eq=False):
    """A thread, and what it holds, in so many `characters`.

    `held`: the digests of its conversation as it may come back, by how many items it is then. `count`: how many items
    of the prompt that it was taken for, or held last.
    `effort`: one was sent once, and codex keeps the last until it is told another; none is no other. `tiered`: so was a
    service tier, and none is one. `calls_held`: an answer in it was held to a schema, and models imitate how that is
    written, where they can. `bare`: its identity without what its head says of tools, where one that declares some was
    answered in it. `usage` are the thread's tokens in all, `turns` the ids of its turns. `unanswered`: the last one
    failed before a word, so that it can be asked for once more; with these `binding_lines`, which stand in the thread.
    None where it was answered. `spoilt`: it holds something that is not the conversation's.
    """

    identity: Identity
    thread: Started
    names: frozenset[str] = frozenset()
    held: Mapping[int, Collection[bytes]] = field(default_factory=dict)
    count: int = 0
    characters: int = 0
    reminded_at: int | None = None
    effort: bool = False
    tiered: bool = False
    calls_held: bool = False
    bare: Identity | None = None
    usage: Usage = field(default_factory=Usage)
    turns: set[str] = field(default_factory=set)
    used: float = 0.0
    unanswered: frozenset[OwnLine] | None = None
    spoilt: bool = False

    def say(self, prompt: Prompt) -> Unsaid:
        """What of the prompt's conversation it does not hold yet. Raises `BackendError` when that is too long."""
        *_, outputs = self.identity
        new = prompt.said[self.count :]
        asked = len(new)
        while asked and is_asked(new[asked - 1], outputs=outputs):
            asked -= 1
        reminds = self._reminds(prompt)
        ours = [item for item in prompt.items[len(prompt.said) :] if reminds or item.ours is not OwnLine.REMINDER]
        newest = [part for item in (*new[asked:], *ours) for part in item.parts]
        if self._offers_more(prompt):
            newest.append(Text(no_tools()))
        # What stands in the thread has no such limit.
        if (characters := sum(len(part.text) for part in newest if isinstance(part, Text))) > MAX_INPUT:
            raise too_long(characters)
        return Unsaid(new[:asked], newest, self.tiered, outputs)

    def _reminds(self, prompt: Prompt) -> bool:
        """Whether the prompt's reminder goes out: the last one stands too far back by now."""
        said = prompt.said
        if OwnLine.REMINDER not in _lines(prompt):
            return False
        behind = self.characters + weight(said[self.count :]) - (self.reminded_at or 0)
        return self.reminded_at is None or behind >= REMINDED_FOR

    def _offers_more(self, prompt: Prompt) -> bool:
        """Whether the model sees tools here that the prompt has not, and no line of the prompt says so."""
        if not prompt.toolless or OwnLine.NO_TOOLS in _lines(prompt):
            return False
        *_, outputs = self.identity
        return self.identity != identity(prompt, outputs=outputs)

    def hold(self, prompt: Prompt, answers: frozenset[bytes], usage: Usage, turn_id: str | None = None) -> None:
        """It holds the prompt's conversation now, and the answer of the turn of this id, which may come back with any
        of these meanings; its tokens in all are `usage`.
        """
        items = prompt.said
        reminds = self._reminds(prompt)
        self.characters += weight(items[self.count :]) + (usage - self.usage).output_tokens * _TOKEN
        if reminds:
            self.reminded_at = self.characters
        # An empty answer is no item: nobody sends it back.
        self.count = len(items) + all(answers)
        self.held = _forms(items, answers)
        self.effort = self.effort or prompt.effort is not None
        self.tiered = self.tiered or prompt.tier is not None
        self.calls_held = self.calls_held or prompt.calls_held
        if not prompt.toolless:
            owner, model, _, verbosity, outputs = self.identity
            self.bare = owner, model, prompt.bare_head, verbosity, outputs
        self.names, self.usage = prompt.names, usage
        self.turns |= {turn_id} if turn_id else set()
        # From now on it may be gone when it is asked for.
        self.thread = replace(self.thread, waited=True)


def identity(prompt: Prompt, *, outputs: bool = False) -> Identity:
    """Whose a thread is, and what it is given at its start, or by its first turn, and never loses; last how it holds
    results: as outputs of tools or not.
    """
    return prompt.owner, prompt.model, prompt.head, prompt.verbosity, outputs


def binding_lines(prompt: Prompt) -> frozenset[OwnLine]:
    """The lines of ours at its end that say how to answer. Until it is answered, they hold for all that is asked."""
    return _BINDING & {*_lines(prompt), *([OwnLine.NO_TOOLS] if prompt.toolless else [])}


def _lines(prompt: Prompt) -> list[OwnLine | None]:
    return [item.ours for item in prompt.items[len(prompt.said) :]]


def weight(items: Sequence[Item]) -> int:
    """Characters that items take at codex; an image takes its data URL."""
    return sum(len(part.text if isinstance(part, Text) else part.url) for item in items for part in item.parts)


def _forms(items: Sequence[Item], answers: Collection[bytes]) -> Mapping[int, Collection[bytes]]:
    """`HeldThread.held` of `items` and their answer, which may come back with any of these meanings."""
    end = rounds = len(items)
    while rounds and (items[rounds - 1].role == "assistant" or items[rounds - 1].tool is not None):
        rounds -= 1
    meanings = [*map(_meaning, items)]
    held: defaultdict[int, set[bytes]] = defaultdict(set)
    # What all forms begin with is digested once.
    whole = blake2b(b"".join(meanings), digest_size=_DIGEST_SIZE)
    for answer in answers:
        held[end + bool(answer)].add(_behind(whole, answer))
    older = blake2b(b"".join(meanings[:rounds]), digest_size=_DIGEST_SIZE)
    for newest in as_one_round(items[rounds:], answers):
        held[rounds + len(newest)].add(_behind(older, b"".join(newest)))
    return held


def _behind(before: blake2b, meanings: bytes) -> bytes:
    rolling = before.copy()
    rolling.update(meanings)
    return rolling.digest()


def beginnings(meanings: Sequence[bytes], counts: Iterable[int]) -> Mapping[int, bytes]:
    """The digests of beginnings of a conversation, by the `counts` of their items, which have these `meanings`."""
    # Each meaning is of digests itself, all of one length, which say whether an item begins with them.
    rolling, at = blake2b(digest_size=_DIGEST_SIZE), 0
    digests: dict[int, bytes] = {}
    for count in sorted(counts):
        rolling.update(b"".join(meanings[at:count]))
        digests[count] = rolling.digest()
        at = count
    return digests


class Lanes(Struct):
    """The idle lanes of one session. `reason` is why the last request got the one that it got, or none."""

    bounds: LaneBounds
    reason: str = ""
    _idle: OrderedDict[HeldThread, None] = field(default_factory=OrderedDict)
    """Those that were used last stand last."""
    _characters: int = 0

    def __len__(self) -> int:
        return len(self._idle)

    def holds(self, prompt: Prompt, *, outputs: bool = False) -> bool:
        """Whether a lane would be taken."""
        return self._find(prompt, outputs)[0] is not None

    def take(self, prompt: Prompt, *, outputs: bool = False) -> HeldThread | None:
        """The lane that holds the longest true beginning of the prompt's conversation; nobody else's then."""
        best, count, self.reason = self._find(prompt, outputs)
        if best is None:
            return None
        best.count = count
        return self._remove(best)

    def _find(self, prompt: Prompt, outputs: bool) -> tuple[HeldThread | None, int, str]:
        """That lane, how many of the prompt's items it holds, and why it is this one or none."""
        items = prompt.said
        wanted = identity(prompt, outputs=outputs)
        # A request without tools may find some. Clients sum up a conversation, the longest that they have, by such a
        # request, and what is said then ends in a line of ours that forbids calls.
        toolless = prompt.toolless
        alike = [lane for lane in self._idle if lane.identity == wanted or (toolless and lane.bare == wanted)]
        # Something must be old, and something unanswered, or codex would have nothing to answer.
        end = len(items)
        counts = {at for lane in alike for at in lane.held if 0 < at < end + (lane.unanswered is not None)}
        known = beginnings([*map(_meaning, items)], counts) if counts else {}
        lines = binding_lines(prompt)
        asked = [lane for lane in alike if lane.unanswered is None or lane.unanswered <= lines]
        holding = {lane: at for lane in asked for at, held in lane.held.items() if known.get(at) in held}
        equal = [lane for lane in holding if prompt.effort is not None or not lane.effort]
        fitting = [lane for lane in equal if prompt.calls_held or not lane.calls_held]
        reason = _reason(items, alike, holding, equal, fitting)
        if not fitting:
            return None, 0, reason
        # Among equals that of the same conversation, then the one that was used last.
        best = max(fitting, key=lambda lane: (holding[lane], len(lane.names & prompt.names), lane.used))
        return best, holding[best], reason

    def keep(self, lane: HeldThread, now: float) -> list[HeldThread]:
        """`lane` is idle from `now` on. Returns those that are none any more for it."""
        lane.used = now
        self._idle[lane] = None
        self._characters += lane.characters
        gone = self.lapsed(now)
        while self._idle and (len(self._idle) > self.bounds.lanes or self._characters > self.bounds.characters):
            gone.append(self._remove(next(iter(self._idle))))
        return gone

    def lapsed(self, now: float) -> list[HeldThread]:
        """The lanes that were idle for too long, which are none any more."""
        gone: list[HeldThread] = []
        while self._idle and (oldest := next(iter(self._idle))).used + self.bounds.idle <= now:
            gone.append(self._remove(oldest))
        return gone

    def _remove(self, lane: HeldThread) -> HeldThread:
        del self._idle[lane]
        self._characters -= lane.characters
        return lane


def _reason(
    items: Sequence[Item],
    alike: Sequence[HeldThread],
    holding: Collection[HeldThread],
    equal: Sequence[HeldThread],
    fitting: Sequence[HeldThread],
) -> str:
    if fitting:
        return "history"
    if equal:
        return "held"
    if holding:
        return "effort"
    if "assistant" not in map(_role, items):
        return "first"
    return "other_history" if alike else "none_idle"
