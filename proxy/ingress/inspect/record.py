"""The last turns: names and numbers, and their words where somebody wants to see them. Bounded, in memory only.

    turns       the oldest record goes
    bytes       the words of the oldest go, its numbers stay

Requests that go on from one another are one group: the conversation of an earlier one is the beginning of theirs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from sys import getsizeof
from typing import Any

import orjson

from parser import Tier
from prompts import Image, Text

from ...contracts import BackendEvent, Prompt, TextPiece, TurnEvent, TurnFailed, TurnFinished, TurnRequest, Usage
from ...errors import ApiError, BackendError

# Seconds and characters up to which pieces of text are kept as one.
TOGETHER = 0.1
PIECE = 2_000
# Deltas that left, after which they are joined.
JOINED = 64
# What was heard and has left is noted, and looked at once it is so much: text comes in very small pieces.
NOTES = 64
# Bytes that an entry of a list takes besides its text, about.
ENTRY = 200


class Mark(StrEnum):
    VALID = "valid"
    REPAIRED = "repaired"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class MarkedBlock:
    """A block that a model wrote. `why` are the rules that helped, or the reason why it is no call."""

    mark: Mark
    name: str | None
    why: tuple[str, ...]
    block: str


class TurnState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    LEFT = "left"


@dataclass(slots=True)
class HeardLine:
    """A JSON-RPC message as JSON. One that brings a text of several says all of it in `texts`."""

    at: float
    ours: bool
    data: bytes
    method: str | None
    texts: list[str] | None


@dataclass(slots=True, eq=False)
class HeardTurn:
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


@dataclass(slots=True)
class LeftEvents:
    """Events of one kind that left one after the other. `data` is the JSON of the first; where they are deltas, `texts`
    together are what all of them brought.
    """

    at: float
    name: str
    data: bytes
    count: int = 1
    texts: list[str] | None = None


@dataclass(slots=True)
class KeptWords:
    """The words of one turn. `size` is what they take, in bytes, about. `answer` is what left in one piece."""

    request: TurnRequest
    owner: str
    body: bytes | None
    answer: bytes | None = None
    heard: list[HeardTurn] = field(default_factory=list)
    left: list[LeftEvents] = field(default_factory=list)
    size: int = 0


class TurnRecord:
    """One turn; a `TurnObserver`. `changed` is called when its summary would be another one.

    `method` is that of its request, "WS" for one on a WebSocket. `turned_away`: nothing left but this error.
    """

    def __init__(
        self, id: str, *, at: float, began: float, route: str, client: str, model: str, method: str = "POST"
    ) -> None:
        self.id = id
        self.at = at
        self.began = began
        self.method = method
        self.route = route
        self.client = client
        self.model = model
        self.group = id
        self.end: Hashable = None
        self.marks: list[MarkedBlock] = []
        self.state = TurnState.RUNNING
        self.first: float | None = None
        self.over: float | None = None
        self.usage: Usage | None = None
        self.error: ApiError | None = None
        self.turned_away: ApiError | None = None
        self.dropped = False
        self.changed: Callable[[], None] = _nothing
        self.grew: Callable[[int], None] = _grew
        self._told = 0
        self.kept: KeptWords | None = None
        """Without what is only noted."""
        self._told_to: list[tuple[float, BackendEvent]] = []
        self._told_notes: list[tuple[Sequence[BackendEvent], float]] = []
        self._left_notes: list[tuple[dict[str, object], float]] = []
        self._line_notes: list[tuple[list[HeardLine], float, bool, Mapping[str, Any]]] = []

    @property
    def words(self) -> KeptWords | None:
        """None where they are not kept, or not any more."""
        self._look_at_notes()
        return self.kept

    def keep(self, words: KeptWords | None) -> None:
        self.kept = words
        self._told_to, self._told_notes, self._left_notes, self._line_notes = [], [], [], []

    def _look_at_notes(self) -> None:
        if self.kept is not None and (self._told_notes or self._left_notes or self._line_notes):
            told, self._told_notes = self._told_notes, []
            left, self._left_notes = self._left_notes, []
            said, self._line_notes = self._line_notes, []
            size = _keep_told(self._told_to, told) + _keep_left(self.kept.left, left)
            self.grew(size + sum(_keep_line(*line) for line in said))

    # What the turn makes of what the model wrote

    def took(self, name: str, tier: str, rules: Sequence[str], block: str) -> None:
        why = tuple(rules) or (() if tier == Tier.VALID.value else (tier,))
        self._mark(Mark.REPAIRED if why else Mark.VALID, name, why, block)

    def refused(self, reason: str, block: str) -> None:
        self._mark(Mark.REFUSED, None, (reason,), block)

    def _mark(self, mark: Mark, name: str | None, why: tuple[str, ...], block: str) -> None:
        # Without words the reason is a name of ours: what a block that cannot be read has instead is the model's.
        kept = self.kept is not None
        if mark is Mark.REFUSED and not kept:
            why = tuple(reason if reason.isidentifier() else "malformed" for reason in why)
        self.marks.append(MarkedBlock(mark, name, why, block if kept else ""))

    # What leaves

    def saw(self, batch: Iterable[TurnEvent], now: float) -> None:
        """Events of the turn, before its API makes its own of them."""
        if self.first is None:
            self.first = now
        for event in batch:
            match event:
                case TurnFinished(usage, incomplete):
                    self.state = TurnState.DONE if incomplete is None else TurnState.INCOMPLETE
                    self.usage = usage
                case TurnFailed(error):
                    self.state, self.error = TurnState.FAILED, error
                case _:
                    pass
        if len(self.marks) != self._told:
            self._told = len(self.marks)
            self.changed()

    def left(self, events: Iterable[dict[str, object]], now: float) -> None:
        """Events as they leave."""
        if self.kept is None:
            return
        notes = self._left_notes
        for event in events:
            notes.append((event, now))
            # Of what is no delta another event may be a part, which is another one soon.
            if len(notes) >= NOTES or not ("delta" in event or "choices" in event):
                self._look_at_notes()
                notes = self._left_notes

    def left_whole(self, body: Mapping[str, object]) -> None:
        """This leaves in one piece."""
        if self.words is not None:
            self.words.answer = bytes(memoryview(orjson.dumps(body)))
            self.grew(len(self.words.answer))

    def left_none(self, error: ApiError) -> None:
        """The request is refused; nothing else has left."""
        self.state, self.error, self.turned_away = TurnState.FAILED, error, error
        if self.words is not None:
            self.words.left.clear()
        self.changed()

    def close(self, now: float) -> None:
        """The turn is over, seen to its end or not. Only the first time tells."""
        if self.over is not None:
            return
        self.over = now
        self._look_at_notes()
        if self.state is TurnState.RUNNING:
            self.state = TurnState.LEFT
        self.changed()

    # What the backend says

    def asked(self, prompt: Prompt, now: float) -> HeardTurn | None:
        """The backend is shown this."""
        if self.words is None:
            return None
        turn = HeardTurn(prompt, now)
        self.words.heard.append(turn)
        # The conversation is there as items and, where it was asked for, as parts.
        shown = sum(_size(part) for item in prompt.items for part in item.parts)
        self.grew(getsizeof(prompt.developer) + 2 * shown + ENTRY)
        return turn

    def heard(self, turn: HeardTurn, batch: Sequence[BackendEvent], now: float) -> None:
        """It said this."""
        if self.kept is None:
            return
        if turn.told is not self._told_to:
            self._look_at_notes()
            self._told_to = turn.told
        self._told_notes.append((batch, now))
        if len(self._told_notes) >= NOTES:
            self._look_at_notes()

    def heard_line(self, turn: HeardTurn, now: float, ours: bool, message: Mapping[str, Any]) -> None:
        """This was sent for it, or has come."""
        if self.kept is None:
            return
        self._line_notes.append((turn.lines, now, ours, message))
        if len(self._line_notes) >= NOTES:
            self._look_at_notes()

    # For everybody

    @property
    def summary(self) -> dict[str, object]:
        """Names and numbers; seconds from the turn's begin, `at` in seconds of the Unix clock."""
        usage = self.usage
        error = self.error
        return {
            "id": self.id,
            "group": self.group,
            "at": self.at,
            "client": self.client,
            "method": self.method,
            "path": self.route,
            "model": self.model,
            "state": self.state.value,
            "calls": [{"mark": each.mark.value, "name": each.name, "why": each.why} for each in self.marks],
            "first_seconds": _since(self.began, self.first),
            "seconds": _since(self.began, self.over),
            "input_tokens": usage and usage.input_tokens,
            "cached_tokens": usage and usage.cached_tokens,
            "output_tokens": usage and usage.output_tokens,
            "error": error and (error.code or error.type),
            "words": self.kept is not None,
        }


