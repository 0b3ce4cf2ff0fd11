"""Pairs results with their calls where a client did not.

    call a, call b, result a, user                 b has none: it is said to have no separate one. Clients merge
                                                   neighbouring tool messages, so that all but one lose their id
    result a, call a, user                         a stands too early: it is moved behind its call
    call a, result a, user, result a               a has two: both are shown, each where it stood
    call a, call a, result a, result a             one answer calls twice by one id: the results are theirs in order

OpenAI refuses these. Here a conversation is shown as text, where they leave no doubt. A client that has made such a
history cannot repair it: each later request holds it, too. The repair depends on the conversation alone, so it is the
same in each request.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from prompts import AssistantText, Entry, Guidance, PastCall, Text, ToolResult, UserTurn, no_result, outline_of

# What is done to results, as it is logged and counted.
DOUBLED, MISSING, REORDERED = REPAIRS = ("doubled", "missing", "reordered")


def missing_result(call_id: str) -> ToolResult:
    """What is shown where a call has no result."""
    return ToolResult(call_id, (Text(no_result()),))


class Paired(Struct, frozen=True):
    """A conversation in which each call has a result, and how often what was done for that."""

    entries: tuple[Entry, ...]
    repairs: Mapping[str, int] = field(default_factory=dict)


class _Calls(Struct):
    """The places of the calls of one id in one answer, the newest that has some: those without a result are waiting."""

    answer: int
    waiting: deque[int] = field(default_factory=deque)
    last: int = -1

    def take(self) -> int:
        """Whose the next result is, which is no longer waiting."""
        if self.waiting:
            self.last = self.waiting.popleft()
        return self.last


def paired(entries: Sequence[Entry]) -> Paired:
    """`entries` with a result for each call. A result belongs to the last call before it with its id; of several in one
    answer to the first that has none. Or else to the first one behind it; one without any call stays where it is.
    """
    said = tuple(entries)
    known = outline_of(said)
    # As in most conversations.
    return Paired(said) if known.paired and not known.waiting else _mended(said)


def _mended(entries: Sequence[Entry]) -> Paired:
    repairs: Counter[str] = Counter()
    called = {entry.call_id for entry in entries if isinstance(entry, PastCall)}
    latest: dict[str, _Calls] = {}
    answer = 0
    early: dict[str, list[ToolResult]] = {}
    results: defaultdict[int, list[ToolResult]] = defaultdict(list)
    moved: dict[int, list[ToolResult]] = {}
    kept: list[tuple[int, Entry]] = []
    for place, entry in enumerate(entries):
        match entry:
            case PastCall(call_id=call_id):
                if call_id not in latest or latest[call_id].answer != answer:
                    latest[call_id] = _Calls(answer)
                latest[call_id].waiting.append(place)
                if call_id in early:
                    moved[place] = early.pop(call_id)
                    results[place] += moved[place]
                    repairs[REORDERED] += len(moved[place])
            case ToolResult(call_id=call_id) if call_id in latest:
                answer += 1
                given = results[latest[call_id].take()]
                if entry in given:
                    continue  # said twice in the same words
                repairs[DOUBLED] += bool(given)
                given.append(entry)
            case ToolResult(call_id=call_id) if call_id in called:
                waiting = early.setdefault(call_id, [])
                if entry not in waiting:
                    waiting.append(entry)
                continue
            case UserTurn():
                answer += 1
            case _:
                pass
        kept.append((place, entry))
    for call_id, place in ((entry.call_id, place) for place, entry in kept if isinstance(entry, PastCall)):
        if not results[place]:
            moved[place] = [missing_result(call_id)]
            repairs[MISSING] += 1
    return Paired(tuple(_behind_their_calls(kept, moved)), {what: count for what, count in repairs.items() if count})


def _behind_their_calls(kept: Iterable[tuple[int, Entry]], moved: Mapping[int, list[ToolResult]]) -> Iterable[Entry]:
    """What was `moved` to a call stands behind the calls of its answer, and behind those results that stand there."""
    due: list[ToolResult] = []
    answered = False
    for place, entry in kept:
        match entry:
            case UserTurn():
                ends_answer = True
            case AssistantText() | PastCall():
                ends_answer = answered
            case _:
                ends_answer = False
        if ends_answer:
            yield from due
            due = []
        answered = isinstance(entry, ToolResult) or (answered and isinstance(entry, Guidance))
        yield entry
        due += moved.get(place, ())
    yield from due
