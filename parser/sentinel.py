"""The parser: text in, events out. It does no I/O and does not raise on what a model wrote.

Strategy: prose passes at once, a well-formed call is reported while it is written (`live_call`), and a
block that deviates is collected up to its end and read as a whole (`read_block`). What was reported is
never taken back: a repaired call must continue it, or it is reported as malformed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import ClassVar

from .block_end import BlockEnd
from .call_shape import Call
from .events import (
    ArgumentsDelta,
    CallMalformed,
    ParserEvent,
    ReadingEnded,
    StrayCloser,
    TextDelta,
)
from .grammar import CLOSE, CLOSE_BEGUN, CLOSE_TAG, OPEN, OPEN_BEGUN, OPEN_TAG, RESULT_OPENERS
from .json_scan import after_space
from .live_call import LiveCall
from .opening import NoOpening, Opening, opening_of
from .prose import Prose
from .read_block import Calls, Malformed, read_block
from .report import continuing, tell
from .rules import Rule
from .tags import Kind

MAX_CALL_CHARS = 1024 * 1024
# After a whole call, this much more text is awaited that may still bring its close tag, or a second one.
MAX_TAIL_CHARS = 1000
# How often an answer is read again from a close tag that seemed to stand in a string. Each time costs
# another pass over what follows, so this bounds the work.
MAX_RESUMES = 8
# Longer text is read in pieces, so that what follows a call is not copied once for every call.
MAX_PIECE = 4096


class _Mode(IntEnum):
    """What is being read.

    PROSE --open tag--> OPENED --no JSON follows--> PROSE
    OPENED --"{"--> LIVE --end of the object--> WHOLE --close tag--> CLOSED, --open tag--> PROSE
    OPENED, LIVE, WHOLE --what is not strict--> BLOCK --close tag--> CLOSED, --open tag--> PROSE
    CLOSED --a second close tag, anything else--> PROSE
    PROSE --a made-up result--> ENDED
    """

    PROSE = 0
    OPENED = 1
    LIVE = 2
    WHOLE = 3
    BLOCK = 4
    CLOSED = 5
    ENDED = 6


class SentinelParser:
    """Reads one answer. Feed it with `receive_text`, then once with `receive_eof`.

    `max_call_chars` bounds what one block may hold between its tags; a longer one is malformed.
    `result_openers` end the reading at the start of a line after a call; each starts with `<` or `[`.
    """

    def __init__(self, *, max_call_chars: int = MAX_CALL_CHARS, result_openers: Sequence[str] = RESULT_OPENERS) -> None:
        self._max_call_chars = max_call_chars
        self._mode = _Mode.PROSE
        self._over = False
        self._prose = Prose(result_openers)
        self._plain = False  # in the middle of a line of prose that is not quoted, and nothing is held
        self._held = ""  # outside of prose: what may be the beginning of a tag
        self._next_index = 0
        self._resumes = 0
        self._wary = False  # read on from a point that may be inside of a string: strict calls only
        # The block: its open tag and what else stands before the JSON, then everything up to its end.
        self._head = ""
        self._openers = 1
        self._body: list[str] = []
        self._size = 0
        self._call = LiveCall(0)
        self._in_string: LiveCall | None = None  # that call, while plain characters go straight out
        self._block_end = BlockEnd()
        self._tail: int | None = None  # where in the body a whole call ended
        self._raw = ""
        self._calls: tuple[Call, ...] = ()

    def receive_text(self, text: str) -> list[ParserEvent]:
        """The events that this piece of the answer brings."""
        # The two common deltas: the middle of a line of prose, and the inside of a string.
        if self._plain and text:
            if "<" not in text and "`" not in text:
                if "\n" not in text or (
                    (text[-1] > " " or text[-2:-1] > " " == text[-1]) and "~" not in text and "[" not in text
                ):
                    return [TextDelta(text)]
            elif "\n" not in text and not self._prose.marks.search(text):
                return [TextDelta(text)]
        elif (call := self._in_string) and '"' not in text and "\\" not in text and text.isprintable() and text:
            size = self._size + len(text)
            if size <= self._max_call_chars:
                self._size = size
                self._body.append(text)
                call.arguments.append(text)
                return [ArgumentsDelta(call.index, text)]
        if self._over:
            raise RuntimeError("receive_text after receive_eof")
        events: list[ParserEvent] = []
        if len(text) > MAX_PIECE:
            for at in range(0, len(text), MAX_PIECE):
                self._read(text[at : at + MAX_PIECE], events)
                if events and isinstance(last := events[-1], ReadingEnded):
                    events[-1] = ReadingEnded(last.reason, last.rest + text[at + MAX_PIECE :])
                    break
            return events
        while text:
            text = self._READERS[self._mode](self, text, events)
        return events

    def receive_eof(self) -> list[ParserEvent]:
        """The events that the end of the answer brings. To be called once."""
        if self._over:
            raise RuntimeError("receive_eof was called twice")
        events: list[ParserEvent] = []
        while rest := self._end(events):
            self._read(rest, events)
        self._prose.end(events)
        self._plain = False
        self._in_string = None
        self._over = True
        return events

    def _read(self, text: str, events: list[ParserEvent]) -> None:
        while text:
            text = self._READERS[self._mode](self, text, events)

    def _read_prose(self, text: str, events: list[ParserEvent]) -> str:
        kind, text = self._prose.read(text, events)
        self._plain = self._prose.plain
        if not text:
            return ""
        if kind is Kind.CALL:
            self._mode = _Mode.OPENED
        elif kind is Kind.RESULT:
            self._mode = _Mode.ENDED
            rest = self._prose.take_blank() + text
            events.append(ReadingEnded("the answer goes on with a result of its own call", rest))
            return ""
        return text

    def _read_nothing(self, text: str, events: list[ParserEvent]) -> str:
        return ""

    def _read_opened(self, text: str, events: list[ParserEvent]) -> str:
        text, self._held = self._held + text, ""
        match opening_of(text):
            case None:
                self._held = text
                return ""
            case NoOpening():
                self._mode = _Mode.PROSE
                return self._prose.open_tag_is_text(text, events)
            case Opening(start, openers, live):
                self._head, self._openers, self._tail = text[:start], openers, None
                self._call = LiveCall(self._next_index)
                self._body, self._size = ["{"] if live else [], int(live)
                if live:
                    self._mode = _Mode.LIVE
                else:
                    self._collect()
                return text[start + self._size :]

    def _read_live(self, text: str, events: list[ParserEvent]) -> str:
        over = ""
        if self._size + len(text) > self._max_call_chars:
            text, over = self._take(text, self._max_call_chars)
        else:
            self._body.append(text)
            self._size += len(text)
        call = self._call
        call.feed(text, events)
        if call.name is not None:
            self._next_index = call.index + 1
        self._in_string = None
        if call.broken:
            return self._collect() + over
        if call.done:
            self._mode = _Mode.WHOLE
            self._body[-1] = text[: len(text) - len(call.rest)]
            self._size -= len(call.rest)
            return call.rest + over
        if over:
            return self._too_long(over, events)
        if call.in_string:
            self._in_string = call
        return ""

    def _read_whole(self, text: str, events: list[ParserEvent]) -> str:
        text, self._held = self._held + text, ""
        at = after_space(text, 0)
        if at <= MAX_TAIL_CHARS:
            if ">" in text:
                if close := CLOSE.match(text, at):
                    self._end_live(text[: close.end()], _spelling(self._head, close.group()))
                    self._close(events)
                    return text[close.end() :]
                if OPEN.match(text, at):
                    self._end_live(text[:at], (*_spelling(self._head), Rule.UNCLOSED))
                    self._complete(events)
                    return text[at:]
            elif at == len(text) or CLOSE_BEGUN.match(text, at) or OPEN_BEGUN.match(text, at):
                self._held = text
                return ""
        self._tail = self._size
        return self._collect() + text

    def _collect(self) -> str:
        """Go on with the block as a whole, from the start of its body. Returns the body so far."""
        body = "".join(self._body)
        self._mode, self._body, self._size, self._block_end = _Mode.BLOCK, [], 0, BlockEnd()
        return body

    def _read_block(self, text: str, events: list[ParserEvent]) -> str:
        limit = self._max_call_chars if self._tail is None else self._tail + MAX_TAIL_CHARS
        text, over = self._take(text, limit)
        end = self._block_end.feed(text)
        if end is not None:
            body = "".join(self._body)
            tag, rest = body[end.start : end.end], body[end.end :] + over
            return self._end_block(body[: end.start], tag, rest, events, closed=end.closed)
        if not over:
            return ""
        if self._tail is None:
            return self._too_long(over, events)
        body = "".join(self._body)
        following, self._tail = body[self._tail :].lstrip(), None
        if following.startswith(("{", "[", ",", ";", "`", '"')):
            return over
        return self._end_block(body, "", over, events, closed=False)

    def _take(self, text: str, limit: int) -> tuple[str, str]:
        """Add `text` to the body, up to `limit` characters in all. Returns what was added and what was not."""
        size = self._size + len(text)
        over = ""
        if size > limit:
            text, over = text[: limit - size], text[limit - size :]
            size = limit
        self._body.append(text)
        self._size = size
        return text, over

    def _too_long(self, over: str, events: list[ParserEvent]) -> str:
        self._wary = True
        self._malformed(f"more than {self._max_call_chars} characters", self._head + "".join(self._body), events)
        return over

    def _end_block(self, body: str, tag: str, rest: str, events: list[ParserEvent], *, closed: bool) -> str:
        """Read a block up to its end, where `tag` stands. Returns the text that is still to be read."""
        frame = _spelling(self._head, tag) if closed else (*_spelling(self._head), Rule.UNCLOSED)
        if self._openers > 1:
            frame = (Rule.DOUBLED_OPENER, *frame)
        reading = continuing(self._call, read_block(body, closed=closed))
        if self._wary and isinstance(reading, Calls) and (frame or any(call.rules for call in reading.calls)):
            reading = Malformed("a repair after a broken block would be a guess")
        if isinstance(reading, Calls):
            self._calls = tuple(call.after(frame) for call in reading.calls)
            if reading.end < len(body):
                body, tag, rest = body[: reading.end], "", body[reading.end :] + tag + rest
            self._raw = self._head + body + tag
            if closed:
                self._close(events)
            else:
                self._complete(events)
            return rest
        cut = self._block_end.in_string
        if cut is None or self._resumes == MAX_RESUMES:
            self._malformed(reading.reason, self._head + body + tag, events)
            return rest
        self._resumes += 1
        self._wary = True
        whole = body + tag + rest
        self._malformed(reading.reason, self._head + whole[:cut], events)
        return whole[cut:]

    def _close(self, events: list[ParserEvent]) -> None:
        """The block has its close tag. Two open tags explain a second one: then the block may go on to there."""
        if self._openers == 1:
            self._complete(events)
        self._mode = _Mode.CLOSED

    def _read_closed(self, text: str, events: list[ParserEvent]) -> str:
        text, self._held = self._held + text, ""
        at = after_space(text, 0)
        if at <= MAX_TAIL_CHARS:
            if close := CLOSE.match(text, at):
                self._close_again(text[: close.end()], events)
                return text[close.end() :]
            if at == len(text) or CLOSE_BEGUN.match(text, at):
                self._held = text
                return ""
        self._close_again("", events)
        return text

    def _close_again(self, tail: str, events: list[ParserEvent]) -> None:
        """`tail` is a second close tag, or nothing."""
        if self._calls:
            self._raw += tail
            self._complete(events)
        elif tail:
            events.append(StrayCloser(tail))
        self._mode = _Mode.PROSE

    def _end_live(self, tail: str, rules: tuple[Rule, ...]) -> None:
        """The call was reported as it came, and its block ends with `tail`."""
        call = self._call
        if call.name is None:
            raise AssertionError("a call without a name is not done")
        self._calls = (Call(call.name, "".join(call.arguments), call.id, tuple(call.extra), rules),)
        self._raw = self._head + "".join(self._body) + tail

    def _complete(self, events: list[ParserEvent]) -> None:
        events += tell(self._call, self._calls, self._raw, self._prose.take_blank())
        self._next_index = self._call.index + len(self._calls)
        self._prose.call_ends()
        self._leave_block()

    def _malformed(self, reason: str, raw: str, events: list[ParserEvent]) -> None:
        self._prose.block_is_text(events)
        events.append(CallMalformed(reason, raw, None if self._call.name is None else self._call.index))
        self._leave_block()

    def _leave_block(self) -> None:
        self._mode, self._body, self._calls, self._raw = _Mode.PROSE, [], (), ""

    def _end(self, events: list[ParserEvent]) -> str:
        """The answer ends here. Returns text that is still to be read, but not what ends it again."""
        held, self._held = self._held, ""
        match self._mode:
            case _Mode.PROSE | _Mode.ENDED:
                return ""
            case _Mode.OPENED:
                self._mode = _Mode.PROSE
                return self._prose.open_tag_is_text(held, events)
            case _Mode.LIVE:
                self._call.end(events)
                if self._call.broken:
                    return self._collect()
                self._malformed("the call is cut off", self._head + "".join(self._body), events)
                return ""
            case _Mode.WHOLE:
                at = after_space(held, 0)
                tail = held if at == len(held) or CLOSE_BEGUN.match(held, at) else held[:at]
                self._end_live(tail, (*_spelling(self._head), Rule.UNCLOSED))
                self._complete(events)
                return held[len(tail) :]
            case _Mode.CLOSED:
                half = held if held.strip() else ""
                self._close_again(half, events)
                return held[len(half) :]
            case _Mode.BLOCK:
                body = "".join(self._body)
                at = body.rfind("<")
                end = at if at >= 0 and CLOSE_BEGUN.match(body, at) else len(body)
                return self._end_block(body[:end], body[end:], "", events, closed=False)

    # By mode. Enum members of 3.11 are slow to look up and to hash, so this is a tuple.
    _READERS: ClassVar[tuple[Callable[[SentinelParser, str, list[ParserEvent]], str], ...]] = (
        _read_prose,
        _read_opened,
        _read_live,
        _read_whole,
        _read_block,
        _read_closed,
        _read_nothing,
    )


def _spelling(head: str, close_tag: str = CLOSE_TAG) -> tuple[Rule, ...]:
    """The rule that was needed unless both tags, the open one at the start of `head`, are as taught."""
    return () if close_tag == CLOSE_TAG and head.startswith(OPEN_TAG) else (Rule.TAG_SPELLING,)