class TurnLog:
    """The last `turns` turns; with `words`, what they say, up to `size` bytes together."""

    def __init__(self, turns: int, size: int, *, words: bool) -> None:
        self.limit = turns
        self.size = size
        self.keeps_words = words
        self.used = 0
        self._records: dict[str, TurnRecord] = {}
        self._groups: dict[Hashable, str] = {}

    @property
    def records(self) -> Iterable[TurnRecord]:
        """The oldest first."""
        return self._records.values()

    def get(self, id: str) -> TurnRecord | None:
        return self._records.get(id)

    def begin(self, record: TurnRecord, request: TurnRequest, owner: str, body: bytes | None) -> None:
        """A turn begins: its record is the newest."""
        self._records[record.id] = record
        self._find_group(record, request, owner)
        if self.keeps_words:
            record.keep(KeptWords(request, owner, body))
            record.grew = lambda size: self._grow(record, size)
            # Its strings are in the request once more.
            self._grow(record, 2 * len(body or b"") + ENTRY)
        while len(self._records) > self.limit:
            oldest = self._records.pop(next(iter(self._records)))
            self._drop(oldest)
            if self._groups.get(oldest.end) == oldest.group:
                del self._groups[oldest.end]

    def _find_group(self, record: TurnRecord, request: TurnRequest, owner: str) -> None:
        # Python's own hash is keyed anew in each process: it tells nothing of the text, and nobody finds collisions.
        at = hash((owner, request.model))
        for entry in request.transcript.entries:
            record.group = self._groups.get(at, record.group)
            try:
                at = hash((at, entry))
            except TypeError:  # an entry that is a table
                return
        record.end = at
        self._groups[at] = record.group

    def _grow(self, record: TurnRecord, size: int) -> None:
        if record.kept is None:
            return
        record.kept.size += size
        self.used += size
        if self.used > self.size:
            for each in self._records.values():
                self._drop(each)
                if self.used <= self.size:
                    break

    def _drop(self, record: TurnRecord) -> None:
        if record.kept is None:
            return
        self.used -= record.kept.size
        record.keep(None)
        record.dropped = True
        record.marks = [MarkedBlock(each.mark, each.name, each.why, "") for each in record.marks]


