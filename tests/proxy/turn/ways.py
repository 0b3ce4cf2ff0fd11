"""Ways to ask for a turn, as `play` takes them: the request, and what the owner of the proxy chose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parser import ToolRegistry
from prompts import ChoiceMode, Entry, PastCall, Text, ToolChoice, ToolResult, Transcript, UserTurn
from proxy.contracts import OutputFormat
from proxy.turn import CallRelease, StreamJson

from .playing import LENIENT, STRICT, TOOLS, ask, keyless_model

Way = Mapping[str, Any]

CALLED = PastCall("c", "read_note", '{"path":"a.md"}'), ToolResult("c", (Text("# A"),))


def after(*entries: Entry, **changes: Any) -> Way:
    """Behind a user's words and these entries."""
    return {"request": ask(transcript=Transcript((UserTurn((Text("Read it."),)), *entries)), **changes)}


def demanding(*names: str, registry: ToolRegistry = TOOLS) -> Way:
    """A call of one of these tools, or of any."""
    return {"request": ask(registry=registry, choice=ToolChoice(ChoiceMode.REQUIRED, names or None))}


FREE: Way = {}
DEMANDED: Way = demanding()
# The tool has a schema, to which its arguments are held if it is strict.
FITTING: Way = {"request": ask(registry=LENIENT)}
ALL_STRICT: Way = {"request": ask(registry=STRICT)}
WHOLE: Way = {"request": ask(streamed=False)}
AS_JSON: Way = {"request": ask(output_format=OutputFormat())}
EARLY: Way = {**AS_JSON, "options": keyless_model(stream_json=StreamJson.EARLY)}
LIVE: Way = {"options": keyless_model(CallRelease.LIVE)}
GOES_ROUND: Way = after(*CALLED, *CALLED)
