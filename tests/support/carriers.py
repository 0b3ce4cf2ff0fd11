"""Where a note can stand in a request, so that a model reads it and may copy the call in it."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from msgspec.structs import replace

from parser import Tool, ToolRegistry
from prompts import AssistantText, Guidance, Image, PastCall, Text, ToolResult, UserTurn, compacted, summarised
from proxy.contracts import OutputFormat, TurnRequest
from proxy.wire.responses.request import parse_responses_request
from proxy.wire.tools import MAX_TOOL_NAME

from .vault_talk import MODEL, SCHEMA, TOOLS, conversation, output, user

SHOW = user("Show me note.md.")
AGAIN = user("Show me the note again.")


class Trust(Enum):
    """Whose words a carrier holds."""

    ANYBODY = "anybody"
    """Notes, pages and messages that the user pastes: whoever wrote them may want a call to run."""
    DEVELOPER = "developer"
    """Whoever writes these has the tools: nothing is won by a call that a model is talked into."""
    UNREAD = "unread"
    """Anybody's, and in no text of the request: only the model can read it."""


@dataclass(frozen=True, slots=True)
class Carrier:
    """`new`: the note stands in the output of a tool that is newer than the last user message."""

    name: str
    carry: Callable[[str], TurnRequest]
    trust: Trust = Trust.ANYBODY
    new: bool = False


def _halves(note: str) -> tuple[str, str]:
    """The note cut inside of its call."""
    middle = len(note) // 2
    return note[:middle], note[middle:]


def _read(number: int) -> PastCall:
    return PastCall(f"call_{number}", "read_note", json.dumps({"path": f"{number}.md"}))


def _result(number: int, *parts: Text | Image) -> ToolResult:
    return ToolResult(f"call_{number}", parts)


def _one_of_several(note: str) -> TurnRequest:
    results = (_result(1, Text("Milk, bread.")), _result(2, Text(note)), _result(3, Text("")))
    return conversation(user("Show me all notes."), *map(_read, (1, 2, 3)), *results)


def _over_two(note: str) -> TurnRequest:
    first, second = _halves(note)
    return conversation(
        user("Show me both notes."), _read(1), _read(2), _result(1, Text(first)), _result(2, Text(second))
    )


def _before_another_read(note: str) -> TurnRequest:
    return conversation(SHOW, _read(1), _result(1, Text(note)), _read(2), _result(2, Text("Milk, bread.")))


def _old_output(note: str) -> TurnRequest:
    asked = user("Now show me what note.md says.")
    return conversation(user("Read note.md."), *output(note), AssistantText("It is a short note."), asked)


def _past_arguments(note: str) -> TurnRequest:
    written = PastCall("call_1", "write_note", json.dumps({"path": "b.md", "content": note}))
    done = (ToolResult("call_1", (Text("ok"),)), AssistantText("It is written."))
    return conversation(user("Write down what I said."), written, *done, user("Show me what you wrote into b.md."))


def _cut_message(note: str) -> TurnRequest:
    """As the parts of an assistant's message are joined."""
    return conversation(SHOW, AssistantText("\n".join(_halves(note))))


def _cut_messages(note: str) -> TurnRequest:
    return conversation(SHOW, *map(AssistantText, _halves(note)), AGAIN)


def _summary_before(note: str) -> TurnRequest:
    return conversation(user("Read note.md."), user(summarised(f"The user asked for note.md. It says:\n{note}")), AGAIN)


def _summary_last(note: str) -> TurnRequest:
    """As it stands where a conversation is made short before the answer."""
    entries = (user("Read note.md."), *output(note), AssistantText("I have read it."), AGAIN)
    return conversation(*compacted(entries, f"The user asked for note.md. It says:\n{note}", whole=True))


def _file(note: str, name: str = "note.md") -> TurnRequest:
    data = f"data:text/markdown;base64,{b64encode(note.encode()).decode()}"
    content = [
        {"type": "input_file", "filename": name, "file_data": data},
        {"type": "input_text", "text": "Show me what the file says."},
    ]
    body: Any = {"model": MODEL, "input": [{"role": "user", "content": content}]}
    return replace(parse_responses_request(body).turn, registry=TOOLS)


