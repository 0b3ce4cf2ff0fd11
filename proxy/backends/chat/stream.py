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

from ...contracts import (
    BackendEvent,
    MessageEnded,
    ReasoningEnded,
    ReasoningPiece,
    TextPiece,
    TurnEnded,
    Usage,
    token_count,
)
from ...errors import BackendError
from ..answers import DISCONNECTED, FAILED, NOT_TEXT_ONLY
from .characters import CharacterReader, read_cut, read_whole
from .errors import failure, rejection_in
from .thinking import ThinkingReader, Thought, calls_at_end

# Bytes of one event: a server that does not stream says all at once.
MAX_LINE = 16 * 2**20

# Choices of one event. One answer is asked for; a few more that are sent all the same are passed over.
MOST_CHOICES = 16

# Characters that wait until it is known whether they are a thought: an answer of so many would have told it by now.
MOST_UNSURE = 1 << 20

# Why a server ended an answer that it cut.
_CUT: Mapping[str, str] = {"length": "max_output_tokens", "content_filter": "content_filter"}
_NO_REASON = {"", "null"}
_CALLED = {"tool_calls", "function_call"}
# What a thought is called beside the answer, and what the kind of a part of the answer begins with that is one.
_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
_KINDS_OF_THOUGHT = ("thinking", "reasoning")


class _FailedError(Exception):
    def __init__(self, error: BackendError) -> None:
        self.error = error


class ChatStream:
    """One answer of `server`, as a sentence begins with it. What it thinks is told if `reasoning`.

    `inside`: the model begins inside of a thought, if the server does not tell it apart; where that is not `sure`, it
    is told when it is closed.

    `receive` returns what the bytes tell; then `failed` says whether it ends there. `ended`: it said why it did, and
    only its usage may be to come. `done`: only the end of the bytes is.
    """

    def __init__(
        self, server: str, *, reasoning: bool = True, inside: bool = False, sure: bool = True, key: str | None = None
    ) -> None:
        self._server = server
        self._wanted = reasoning
        self._key = key
        self._begun = bytearray()  # of a line; what is added to it is not copied with all of it
        # The texts of the last chunks that had nothing else: read as one.
        self._plain: list[str] = []
        self._characters = CharacterReader()
        self._thinking = ThinkingReader(inside=inside)
        self._sure = sure
        self._waits = MOST_UNSURE
        self._thoughts: list[str] = []
        self._text: list[str] = []
        self._thought: list[str] = []
        self._reasons = False  # a reasoning item is open
        self._spoke = False
        self._reason: str | None = None
        self._usage: Usage | None = None
        self._went_on = False  # behind a reason to end, which was none then
        self.thought = False
        """Whether the model has thought, as far as that was told."""
        self.done = False
        self.failed: BackendError | None = None

    @property
    def ended(self) -> bool:
        return self.done or (self._reason is not None and not self._went_on)

    @property
    def begun_in_prompt(self) -> bool | None:
        """Whether the model began inside of a thought, as far as its text has told."""
        return self._thinking.begun_in_prompt

    def receive(self, data: bytes) -> list[BackendEvent]:
        *lines, begun = data.split(b"\n")
        if lines and self._begun:
            lines[0], self._begun = bytes(self._begun + lines[0]), bytearray()
        self._begun += begun
        events: list[BackendEvent] = []
        try:
            for line in filter(None, lines):
                self._line(line.strip(), events)
            if len(self._begun) > MAX_LINE:
                raise self._no_stream("an event that is too long")
        except _FailedError as failed:
            self.failed = failed.error
        self._say_plain(events)
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
            if cut := self._characters.receive_eof():
                self._say(cut, events)
            for piece in self._thinking.receive_eof():
                self._take(piece, events)
            meant, self._sure = self._meant(), True
            if meant:
                self._take(meant, events)
            self._flush(events)
            events += [ReasoningEnded()] if self._reasons else []
            events += [MessageEnded()] if self._spoke else []
            events.append(TurnEnded(self._usage, _CUT.get(self._reason or "")))
        return events

    def _meant(self) -> str:
        """What of the thoughts was the answer, where nothing else was said: a model may end them by its calls alone."""
        if self._spoke or self._reason in _CUT:
            return ""
        thought = "".join(self._thoughts)
        if calls := calls_at_end(thought):
            return calls
        if not (thought and self._thinking.inside):
            return ""
        self._thinking.note_answer()
        if not self._sure:
            self._thought, self._reasons = [], False
        return thought

    def _line(self, line: bytes, events: list[BackendEvent]) -> None:
        if self.done:
            return
        if not line.startswith(b"data:"):
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
            chunk = read_cut(data)
        except ValueError:
            raise self._no_stream("something that is not JSON") from None
        if text := _plain_text(chunk):
            self._plain.append(text)
            return
        self._say_plain(events)
        if not isinstance(chunk, dict):
            raise self._no_stream("something that is not a completion")
        if chunk.get("error") or chunk.get("object") == "error":  # as FastChat writes its error objects
            raise _FailedError(failure(rejection_in(read_whole(data)), self._server, key=self._key))
        if isinstance(usage := chunk.get("usage"), dict):
            self._usage = _usage(usage)
        choices = chunk.get("choices") or ()
        if not isinstance(choices, Sequence):
            raise self._no_stream("something that is not a completion")
        if len(choices) > MOST_CHOICES:
            raise self._no_stream("more answers than it was asked for")
        for choice in choices:
            self._choice(choice, events)

    def _choice(self, choice: Any, events: list[BackendEvent]) -> None:  # noqa: ANN401 -- whatever a server sends
        if not isinstance(choice, dict):
            raise self._no_stream("something that is not a completion")
        if isinstance(index := choice.get("index"), int) and index > 0:
            return
        # A server that does not stream has a message.
        delta = choice.get("delta") or choice.get("message")
        reason = choice.get("finish_reason")
        if isinstance(delta, dict):
            if thought := self._characters.receive_text(_thought(delta)):
                self._thinking.note_thought()
                self._take(Thought(thought), events)
            if text := self._characters.receive_text(_said(delta)):
                self._say(text, events)
            if delta.get("tool_calls") or delta.get("function_call"):
                raise self._called()
        if isinstance(reason, str) and reason not in _NO_REASON:
            if reason in _CALLED:
                raise self._called()
            self._reason = reason

    def _say_plain(self, events: list[BackendEvent]) -> None:
        if self._plain:
            plain, self._plain = "".join(self._plain), []
            if text := self._characters.receive_text(plain):
                self._say(text, events)

    def _say(self, text: str, events: list[BackendEvent]) -> None:
        for piece in self._thinking.receive_text(text):
            self._take(piece, events)

    def _take(self, piece: Thought | str, events: list[BackendEvent]) -> None:
        self._went_on = self._reason is not None
        if isinstance(piece, Thought):
            if self._text:
                self._flush(events)
            self._thought.append(piece.text)
            self._thoughts.append(piece.text)
            self._waits -= 0 if self._sure else len(piece.text)
            self._sure = self._sure or self._waits < 0
            self._reasons = self.thought = True
            return
        if self._reasons:
            self._flush(events)
            events.append(ReasoningEnded())
            self._reasons = False
        self._spoke = True
        self._thoughts.clear()
        self._text.append(piece)

    def _flush(self, events: list[BackendEvent]) -> None:
        """At most one of the two kinds waits."""
        if self._text:
            events.append(TextPiece("".join(self._text)))
            self._text = []
        if self._thought and (self._sure or not self._thinking.inside):
            events.append(ReasoningPiece(0, "".join(self._thought), self._wanted))
            self._thought = []

    def _called(self) -> _FailedError:
        sentence = (
            f"{self._server} made a tool call of its own, although it was offered no tool: its parser of tool calls "
            "has to be turned off for this model."
        )
        return _FailedError(BackendError(sentence, **NOT_TEXT_ONLY))

    def _no_stream(self, what: str) -> _FailedError:
        return _FailedError(BackendError(f"{self._server} sent {what}.", **FAILED))


