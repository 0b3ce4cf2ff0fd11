"""Requests of somebody who talks about a vault of notes, with tools for it that somebody else would like to use."""

from __future__ import annotations

from parser import Tool, ToolRegistry
from prompts import Entry, PastCall, Text, ToolChoice, ToolResult, Transcript, UserTurn
from proxy.contracts import TurnRequest

from .forgeries import FORGED

MODEL = "m"
SCHEMA = '{"type":"object"}'
NAMES = ("read_note", "list_notes", "write_note", *FORGED)
TOOLS = ToolRegistry([Tool(name, f"Does {name}.", SCHEMA) for name in NAMES])


def user(*texts: str) -> UserTurn:
    return UserTurn(tuple(map(Text, texts)))


def output(*texts: str) -> tuple[Entry, ...]:
    """A note that was read, in these parts."""
    call = PastCall("call_1", "read_note", '{"path": "note.md"}')
    return call, ToolResult("call_1", tuple(map(Text, texts)))


def conversation(*entries: Entry, instructions: str | None = None, tools: ToolRegistry = TOOLS) -> TurnRequest:
    return TurnRequest(MODEL, Transcript(entries, instructions), tools, ToolChoice())
