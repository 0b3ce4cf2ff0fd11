"""A conversation without its oldest part, if the whole of it is too long for the model.

    user  assistant  |  user  call result  |  user*  |  call result  |  call call result result*
    `---- goes as one ----'                             `-- goes as one --'

Turns go whole. In the newest turn, the calls of one answer go together with their results. Starred entries stay: the
newest message of the user and what came last. Guidance stays too.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from .transcript import AssistantText, Entry, Guidance, Image, PastCall, ToolResult, Transcript, UserTurn

# Of the conversation's length, what goes at a time at least.
SHARE = 0.25

# What an image weighs, in characters.
IMAGE_CHARACTERS = 4_000


def without_oldest(transcript: Transcript) -> Transcript | None:
    """`transcript` without a quarter of its length or more; None when nothing more can go."""
    entries = transcript.entries
    # Without the newest request of the user what is left has no question in it.
    newest = max((index for index, entry in enumerate(entries) if isinstance(entry, UserTurn)), default=-1)
    left_to_drop = SHARE * sum(map(_weight, entries))
    dropped: set[int] = set()
    # Never the last group: it is what the model is to go on from.
    for group in _groups(entries, newest)[:-1]:
        if left_to_drop <= 0:
            break
        if newest not in group:
            dropped.update(group)
            left_to_drop -= sum(_weight(entries[index]) for index in group)
    if not dropped:
        return None
    # A result may have come later than its own turn, and without its call it would be nobody's.
    calls = {entry.call_id for index in dropped if isinstance(entry := entries[index], PastCall)}
    kept = tuple(
        entry
        for index, entry in enumerate(entries)
        if index not in dropped and not (isinstance(entry, ToolResult) and entry.call_id in calls)
    )
    return replace(transcript, entries=kept)


def _groups(entries: Sequence[Entry], newest: int) -> list[list[int]]:
    """The indices of what goes together, oldest first; `newest` is that of the newest user message."""
    groups: list[list[int]] = []
    before: Entry | None = None
    for index, entry in enumerate(entries):
        if isinstance(entry, Guidance):
            continue
        # In the newest turn, which may be the whole conversation of an agent, each answer with its results is a group.
        answers_newest = index > newest and not isinstance(entry, ToolResult)
        begins_answer = answers_newest and isinstance(before, UserTurn | ToolResult | None)
        if isinstance(entry, UserTurn) or begins_answer or not groups:
            groups.append([])
        groups[-1].append(index)
        before = entry
    return groups


def _weight(entry: Entry) -> int:
    match entry:
        case Guidance():
            return 0
        case UserTurn(parts) | ToolResult(_, parts):
            return sum(IMAGE_CHARACTERS if isinstance(part, Image) else len(part.text) for part in parts)
        case AssistantText(text):
            return len(text)
        case PastCall(_, name, arguments):
            return len(name) + len(arguments)
