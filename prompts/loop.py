"""The loop guard's memory: which calls already have a result."""

from __future__ import annotations

from .canonical import canonical
from .transcript import PastCall, ToolResult, Transcript


def answered_calls(transcript: Transcript) -> frozenset[tuple[str, str]]:
    """Name and `canonical` arguments of each past call with a result behind it."""
    open_calls: dict[str, PastCall] = {}
    answered: set[tuple[str, str]] = set()
    for entry in transcript.entries:
        match entry:
            case PastCall(call_id=call_id):
                open_calls[call_id] = entry
            case ToolResult(call_id=call_id) if call := open_calls.get(call_id):
                if (arguments := canonical(call.arguments)) is not None:
                    answered.add((call.name, arguments))
            case _:
                pass
    return frozenset(answered)
