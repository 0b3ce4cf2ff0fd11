"""Identical results in a row: a model that repeats a call again and again is warned, then stopped."""

from __future__ import annotations

from prompts import Guidance, PastCall, ToolResult, Transcript, UserTurn

from ...errors import RequestError
from ..content import joined_text

# Identical results in a row at which the model is warned.
WARN_AT = 3

# Identical results in a row at which it is stopped.
STOP_AT = 5

# What the model is told.
WARNING = (
    "The last {count} results of the tool {name} were the same. Calling it again will not change that: use another "
    "tool, or answer with what you know."
)


def results_in_a_row(transcript: Transcript) -> tuple[str, int]:
    """The tool that gave the newest result, and how often in a row, since the user spoke, it gave just that."""
    names: dict[str, str] = {}
    newest, count = ("", ""), 0
    for entry in transcript.entries:
        match entry:
            case UserTurn():
                count = 0
            case PastCall(call_id, name, _):
                names[call_id] = name
            case ToolResult(call_id, parts):
                result = (names.get(call_id, ""), joined_text(parts))
                count = count + 1 if result == newest else 1
                newest = result
            case _:
                pass
    return newest[0], count


def guarded(transcript: Transcript) -> Transcript:
    """`transcript`, with a warning behind it if there is reason. Raises `RequestError` when it was of no use."""
    name, count = results_in_a_row(transcript)
    if count >= STOP_AT:
        raise RequestError(
            f"infinite loop detected: tool {name} called {count} times consecutively with the same result",
            code="infinite_loop",
            param="input",
        )
    if count < WARN_AT:
        return transcript
    warning = Guidance(WARNING.format(name=name, count=count))
    return Transcript((*transcript.entries, warning), transcript.instructions)
