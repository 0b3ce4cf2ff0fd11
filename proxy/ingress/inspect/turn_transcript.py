"""The words of one turn: what its backend was shown and said, and what left of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from sys import getsizeof
from typing import Any

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from prompts import Image, Text

from ...contracts import BackendEvent, Prompt, ReasoningPiece, TextPiece
from ...errors import BackendError

# Seconds and characters up to which pieces of text are kept as one.
TOGETHER = 0.1
PIECE = 2_000
# Deltas that left, after which they are joined.
JOINED = 64
# What was heard and has left is noted, and looked at once it is so much: text comes in very small pieces.
NOTES = 64
# Bytes that an entry of a list takes besides its text, about; and a message of a prompt.
ENTRY = 200
MESSAGE = 400


class HeardLine(Struct):
    """A JSON-RPC message as JSON. One that brings a text of several says all of it in `texts`."""

    at: float
    ours: bool
    data: bytes
    method: str | None
    texts: list[str] | None


class HeardTurn(Struct, eq=False):
    """One turn of a backend. Times are in seconds on the monotonic clock.

    It was `read_to_its_end`, or ended with an `error`, or else it was left early. `stopped`: it ended because the
    server did.
    """

    prompt: Prompt
    begun: float
    told: list[tuple[float, BackendEvent]] = field(default_factory=list)
    lines: list[HeardLine] = field(default_factory=list)
    error: BackendError | None = None
    read_to_its_end: bool = False
    stopped: bool = False
    over: float = 0.0

    @property
    def left_early(self) -> bool:
        return self.error is None and not self.read_to_its_end

    @contextmanager
    def until_over(self) -> Iterator[None]:
        """Notes how it ends, and when."""
        try:
            yield
        except BackendError as error:
            self.error = error
            raise
        finally:
            self.over = time.monotonic()


class LeftEvents(Struct):
    """Events of one kind that left one after the other. `data` is the JSON of the first; where they are deltas, `texts`
    together are what all of them brought.
    """

    at: float
    name: str
    data: bytes
    count: int = 1
    texts: list[str] | None = None


class KeptWords:
    """What is kept of them. `answer` is what left in one piece.

    `size` is what they take, in bytes, about; `grew` is told how much has come. In `heard` and `left` is nothing that
    is only noted, until `look_at_notes`.
    """

    def __init__(self, owner: str, body: bytes | None, grew: Callable[[int], None]) -> None:
        self.owner = owner
        self.body = body
        self.answer: bytes | None = None
        self.heard: list[HeardTurn] = []
        self.left: list[LeftEvents] = []
        self.size = 0
        self._grew = grew
        self._told_to: list[tuple[float, BackendEvent]] = []
        self._told_notes: list[tuple[Sequence[BackendEvent], float]] = []
        self._left_notes: list[tuple[dict[str, object], float]] = []
        self._line_notes: list[tuple[list[HeardLine], float, bool, Mapping[str, Any]]] = []

    def look_at_notes(self) -> None:
        if not (self._told_notes or self._left_notes or self._line_notes):
            return
        told, self._told_notes = self._told_notes, []
        left, self._left_notes = self._left_notes, []
        said, self._line_notes = self._line_notes, []
        size = _keep_told(self._told_to, told) + _keep_left(self.left, left)
        self._grew(size + sum(_keep_line(*line) for line in said))

    def note_left(self, events: Iterable[dict[str, object]], now: float) -> None:
        for event in events:
            self._left_notes.append((event, now))
            # Of what is no delta another event may be a part, which is another one soon.
            if len(self._left_notes) >= NOTES or not ("delta" in event or "choices" in event):
                self.look_at_notes()

    def note_answer(self, body: Mapping[str, object]) -> None:
        self.answer = bytes(memoryview(orjson.dumps(body)))
        self._grew(len(self.answer))

    def note_asked(self, prompt: Prompt, now: float) -> HeardTurn:
        turn = HeardTurn(prompt, now)
        self.heard.append(turn)
        # The conversation is there as items and, where it was asked for, as parts.
        shown = sum(MESSAGE + 2 * sum(map(_size, item.parts)) for item in prompt.items)
        alone = (prompt.developer, prompt.head, prompt.output_schema, prompt.call_schema)
        self._grew(sum(map(getsizeof, alone)) + shown + ENTRY)
        return turn

    def note_block(self, block: str) -> None:
        """One that is marked, which is kept beside the text that it stands in."""
        self._grew(getsizeof(block) + ENTRY)

    def note_heard(self, turn: HeardTurn, batch: Sequence[BackendEvent], now: float) -> None:
        if turn.told is not self._told_to:
            self.look_at_notes()
            self._told_to = turn.told
        self._told_notes.append((batch, now))
        if len(self._told_notes) >= NOTES:
            self.look_at_notes()

    def note_line(self, turn: HeardTurn, now: float, ours: bool, message: Mapping[str, Any]) -> None:
        self._line_notes.append((turn.lines, now, ours, message))
        if len(self._line_notes) >= NOTES:
            self.look_at_notes()


def _keep_left(rows: list[LeftEvents], notes: Iterable[tuple[dict[str, object], float]]) -> int:
    """Events with their times; returns what they take, in bytes."""
    size = 0
    for event, now in notes:
        name, text = _delta_of(event)
        last = rows[-1] if rows else None
        if text is not None and last is not None and last.name == name and last.texts is not None:
            last.count += 1
            size += _add(last.texts, text)
        else:
            # A copy: what orjson gives may lie in several times the room that it needs.
            data = bytes(memoryview(orjson.dumps(event)))
            rows.append(LeftEvents(now, name, data, texts=None if text is None else [text]))
            size += len(data) + ENTRY + (0 if text is None else getsizeof(text))
    return size


def _keep_told(told: list[tuple[float, BackendEvent]], notes: Iterable[tuple[Sequence[BackendEvent], float]]) -> int:
    """Batches with their times; returns what they take, in bytes."""
    newest = told[-1:]
    size, kept = -_told_size(newest), len(told) - len(newest)
    length = sum(len(event.text) for _, event in newest if isinstance(event, TextPiece | ReasoningPiece))
    texts: list[str] = []
    for event, now in ((event, now) for batch, now in notes for event in batch):
        if isinstance(event, TextPiece | ReasoningPiece):
            if told and length < PIECE and _goes_on(told[-1], event, now):
                texts.append(event.text)
                length += len(event.text)
                continue
            length = len(event.text)
        _join(told, texts)
        told.append((now, event))
    _join(told, texts)
    return size + _told_size(told[kept:])


def _goes_on(last: tuple[float, BackendEvent], event: BackendEvent, now: float) -> bool:
    match last[1], event:
        case (TextPiece(), TextPiece()):
            return now - last[0] < TOGETHER
        case (ReasoningPiece(part), ReasoningPiece(same)):
            return part == same and now - last[0] < TOGETHER
        case _:
            return False


def _join(told: list[tuple[float, BackendEvent]], texts: list[str]) -> None:
    """Moves `texts` into the newest piece."""
    if texts and isinstance(piece := told[-1][1], TextPiece | ReasoningPiece):
        told[-1] = told[-1][0], replace(piece, text="".join([piece.text, *texts]))
    texts.clear()


def _told_size(told: Iterable[tuple[float, BackendEvent]]) -> int:
    return sum(
        ENTRY + (getsizeof(event.text) if isinstance(event, TextPiece | ReasoningPiece) else 0) for _, event in told
    )


def _keep_line(lines: list[HeardLine], now: float, ours: bool, message: Mapping[str, Any]) -> int:
    # A pattern of mappings takes three times as long.
    method, params = message.get("method"), message.get("params")
    text = params.get("delta") if isinstance(params, dict) else None
    if isinstance(text, str):
        last = lines[-1] if lines else None
        if last is not None and last.texts is not None and last.method == method:
            return _add(last.texts, text)
    data = bytes(memoryview(orjson.dumps(message)))
    lines.append(HeardLine(now, ours, data, method, [text] if isinstance(text, str) else None))
    return len(data) + 2 * ENTRY + (getsizeof(text) if isinstance(text, str) else 0)


def _size(part: Text | Image) -> int:
    return getsizeof(part.url if isinstance(part, Image) else part.text)


def _add(texts: list[str], text: str) -> int:
    """Returns what it takes, in bytes. One wide character makes all of those wide that it is joined with."""
    texts.append(text)
    if len(texts) < JOINED:
        return getsizeof(text)
    before = sum(map(getsizeof, texts[:-1]))
    texts[:] = ["".join(texts)]
    return getsizeof(texts[0]) - before


def _delta_of(event: dict[str, object]) -> tuple[str, str | None]:
    """The name of an event, and its text when it brings nothing but that. Asked for each delta."""
    name = event.get("type")
    if isinstance(name, str):
        delta = event.get("delta")
        return name, delta if isinstance(delta, str) else None
    match event:
        case {"choices": [{"delta": {"content": str(text), **more}, "finish_reason": None}]} if text and not more:
            return str(event.get("object")), text
        case _:
            return str(event.get("object", "event")), None
