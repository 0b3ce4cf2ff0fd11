"""The calls that can be read from text that is no answer, wherever a block could begin in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from parser import CLOSE_TAG, OPEN_TAG, ArgumentsDelta, CallStarted, ParserEvent, SentinelParser

from .escape import INVISIBLE

# Over this many blocks in one text, or this many times the request's length to read, the reader gives up.
_MOST_BLOCKS = 10_000
_READING_ON = 24
# A block is read in slices, to see early that it has ended.
_SLICE = 1024

_FILL = rf"[\s{INVISIBLE}]"
_TAG_WORD = f"[{INVISIBLE}]*+".join("tool_call")
_OPEN = re.compile(rf"<\\*+{_FILL}*+{_TAG_WORD}{_FILL}*+>?", re.IGNORECASE)
_CLOSE = re.compile(rf"<\\*+{_FILL}*+/[\s/{INVISIBLE}]*+{_TAG_WORD}{_FILL}*+>?", re.IGNORECASE)
# JSON within JSON or HTML, where no key can stand like this. It is read when it is decoded; as it is, its quotes
# would only make the reader go on to the end of the text.
_ENCODED = re.compile(r"[\s\[`~\w]*+\{\s*+[\\&]")


class TooMuchToReadError(Exception):
    """The text has more blocks, or blocks more entangled, than anybody writes in good faith."""


class BlockReader:
    """Reads blocks as `SentinelParser` would, out of any context that would make them code or a thought.

    `length` is that of the request: the work is at most some multiple of it. What was read before is not
    read again, since most blocks stand alike in many readings of one text.
    """

    __slots__ = ("_budget", "_known")

    def __init__(self, length: int) -> None:
        self._budget = _READING_ON * length + 65_536
        # Of a request that is all blocks, copies of them would take many times its size. `hash` is keyed.
        self._known: set[int] = set()

    def read(self, text: str, *, more: int = 0) -> Iterator[list[ParserEvent]]:
        """The events of each block in `text` that was not read before; raises `TooMuchToReadError`.

        Another opening tag may stand in one of a block's strings: then reading goes on behind it.
        `more` blocks are allowed than usual.
        """
        if "<" not in text:
            return
        text = _CLOSE.sub(CLOSE_TAG, text)
        opens = [match.span() for match in _OPEN.finditer(text)]
        pieces = [text[begin:end] for (_, begin), (end, _) in pairwise([*opens, (len(text), len(text))])]
        blocks = 0
        for number, piece in enumerate(pieces):
            # Prose behind a tag is no block; nothing behind it may be the first of two opening tags.
            if _ENCODED.match(piece) or ("{" not in piece and not (piece == "" or piece.isspace())):
                continue
            blocks += 1
            if blocks > _MOST_BLOCKS + more:
                raise TooMuchToReadError
            if (known := hash(piece)) in self._known:
                continue
            events, alone = self._read_block(pieces, number)
            if alone:
                self._known.add(known)
            yield events

    def _read_block(self, pieces: list[str], first: int) -> tuple[list[ParserEvent], bool]:
        """The events of the block that begins with the piece `first`, and whether they depend on that one alone."""
        reader = SentinelParser()
        events: list[ParserEvent] = []
        fed = 0
        for number in range(first, len(pieces)):
            piece = pieces[number]
            for text in (OPEN_TAG, *(piece[start : start + _SLICE] for start in range(0, len(piece), _SLICE))):
                self._budget -= len(text)
                if self._budget < 0:
                    raise TooMuchToReadError
                heard = reader.receive_text(text)
                fed += len(text)
                events += heard
                if any(not isinstance(event, CallStarted | ArgumentsDelta) for event in heard):
                    # At the latest by the next tag, whatever stands behind that.
                    return events + reader.receive_eof(), fed <= len(pieces[first]) + 2 * len(OPEN_TAG)
        return events + reader.receive_eof(), False
