"""The words of a turn as the conventions have them on a span: messages of parts, as JSON text.

https://github.com/open-telemetry/semantic-conventions-genai/tree/main/docs/gen-ai has their schemas. If a collector
does not answer, spans stay in memory. So only the end of a conversation is told, up to a bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import groupby
from typing import TypeAlias

import orjson

from prompts import AssistantText, Entry, Guidance, Image, Part, PastCall, Text, ToolResult, Transcript, UserTurn

from ...contracts import AnswerText, Reasoning, ToolCallArguments, ToolCallStarted, TurnEvent

# Characters of a part that are told, and of a conversation.
MOST_OF_PART = 20_000
MOST_OF_MESSAGES = 100_000

JsonPart: TypeAlias = dict[str, object]


def system_instructions(transcript: Transcript) -> str | None:
    """None where there are none."""
    return None if transcript.instructions is None else _json([_text(transcript.instructions)])


def input_messages(transcript: Transcript) -> str:
    """The newest messages, in order."""
    told: list[str] = []
    room = MOST_OF_MESSAGES
    for role, entries in reversed([(role, list(each)) for role, each in groupby(transcript.entries, _role)]):
        message = _json({"role": role, "parts": [part for entry in entries for part in _parts(entry)]})
        room -= len(message)
        if room < 0:
            break
        told.append(message)
    return f"[{','.join(reversed(told))}]"


def output_messages(events: Iterable[TurnEvent], finish: str) -> str:
    """The answer that left, as one message."""
    return _json([{"role": "assistant", "parts": _answered(events), "finish_reason": finish}])


def _role(entry: Entry) -> str:
    match entry:
        case Guidance():
            return "system"
        case UserTurn():
            return "user"
        case AssistantText() | PastCall():
            return "assistant"
        case ToolResult():
            return "tool"


def _parts(entry: Entry) -> list[JsonPart]:
    match entry:
        case Guidance(text) | AssistantText(text):
            return [_text(text)]
        case UserTurn(parts):
            return list(map(_part, parts))
        case PastCall(call_id, name, arguments):
            return [_call(call_id, name, arguments)]
        case ToolResult(call_id, parts):
            text = "\n".join(part.text if isinstance(part, Text) else "[an image]" for part in parts)
            return [{"type": "tool_call_response", "id": call_id, "response": _cut(text)}]


def _part(part: Part) -> JsonPart:
    # The image itself is nothing for a span.
    return {"type": "text", "content": "[an image]"} if isinstance(part, Image) else _text(part.text)


def _answered(events: Iterable[TurnEvent]) -> Sequence[JsonPart]:
    pieces: list[tuple[str, str, str, list[str]]] = []

    def add(kind: str, text: str, id: str = "", name: str = "") -> None:
        last = pieces[-1] if pieces else None
        if last is not None and last[0] == kind and not id:
            last[3].append(text)
        else:
            pieces.append((kind, id, name, [text]))

    for event in events:
        match event:
            case AnswerText(text):
                add("text", text)
            case Reasoning(text=text):
                add("reasoning", text)
            case ToolCallStarted(call_id, name):
                add("tool_call", "", call_id, name)
            case ToolCallArguments(text):
                add("tool_call", text)
            case _:
                pass
    return [
        _call(call, name, "".join(texts)) if kind == "tool_call" else _text("".join(texts), kind)
        for kind, call, name, texts in pieces
    ]


def _text(text: str, kind: str = "text") -> JsonPart:
    return {"type": kind, "content": _cut(text)}


def _call(id: str, name: str, arguments: str) -> JsonPart:
    told: object = _cut(arguments)
    if told == arguments:
        with suppress(orjson.JSONDecodeError):  # what is no JSON is told as the text that it is
            orjson.loads(arguments)
            told = orjson.Fragment(arguments)  # as it stands: a number may have more digits than one here
    return {"type": "tool_call", "id": id, "name": name, "arguments": told}


def _cut(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()  # a client may have cut an emoji in two
    return text if len(text) <= MOST_OF_PART else f"{text[:MOST_OF_PART]}… ({len(text)} characters)"


def _json(value: object) -> str:
    return orjson.dumps(value).decode()
