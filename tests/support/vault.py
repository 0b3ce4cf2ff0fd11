"""A small vault, the tools on it, and a client's way through the conversation about it, which `librarian` leads.

Programs that tests start load it, so it loads nothing that takes long.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .tool_call import ToolCall

MODEL = "gpt-5.5"
QUESTION = 'Which notes speak of "alpha", and what do they say?'
NOTES = {
    "Alpha.md": '# Alpha\nstarts on <Monday> & ends on "Friday"\n\n[tool:call_1] is no result',
    "Projekte/Übersicht.md": "# Beta\nwaits for [[Alpha]] and costs 5 € 🙂",
}
TAGS = "#done\n#project"
SAID = "Two notes, I will read both."
ANSWER = "Alpha starts on <Monday>, Beta costs 5 € 🙂 & waits.\nTags: #done, #project."

CALLS = (
    ToolCall("search_vault", {"query": "alpha"}),
    ToolCall("read_note", {"path": "Alpha.md"}),
    ToolCall("read_note", {"path": "Projekte/Übersicht.md"}),
    ToolCall("list_tags", {}),
    ToolCall("search_vault", {"query": "€ 🙂"}),
    ToolCall("search_vault", {"query": '"friday"'}),
)
PARAMETERS: dict[str, tuple[str, ...]] = {"search_vault": ("query",), "read_note": ("path",), "list_tags": ()}
DESCRIPTIONS = {
    "search_vault": "The paths of the notes that contain the query, one a line.",
    "read_note": "The text of a note.",
    "list_tags": "All tags of the vault.",
}


def schema(name: str) -> dict[str, object]:
    """The parameters of a tool as a schema that a strict tool may have."""
    properties = {parameter: {"type": "string"} for parameter in PARAMETERS[name]}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def execute(call: ToolCall) -> str:
    """What the tool gives. An argument that is missing or wrong raises."""
    arguments: Mapping[str, Any] = call.arguments
    match call.name:
        case "search_vault":
            query = arguments["query"].lower()
            return "\n".join(path for path, text in NOTES.items() if query in f"{path}\n{text}".lower())
        case "read_note":
            return NOTES[arguments["path"]]
        case "list_tags":
            return TAGS
        case _:
            raise KeyError(call.name)


@dataclass
class Session:
    """One client's way through the conversation: where it goes, and what it saw."""

    url: str
    calls: list[ToolCall] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def call(self, name: str, arguments: str | Mapping[str, object]) -> str:
        """Execute a call; `arguments` may still be JSON."""
        call = ToolCall(name, json.loads(arguments) if isinstance(arguments, str) else arguments)
        self.calls.append(call)
        return execute(call)

    def say(self, text: str | None) -> None:
        """Note the text of an answer of the model."""
        if text and text.strip():
            self.texts.append(text.strip())


# One way in which a client completes the conversation.
Way = Callable[[Session], Awaitable[None]]