def _nothing() -> None:
    pass


def _grew(_: int) -> None:
    pass


def _keep_left(rows: list[LeftEvents], notes: Iterable[tuple[dict[str, object], float]]) -> int:
    """Events with their times; returns what they take, in bytes."""
    size = 0
    for event, now in notes:
        name, text = _delta_of(event)
        last = rows[-1] if rows else None
        if text is not None and last is not None and last.name == name and last.texts is not None:
            last.count += 1
            _add(last.texts, text)
            size += len(text)
        else:
            # A copy: what orjson gives may lie in several times the room that it needs.
            data = bytes(memoryview(orjson.dumps(event)))
            rows.append(LeftEvents(now, name, data, texts=None if text is None else [text]))
            size += len(data) + ENTRY + (0 if text is None else getsizeof(text))
    return size


def _keep_told(told: list[tuple[float, BackendEvent]], notes: Iterable[tuple[Sequence[BackendEvent], float]]) -> int:
    """Batches with their times; returns what they take, in bytes."""
    size, begun, texts, length = 0, 0.0, list[str](), 0
    if told and isinstance(last := told[-1][1], TextPiece):
        begun, texts, length = told.pop()[0], [last.text], len(last.text)
    for batch, now in notes:
        for event in batch:
            together = texts and now - begun < TOGETHER and length < PIECE
            if not (together and isinstance(event, TextPiece)):
                if texts:
                    told.append((begun, TextPiece("".join(texts))))
                begun, texts, length = now, [], 0
                size += ENTRY
            if isinstance(event, TextPiece):
                texts.append(event.text)
                length += len(event.text)
                # The blocks that are marked are in it once more.
                size += 2 * len(event.text)
            else:
                told.append((now, event))
    if texts:
        told.append((begun, TextPiece("".join(texts))))
    return size


def _keep_line(lines: list[HeardLine], now: float, ours: bool, message: Mapping[str, Any]) -> int:
    # A pattern of mappings takes three times as long.
    method, params = message.get("method"), message.get("params")
    text = params.get("delta") if isinstance(params, dict) else None
    if isinstance(text, str):
        last = lines[-1] if lines else None
        if last is not None and last.texts is not None and last.method == method:
            _add(last.texts, text)
            return len(text)
    data = bytes(memoryview(orjson.dumps(message)))
    lines.append(HeardLine(now, ours, data, method, [text] if isinstance(text, str) else None))
    return len(data) + 2 * ENTRY


def _size(part: Text | Image) -> int:
    return getsizeof(part.url if isinstance(part, Image) else part.text)


def _add(texts: list[str], text: str) -> None:
    texts.append(text)
    if len(texts) >= JOINED:
        texts[:] = ["".join(texts)]


def _since(began: float, at: float | None) -> float | None:
    return None if at is None else round(at - began, 3)


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
