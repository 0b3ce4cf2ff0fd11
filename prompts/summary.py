"""A conversation made short: how its summary is asked for, and what stands in its place afterwards.

    user  call  result  assistant  user  |  summary        the user's messages stay
                                   user  |  summary        `whole`: only the newest of them

Guidance stays too, and a call that still waits for its result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .passages import passage
from .transcript import Entry, Guidance, PastCall, Text, ToolResult, UserTurn


def compaction_request() -> str:
    """The last message of a conversation that is to be summed up."""
    return passage("compaction")


def summarised(summary: str) -> str:
    """The message that stands for what `summary` sums up."""
    return f"{passage('summary')}\n\n{summary}"


def to_sum_up(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """A conversation whose next answer is its summary."""
    return (*entries, UserTurn((Text(compaction_request()),)))


def is_summary(entry: UserTurn) -> bool:
    """Whether it is no message of the user, but stands for what was summed up."""
    match entry.parts:
        case (Text(text), *_):
            return text.startswith(passage("summary"))
        case _:
            return False


def compacted(entries: Sequence[Entry], summary: str, *, whole: bool) -> tuple[Entry, ...]:
    """What is shown once `summary` stands for `entries`: it comes last, and an older one is in it."""
    asked = [at for at, entry in enumerate(entries) if isinstance(entry, UserTurn) and not is_summary(entry)]
    kept = frozenset(asked[-1:] if whole else asked)
    answered = {entry.call_id for entry in entries if isinstance(entry, ToolResult)}

    def stays(at: int, entry: Entry) -> bool:
        match entry:
            case Guidance():
                return True
            case PastCall(call_id):
                return call_id not in answered
            case _:
                return at in kept

    beside = (entry for at, entry in enumerate(entries) if stays(at, entry))
    return (*beside, UserTurn((Text(summarised(summary)),)))