def _picture() -> Image:
    """What it shows is nothing that a program reads."""
    return Image(f"data:image/png;base64,{b64encode(b'a picture of a note').decode()}")


def _described(**changed: str) -> ToolRegistry:
    """The tools, of which the one that writes notes is `changed`: who forges a call need not own its tool."""
    return ToolRegistry([replace(tool, **changed) if tool.name == "write_note" else tool for tool in TOOLS])


def _tools(**changed: str) -> TurnRequest:
    return conversation(user("Show me how a note is written."), tools=_described(**changed))


def _property(schema: dict[str, Any], name: str = "path") -> TurnRequest:
    return _tools(parameters=json.dumps({"type": "object", "properties": {name: schema}}))


def _tool_name(note: str) -> TurnRequest:
    """What is left of a note in a name: the model has to guess its signs."""
    name = re.sub(r"[^a-zA-Z0-9_-]+", "_", note)[:MAX_TOOL_NAME]
    tools = ToolRegistry([*TOOLS, Tool(name, None, SCHEMA)])
    return conversation(user("Show me which tools there are."), tools=tools)


def _answer_schema(note: str) -> TurnRequest:
    schema = json.dumps({"type": "object", "description": note})
    return replace(conversation(user("Show me an example.")), output_format=OutputFormat(schema))


CARRIERS = (
    Carrier("user message", lambda note: conversation(user(f"Show me this note:\n\n{note}"))),
    Carrier("user message in parts", lambda note: conversation(user("Show me this note:", *_halves(note)))),
    Carrier("earlier user message", lambda note: conversation(
        user(f"This is a note:\n\n{note}"), AssistantText("I have read it."), AGAIN
    )),
    Carrier("two user messages", lambda note: conversation(SHOW, *map(user, _halves(note)))),
    Carrier("earlier assistant message", lambda note: conversation(SHOW, AssistantText(note), AGAIN)),
    Carrier("assistant message, cut", _cut_message),
    Carrier("two assistant messages, cut", _cut_messages),
    Carrier("new tool output", lambda note: conversation(SHOW, *output(note)), new=True),
    Carrier("new tool output in parts", lambda note: conversation(SHOW, *output(*_halves(note))), new=True),
    Carrier("one of several new outputs", _one_of_several, new=True),
    Carrier("two new outputs, cut", _over_two, new=True),
    Carrier("new output before another", _before_another_read, new=True),
    Carrier("old tool output", _old_output),
    Carrier("arguments of a past call", _past_arguments),
    Carrier("summary of the conversation", _summary_before),
    Carrier("summary behind the last message", _summary_last),
    Carrier("file", _file),
    Carrier("name of a file", lambda note: _file("Milk, bread.", note)),
    Carrier("instructions", lambda note: conversation(
        user("Show me an example."), instructions=f"A note of ours looks so:\n{note}"
    ), Trust.DEVELOPER),
    Carrier("developer message", lambda note: conversation(
        Guidance(f"A note of ours looks so:\n{note}"), user("Show me an example.")
    ), Trust.DEVELOPER),
    Carrier("later developer message", lambda note: conversation(SHOW, Guidance(note)), Trust.DEVELOPER),
    Carrier("description of a tool", lambda note: _tools(description=note), Trust.DEVELOPER),
    Carrier("description of a parameter", lambda note: _property(
        {"type": "string", "description": note}
    ), Trust.DEVELOPER),
    Carrier("value of an enum", lambda note: _property({"enum": [note, "b.md"]}), Trust.DEVELOPER),
    Carrier("default of a parameter", lambda note: _property(
        {"type": "string", "default": note}
    ), Trust.DEVELOPER),
    Carrier("name of a parameter", lambda note: _property({"type": "string"}, note), Trust.DEVELOPER),
    Carrier("name of a tool", _tool_name, Trust.DEVELOPER),
    Carrier("schema of the answer", _answer_schema, Trust.DEVELOPER),
    Carrier("picture", lambda note: conversation(
        UserTurn((Text("Show me what it says:"), _picture()))
    ), Trust.UNREAD),
    Carrier("picture from a tool", lambda note: conversation(
        SHOW, _read(1), _result(1, _picture())
    ), Trust.UNREAD),
)  # fmt: skip
