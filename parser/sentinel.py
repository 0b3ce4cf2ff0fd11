"""The parser: text in, events out. It does no I/O and does not raise on what a model wrote.

Strategy: prose passes at once, a call in the taught form is reported while it is written (`live_call`), and
a block that deviates is collected up to its end and read as a whole (`read_block`). What was reported is
never taken back: a repaired call must continue it, or it is reported as malformed.

Nearly every delta is the middle of a sentence, or of a string in a call's arguments. So the parser is a
coroutine with a loop for each of the two. A loop looks in a delta for the few characters that matter there, and
else only hands it on. That costs less than a method that finds no `<` and appends to a list.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import lru_cache
from itertools import repeat
from typing import NoReturn

from .block import LIVE, MAX_CALL_CHARS, READERS, Block
from .events import ParserEvent
from .json_scan import ESCAPE_BEGUN, STRING_RUN
from .live_call import SHORT
from .prose import BEGUN, MAX_UNREAD, Prose

# Characters. Longer text is read in pieces, so that what follows a call is not copied once for every call.
MAX_PIECE = 4096
# So many deltas of one string are kept one by one before they are joined.
_MOST_TOLD = 1024
# Counted for every delta besides its characters: short strings are not free.
_PER_DELTA = 16


class SentinelParser:
    """Reads one answer. Feed it with `receive_text`, then once with `receive_eof`.

    `arguments`: those of a call are told piece by piece; a `CallCompleted` has them whole in any case. `in_code`: code
    holds calls, too. `max_call_chars` bounds what one block may hold between its tags; a longer one is malformed.
    """

    receive_text: Callable[[str], list[ParserEvent]]
    """The events that this piece of the answer brings."""

    def __init__(self, *, arguments: bool = True, max_call_chars: int = MAX_CALL_CHARS, in_code: bool = False) -> None:
        prose = Prose(in_code=in_code)
        self._reading = _reading(prose, Block(prose, max_call_chars, tells=arguments))
        next(self._reading)
        self.receive_text = self._reading.send

    def receive_eof(self) -> list[ParserEvent]:
        """The events that the end of the answer brings. To be called once."""
        if self.receive_text is _refuse:
            raise RuntimeError("receive_eof was called twice")
        self.receive_text = _refuse
        try:
            self._reading.throw(_AnswerEndedError())
        except StopIteration as ended:
            return list(ended.value)
        raise AssertionError("it waits for more than all of the answer")


class _AnswerEndedError(Exception):
    """No more text comes. `left` was taken and is still to be read."""

    left = ""


def _refuse(text: str) -> NoReturn:
    raise RuntimeError("receive_text after receive_eof")


def _reading(  # noqa: PLR0912 -- a delta pays for each further frame
    prose: Prose, block: Block
) -> Generator[list[ParserEvent], str, list[ParserEvent]]:
    """Send a piece of the answer, get its events. Throw `_AnswerEndedError`, get those of its end."""
    left, skip = "", 0  # taken by a loop here, and how much of that was passed on
    try:
        text = yield []
        while True:
            if block.state == LIVE:
                call = block.call
                if part := call.part:
                    # The beginning of a part says nothing before it is whole, and most of a short call is such
                    # beginnings. So here they wait: to ask `live_call` about each takes four times as long.
                    char, least, urgent = part.char, part.least, part.urgent
                    left, skip = call.held + text, len(call.held)
                    while (
                        len(left) < SHORT
                        and left.count(char) < least
                        and not (urgent and ("{" in text or "}" in text or "<" in text))
                    ):
                        text = yield []
                        left += text
                    text, left, skip = left[skip:], "", 0
                elif call.scanner.in_string and '"' not in text:
                    text = yield from _telling(block, text)
            elif prose.passing and prose.after_call:
                text = yield from _after_call(prose, text)
            elif prose.passing:
                unread, search = prose.unread.append, prose.search
                for _ in repeat(None, MAX_UNREAD // (len(text) + _PER_DELTA)):
                    if not text:
                        break
                    if "<" in text and (tag := search(text)):
                        if tag.lastgroup != BEGUN:
                            break
                        left, said = tag.group(), text[: tag.start()]
                        unread(said)
                        text = left + (yield [said] if said else [])
                        left = ""
                        continue
                    unread(text)
                    text = yield [text]
            events: list[ParserEvent] = []
            if text := READERS[block.state](block, text, events):
                _read(text, block, events)
            text = yield events
    except _AnswerEndedError as ended:
        return _ended(ended.left or left[skip:], prose, block)


def _ended(left: str, prose: Prose, block: Block) -> list[ParserEvent]:
    """Read what is left, and all that was held."""
    events: list[ParserEvent] = []
    _read(left, block, events)
    while rest := block.end(events):
        _read(rest, block, events)
    prose.end(events)
    return events


def _after_call(prose: Prose, text: str) -> Generator[list[ParserEvent], str, str]:
    """Say text where a made-up result may come. Returns the text that may begin a tag or one of those."""
    # A loop of its own, as to ask for the bracket of a result takes a tenth of the other one's time.
    unread = prose.unread.append
    for _ in repeat(None, MAX_UNREAD // (len(text) + _PER_DELTA)):
        if "<" in text or "[" in text or not text:
            break
        unread(text)
        text = yield [text]
    return text


def _end_of_run(text: str) -> int:
    """Where the first character of a string's text stands that is none of it, or not yet."""
    run = STRING_RUN.match(text)
    return run.end() if run else 0


# Deltas are tokens, and few tokens have an escape in them: to know them takes a third of the pattern's time.
_end_of_short_run = lru_cache(maxsize=1024)(_end_of_run)


def _telling(block: Block, text: str) -> Generator[list[ParserEvent], str, str]:
    """Tell a string of the arguments. Returns the text that brings more than characters and escapes of it."""
    told, begun, tells, room = list[str](), "", block.call.tells, block.max_chars - block.call.size
    tell = told.append
    try:
        for _ in repeat(None, _MOST_TOLD):
            if not text or len(text) > room:
                break
            if ("\\" in text or '"' in text or not text.isprintable()) and (
                end := (_end_of_short_run if len(text) < SHORT else _end_of_run)(text)
            ) < len(text):
                if not ESCAPE_BEGUN.match(text, end):
                    break
                text, begun = text[:end], text[end:]
                room -= end
                tell(text)
                text = begun + (yield [text] if text and tells else [])
                begun = ""
                continue
            room -= len(text)
            tell(text)
            text = yield [text] if tells else []
    except _AnswerEndedError as ended:
        ended.left = begun
        raise
    finally:
        # In one piece: many short strings take many times the memory.
        block.add_told("".join(told))
    return text


def _read(text: str, block: Block, events: list[ParserEvent]) -> None:
    """Read any text to its end."""
    end = 0
    while piece := text[end : end + MAX_PIECE]:
        end += MAX_PIECE
        while piece:
            piece = READERS[block.state](block, piece, events)
