"""Tell a call that was read as a whole, in agreement with what was told while it was written."""

from __future__ import annotations

from collections.abc import Sequence

from .call_shape import Call
from .events import CallCompleted, CallStarted, ParserEvent, Tier
from .live_call import LiveCall
from .read_block import Calls, Malformed


def continuing(live: LiveCall, reading: Calls | Malformed) -> Calls | Malformed:
    """The reading, if it takes back nothing of what `live` told."""
    if live.name is None or isinstance(reading, Malformed):
        return reading
    first = reading.calls[0]
    if first.name == live.name and first.arguments.startswith("".join(live.arguments)):
        return reading
    return Malformed("the repaired call is not the one that was begun")


def events_left(live: LiveCall, calls: Sequence[Call], raw: str, before: str) -> list[ParserEvent]:
    """The events that are left to tell of `calls`, which go on from `live`; the first carries the text."""
    events: list[ParserEvent] = []
    for index, call in enumerate(calls, live.index):
        begun = index == live.index and live.name is not None
        told = sum(map(len, live.arguments)) if begun else 0
        if not begun:
            events.append(CallStarted(index, call.name, call.id, call.extra))
        if live.tells and told < len(call.arguments):
            events.append(call.arguments[told:])
        events.append(_completed(index, call, raw, before))
        raw = before = ""
    return events


def _completed(index: int, call: Call, raw: str, before: str) -> CallCompleted:
    tier = Tier.REPAIRED if call.rules else Tier.VALID
    repairs = tuple([rule.value for rule in call.rules]) if call.rules else ()
    return CallCompleted(index, call.name, call.arguments, call.id, raw, tier, repairs, call.extra, before)
