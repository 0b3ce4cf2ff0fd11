"""What of an answer the client was given, as the entries that it will send back with the conversation."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from parser import CALL, CALLS, CLOSE_TAG, OPEN_TAG, end_of_value
from prompts import AssistantText, PastCall, canonical, meaning_of_answer, unescape, unescape_json

from ..contracts import (
    AnswerMessageEnded,
    AnswerText,
    BackendEvent,
    MessageEnded,
    TextPiece,
    ToolCallArguments,
    ToolCallStarted,
    TurnEvent,
)

_SPACE = re.compile(r"[ \t\r\n]*+")
# Members of a call that name it.
_IDS = ("call_id", "id")


class Given:
    """Shown all events of a turn as they leave, and what the model wrote as it came."""

    __slots__ = ("_calls", "_entries", "_text", "_written")

    def __init__(self) -> None:
        self._written: list[str] = []
        self._entries: list[AssistantText | ToolCallStarted] = []
        self._text: list[str] = []
        self._calls: dict[str, list[str]] = {}

    def hear(self, batch: Sequence[BackendEvent]) -> None:
        for event in batch:
            match event:
                case TextPiece(text):
                    self._written.append(text)
                case MessageEnded():
                    self._written.append("\n")
                case _:
                    pass

    def note(self, events: Sequence[TurnEvent]) -> None:
        for event in events:
            match event:
                case AnswerText(text):
                    self._text.append(text)
                case ToolCallArguments(text):
                    self._calls[next(reversed(self._calls))].append(text)
                case ToolCallStarted(call_id):
                    self._end_text()
                    self._entries.append(event)
                    self._calls[call_id] = []
                case AnswerMessageEnded():
                    self._end_text()
                case _:
                    pass

    def _end_text(self) -> None:
        if self._text:
            self._entries.append(AssistantText("".join(self._text)))
            self._text.clear()

    @property
    def wrote_nothing(self) -> bool:
        """Whether the model left no word."""
        return not "".join(self._written).strip()

    def rewritten(self, *, held: bool) -> bool:
        """Whether it is anything else than what the model wrote, read to the letter.

        White space, the spelling of JSON, arguments in a string, keys and neutral members of calls do not count.
        `held`: it was to write its calls as one JSON object.
        """
        entries = self._noted()
        written = "".join(self._written)
        prose, blocks = _read_held(written) if held else _read(written)
        calls = [entry for entry in entries if isinstance(entry, PastCall)]
        texts = "".join(entry.text for entry in entries if isinstance(entry, AssistantText))
        as_written = (
            "".join(texts.split()) == "".join(unescape(prose).split())
            and len(blocks) == len(calls)
            and all(map(_is_call, blocks, calls))
        )
        return not as_written

    def meaning(self) -> bytes:
        """Of all that was noted, as a conversation would have it."""
        return meaning_of_answer(self._noted())

    def _noted(self) -> list[AssistantText | PastCall]:
        self._end_text()
        return [
            entry
            if isinstance(entry, AssistantText)
            else PastCall(entry.call_id, entry.name, "".join(self._calls[entry.call_id]))
            for entry in self._entries
        ]


def _read(written: str) -> tuple[str, list[str]]:
    """The text between the calls, a line break for each of them, and their JSON. Only what is well-formed is a call."""
    prose: list[str] = []
    blocks: list[str] = []
    pos = 0
    while (start := written.find(OPEN_TAG, pos)) >= 0:
        prose.append(written[pos:start])
        begin = start + len(OPEN_TAG)
        # By its JSON, as a close tag may stand in a string.
        end = end_of_value(written, _after_space(written, begin)) or begin
        pos = _after_space(written, end)
        if end > begin and written.startswith(CLOSE_TAG, pos):
            blocks.append(written[begin:end])
            prose.append("\n")
            pos += len(CLOSE_TAG)
        else:
            prose.append(written[start:pos])
    return "".join((*prose, written[pos:])), blocks


def _read_held(written: str) -> tuple[str, list[str]]:
    """As `_read`, of an answer that is held to the schema of calls; one that is not of that form is all text."""
    try:
        [(member, calls)] = json.loads(written).items()
    except (ValueError, AttributeError, RecursionError):
        return written, []
    if member == CALL:
        calls = [calls]
    elif member != CALLS or not isinstance(calls, list):
        return written, []
    return "", [json.dumps(call) for call in calls]


def _after_space(text: str, pos: int) -> int:
    space = _SPACE.match(text, pos)
    return space.end() if space else pos


def _is_call(block: str, call: PastCall) -> bool:
    """Whether the JSON of a block is this call, and no other id stands in it."""
    try:
        written = json.loads(unescape_json(block))
        arguments = written["arguments"]
        told = [written["name"], canonical(arguments if isinstance(arguments, str) else json.dumps(arguments))]
        ids = {written.get(name) or call.call_id for name in _IDS}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return False
    return told == [call.name, canonical(call.arguments)] and None not in told and ids == {call.call_id}