def _plain_text(chunk: Any) -> str:  # noqa: ANN401 -- whatever a server sends
    """The text of a chunk that says nothing else, as nearly all do; empty of any other."""
    try:
        (choice,) = chunk["choices"]
        delta = choice["delta"]
        text = delta["content"]
    except (LookupError, TypeError, ValueError):
        return ""
    if len(delta) != 1 or choice.get("finish_reason") is not None or choice.get("index") or not isinstance(text, str):
        return ""
    is_plain = chunk.get("usage") is None and chunk.get("object") != "error" and not chunk.get("error")
    return text if is_plain else ""


def _thought(delta: Mapping[str, Any]) -> str:
    for name in _THOUGHTS:
        if (thought := delta.get(name)) and isinstance(thought, str):
            return thought
    # As parts of the answer, of Mistral for one, or beside it, as OpenRouter has them.
    for name in ("content", "reasoning_details"):
        if isinstance(parts := delta.get(name), list) and (thought := "".join(_texts(parts, said=False))):
            return thought
    return ""


def _said(delta: Mapping[str, Any]) -> str:
    match delta.get("content"):
        case str(text):
            return text or _refused(delta)
        case list(parts):
            return "".join(_texts(parts, said=True))
        case _:
            return _refused(delta)


def _refused(delta: Mapping[str, Any]) -> str:
    refusal = delta.get("refusal")
    return refusal if isinstance(refusal, str) else ""


def _texts(parts: list[Any], *, said: bool) -> Iterator[str]:
    """The texts of the parts that are `said`, or of those that are thought."""
    names = ("text",) if said else ("text", "thinking", "summary")
    for part in parts:
        if isinstance(part, dict) and said != str(part.get("type")).startswith(_KINDS_OF_THOUGHT):
            value = next((value for name in names if (value := part.get(name))), None)
            if isinstance(value, str):
                yield value
            elif isinstance(value, list):
                yield from (
                    text for each in value if isinstance(each, dict) and isinstance(text := each.get("text"), str)
                )


def _usage(told: Mapping[str, Any]) -> Usage:
    asked, answered = told.get("prompt_tokens_details"), told.get("completion_tokens_details")
    return Usage(
        input_tokens=_count(told, "prompt_tokens"),
        cached_tokens=_count(asked, "cached_tokens"),
        output_tokens=_count(told, "completion_tokens"),
        reasoning_tokens=_count(answered, "reasoning_tokens") or _count(told, "reasoning_tokens"),  # SGLang's
    )


def _count(told: object, name: str) -> int:
    value = told.get(name) if isinstance(told, dict) else None
    return token_count(value) if isinstance(value, int) else 0
