"""The words of one turn: what its backend was shown, what it wrote, and what left."""

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
# Pieces of text that are joined, each of which takes room besides.
JOINED = 64
# Bytes that are counted together, at the least. What goes on with a row is counted with the next row.
COUNTED_TOGETHER = 16 << 10
# Bytes that an entry of a list takes besides its text, about; and a message of a prompt.
ENTRY = 200
MESSAGE = 400

_PIECES = (TextPiece, ReasoningPiece)


class JoinedText:
    """Text that came in pieces, as UTF-8: in a string one wide character makes all others as wide."""

    __slots__ = ("_blocks", "_pieces")

    def __init__(self, text: str) -> None:
        self._blocks: list[bytes] = []
        self._pieces: list[bytes] = []
        self.add(text)

    def add(self, text: str) -> int:
        """Returns what it takes, in bytes."""
        added = text.encode("utf-8", "surrogatepass")
        self._pieces.append(added)
        if len(self._pieces) == JOINED:
            self._blocks.append(b"".join(self._pieces))
            self._pieces.clear()
        return len(added)

    def __len__(self) -> int:
        """Bytes."""
        return sum(map(len, (*self._blocks, *self._pieces)))

    def __str__(self) -> str:
        return b"".join([*self._blocks, *self._pieces]).decode("utf-8", "surrogatepass")


class HeardLine(Struct):
    """A JSON-RPC message as JSON. One that brings a text of several says all of it in `text`."""

    at: float
    ours: bool
    data: bytes
    method: str | None
    text: JoinedText | None


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
    """Events of one kind that left one after the other. `data` is the JSON of the first; `text` is what all of them
    brought, where they are deltas.
    """

    at: float
    name: str
    data: bytes
    count: int = 1
    text: JoinedText | None = None


class KeptWords:
    """What is kept of them. `answer` is what left in one piece.

    `size` is what they take, in bytes, about; `grew` is told how much has come. The newest piece of text that was heard
    is whole once they are settled, and only then all is counted.
    """

    def __init__(self, owner: str, body: bytes | None, grew: Callable[[int], None]) -> None:
        self.owner = owner
        self.body = body
        self.answer: bytes | None = None
        self.heard: list[HeardTurn] = []
        self.left: list[LeftEvents] = []
        self.size = 0
        self._grew = grew
        self._uncounted = 0
        # Where was heard last; the texts that go on with the newest piece there, and the length of all of it.
        self._told: list[tuple[float, BackendEvent]] = []
        self._more: list[str] = []
        self._length = PIECE

    def settle(self) -> None:
        """Makes whole what was heard, and counts all of it."""
        self._join()
        self._tell_size()

    def _count(self, size: int) -> None:
        """So many bytes more."""
        self._uncounted += size
        if self._uncounted >= COUNTED_TOGETHER:
            self._tell_size()

    def _tell_size(self) -> None:
        size, self._uncounted = self._uncounted, 0
        self._grew(size)

    def note_left(self, events: Iterable[dict[str, object]], now: float) -> None:
        for event in events:
            name, text = _delta_of(event)
            last = self.left[-1] if self.left else None
            if text is not None and last is not None and last.text is not None and last.name == name:
                last.count += 1
                self._uncounted += last.text.add(text)
                continue
            row = LeftEvents(now, name, _json(event), text=None if text is None else JoinedText(text))
            self.left.append(row)
            self._count(len(row.data) + ENTRY + (0 if row.text is None else len(row.text)))

    def note_answer(self, body: Mapping[str, object]) -> None:
        self.answer = _json(body)
        self._count(len(self.answer))

    def note_asked(self, prompt: Prompt, now: float) -> HeardTurn:
        turn = HeardTurn(prompt, now)
        self.heard.append(turn)
        # The conversation is there as items and, where it was asked for, as parts.
        shown = sum(MESSAGE + 2 * sum(map(_size, item.parts)) for item in prompt.items)
        alone = (prompt.developer, prompt.head, prompt.output_schema, prompt.call_schema)
        self._count(sum(map(getsizeof, alone)) + shown + ENTRY)
        return turn

    def note_block(self, block: str) -> None:
        """One that is marked, which is kept beside the text that it stands in."""
        self._count(getsizeof(block) + ENTRY)

    def note_heard(self, turn: HeardTurn, batch: Sequence[BackendEvent], now: float) -> None:
        if turn.told is not self._told:
            self._join()
            self._told, self._length = turn.told, PIECE
        for event in batch:
            if isinstance(event, _PIECES) and self._length < PIECE and _goes_on(self._told[-1], event, now):
                self._more.append(event.text)
                self._length += len(event.text)
            else:
                self._join()
                self._told.append((now, event))
                text = event.text if isinstance(event, _PIECES) else None
                self._length = PIECE if text is None else len(text)
                self._count(ENTRY if text is None else ENTRY + getsizeof(text))

    def _join(self) -> None:
        """Moves what goes on with the newest piece into it."""
        if not self._more:
            return
        at, piece = self._told[-1]
        if isinstance(piece, _PIECES):
            joined = "".join([piece.text, *self._more])
            self._count(getsizeof(joined) - getsizeof(piece.text))
            self._told[-1] = at, replace(piece, text=joined)
        self._more.clear()

    def note_line(self, turn: HeardTurn, now: float, ours: bool, message: Mapping[str, Any]) -> None:
        # A pattern of mappings takes three times as long.
        method, params = message.get("method"), message.get("params")
        text = params.get("delta") if isinstance(params, dict) else None
        last = turn.lines[-1] if turn.lines else None
        if isinstance(text, str) and last is not None and last.text is not None and last.method == method:
            self._uncounted += last.text.add(text)
            return
        line = HeardLine(now, ours, _json(message), method, JoinedText(text) if isinstance(text, str) else None)
        turn.lines.append(line)
        self._count(len(line.data) + 2 * ENTRY + (0 if line.text is None else len(line.text)))


def _json(value: Mapping[str, Any]) -> bytes:
    """A copy: what orjson gives may lie in several times the room that it needs."""
    return bytes(memoryview(orjson.dumps(value)))


def _goes_on(last: tuple[float, BackendEvent], event: BackendEvent, now: float) -> bool:
    at, piece = last
    if now - at >= TOGETHER or type(piece) is not type(event):
        return False
    return not (isinstance(piece, ReasoningPiece) and isinstance(event, ReasoningPiece) and piece.part != event.part)


def _size(part: Text | Image) -> int:
    return getsizeof(part.url if isinstance(part, Image) else part.text)


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
