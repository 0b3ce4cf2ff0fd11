"""The bytes of a streamed Chat Completion to backend events: a state machine without I/O.

    open --reasoning--> thinking --text--> saying          what comes between two reads leaves as one piece
      '------- finish_reason --> finished ----- [DONE], or the end of the bytes --> over
      '------- an error, a call, bytes that are no stream, their end -------------> failed

Server-sent events as these servers write them: one event is one line `data: {...}`; other lines say nothing.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from ...contracts import BackendEvent, MessageEnded, ReasoningEnded, ReasoningPiece, TextPiece, TurnEnded, Usage
from ...errors import BackendError
from ..answers import DISCONNECTED, FAILED, NOT_TEXT_ONLY
from .errors import failure, rejection_in
from .thinking import ThinkingReader, Thought

# Bytes of one event: a server that does not stream says all at once.
MAX_LINE = 16 * 2**20

# Why a server ended an answer that it cut.
_CUT: Mapping[str, str] = {"length": "max_output_tokens", "content_filter": "content_filter"}
_CALLED = {"tool_calls", "function_call"}


class _FailedError(Exception):
    def __init__(self, error: BackendError) -> None:
        self.error = error


class ChatStream:
    """One answer of `server`, as a sentence begins with it. What it thinks is told if `reasoning`.

    `receive` returns what the bytes tell; then `failed` says whether it ends there. `done`: only the end is to come.
    """

    def __init__(self, server: str, *, reasoning: bool = True, key: str | None = None) -> None:
        self._server = server
        self._wanted = reasoning
        self._key = key
        self._begun = b""
        self._thinking = ThinkingReader()
        self._text: list[str] = []
        self._thought: list[str] = []
        self._reasons = False  # a reasoning item is open
        self._spoke = False
        self._reason: str | None = None
        self._usage: Usage | None = None
        self.done = False
        self.failed: BackendError | None = None

    def receive(self, data: bytes) -> list[BackendEvent]:
        *lines, self._begun = (self._begun + data).split(b"\n")
        events: list[BackendEvent] = []
        try:
            for line in lines:
                self._line(line.strip(), events)
            if len(self._begun) > MAX_LINE:
                raise self._no_stream("an event that is too long")
        except _FailedError as failed:
            self.failed = failed.error
        self._flush(events)
        return events

    def receive_eof(self) -> list[BackendEvent]:
        """The end of the bytes, in good order or not: only an answer that was finished is whole.

        There are servers that never say why one ended; where one says nothing else, it was not the model that ended it.
        """
        events = self.receive(b"\n") if self._begun and not self.done else []
        said_anything = self._spoke or self._reasons or self._usage is not None
        if self.failed is None and not (self._reason or (self.done and said_anything)):
            self.failed = BackendError(f"{self._server} ended its answer in the middle.", **DISCONNECTED)
        if self.failed is None:
            for piece in self._thinking.receive_eof():
                self._take(piece, events)
            self._flush(events)
            events += [ReasoningEnded()] if self._reasons else []
            events += [MessageEnded()] if self._spoke else []
            events.append(TurnEnded(self._usage, _CUT.get(self._reason or "")))
        return events

    def _line(self, line: bytes, events: list[BackendEvent]) -> None:
        if self.done:
            return
        line = line.removeprefix(BOM_UTF8)
        if line.startswith(b"data:"):
            data = line[5:].strip()
        elif line.startswith(b"error:"):  # as llama.cpp once wrote them
            data = b'{"error":%b}' % line[6:].strip()
        else:
            return
        if data == b"[DONE]":
            self.done = True
        elif data:
            self._chunk(data, events)

    def _chunk(self, data: bytes, events: list[BackendEvent]) -> None:
        try:
            chunk = orjson.loads(data)
        except orjson.JSONDecodeError:
            raise self._no_stream("what is no JSON") from None
        if not isinstance(chunk, dict):
            raise self._no_stream("what is no completion")
        if chunk.get("error") or chunk.get("object") == "error":  # as FastChat writes its error objects
            raise _FailedError(failure(rejection_in(chunk), self._server, key=self._key))
        if isinstance(usage := chunk.get("usage"), dict):
            self._usage = _usage(usage)
        choices = chunk.get("choices") or ()
        if not isinstance(choices, Sequence):
            raise self._no_stream("what is no completion")
        for choice in choices:
            self._choice(choice, events)

    def _choice(self, choice: Any, events: list[BackendEvent]) -> None:  # noqa: ANN401 -- whatever a server sends
        if not isinstance(choice, dict):
            raise self._no_stream("what is no completion")
        # A server that does not stream has a message.
        delta = choice.get("delta") or choice.get("message")
        reason = choice.get("finish_reason")
        if isinstance(delta, dict):
            thought = delta.get("reasoning_content") or delta.get("reasoning")
            if isinstance(thought, str) and thought:
                self._take(Thought(thought), events)
            if text := _said(delta):
                for piece in (text,) if self._thinking.over else self._thinking.receive_text(text):
                    self._take(piece, events)
            if delta.get("tool_calls") or delta.get("function_call"):
                raise self._called()
        if reason in _CALLED:
            raise self._called()
        if isinstance(reason, str) and reason:
            self._reason = reason

    def _take(self, piece: Thought | str, events: list[BackendEvent]) -> None:
        if isinstance(piece, Thought):
            if self._text:
                self._flush(events)
            self._thought.append(piece.text)
            self._reasons = True
            return
        if self._reasons:
            self._flush(events)
            events.append(ReasoningEnded())
            self._reasons = False
        self._spoke = True
        self._text.append(piece)

    def _flush(self, events: list[BackendEvent]) -> None:
        """At most one of the two kinds waits."""
        if self._text:
            events.append(TextPiece("".join(self._text)))
            self._text = []
        if self._thought:
            if self._wanted:
                events.append(ReasoningPiece(0, "".join(self._thought)))
            self._thought = []

    def _called(self) -> _FailedError:
        sentence = f"{self._server} made a tool call of its own, although it was offered no tool."
        return _FailedError(BackendError(sentence, **NOT_TEXT_ONLY))

    def _no_stream(self, what: str) -> _FailedError:
        return _FailedError(BackendError(f"{self._server} sent {what}.", **FAILED))


def _said(delta: Mapping[str, Any]) -> str:
    match delta.get("content"):
        case str(text):
            return text or _refused(delta)
        case list(parts):
            return "".join(_texts(parts))
        case _:
            return _refused(delta)


def _refused(delta: Mapping[str, Any]) -> str:
    refusal = delta.get("refusal")
    return refusal if isinstance(refusal, str) else ""


def _texts(parts: list[Any]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, dict) and isinstance(text := part.get("text"), str):
            yield text


def _usage(told: Mapping[str, Any]) -> Usage:
    asked, answered = told.get("prompt_tokens_details"), told.get("completion_tokens_details")
    return Usage(
        input_tokens=_count(told, "prompt_tokens"),
        cached_tokens=_count(asked, "cached_tokens"),
        output_tokens=_count(told, "completion_tokens"),
        reasoning_tokens=_count(answered, "reasoning_tokens"),
    )


def _count(told: object, name: str) -> int:
    value = told.get(name) if isinstance(told, dict) else None
    return value if isinstance(value, int) and value > 0 else 0
