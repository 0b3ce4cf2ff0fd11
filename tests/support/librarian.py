"""The model in the conversation about the vault, which every client has to complete.

The model searches (one call, no text), says something and reads two notes in one answer (parallel
calls), asks for the tags (a call without arguments), searches twice more and answers: six requests.
"""

from __future__ import annotations

from .conversation import Round, conversation
from .tool_call import ToolCall
from .vault import ANSWER, CALLS, SAID, execute


def _round(text: str, *calls: ToolCall) -> Round:
    return Round(text, calls, tuple(map(execute, calls)))


ROUNDS = (
    _round("", CALLS[0]),
    _round(SAID, *CALLS[1:3]),
    *(_round("", call) for call in CALLS[3:]),
    _round(ANSWER),
)
librarian = conversation(ROUNDS)
