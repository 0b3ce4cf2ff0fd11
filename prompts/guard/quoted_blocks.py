"""The calls that can be read from text that is no answer, wherever a block could begin in it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cache

from parser import CLOSE_TAG, OPEN_TAG, CallCompleted, CallStarted, ParserEvent, SentinelParser

from ..canonical import refuse_constant
from ..escape import INVISIBLE
from .budget import ReadingBudget, TooMuchToReadError
from .lines import MARK, line_forms, unframed

# Strategy: what the answer's own parser would read from a copy is what counts, so it is that parser that reads. But an
# answer is read once, from its start, and a copy may start anywhere: so the text is cut at its open tags, and each
# piece is read as if the answer began there, on into the following pieces for as long as its block goes on. That is
# quadratic for text that is made for it. What keeps honest text cheap: a plain block is read by `json`, a block that
# was read before is known by its hash, what cannot be one is passed over.

# Blocks in one text over which the reader gives up. Notes have a few; past calls come on top.
_MOST_BLOCKS = 10_000
# Characters. A block is read in slices, to see early that it has ended: most end long before the next open tag.
_SLICE = 1024

# Tags in any spelling, as `escape` takes them for one, since what is quoted may have been escaped, and the copy not. A
# tag may be cut by the end of a line, as any other word.
_LINE_BREAK = rf"[=\\]?[ \t]{{0,16}}+\n(?:{MARK}){{0,3}}"
_FILL = rf"(?:{_LINE_BREAK}|[\s{INVISIBLE}])"
_TAG_WORD = rf"(?:{_LINE_BREAK}[ \t]*+|[{INVISIBLE}])*+".join("tool_call")
_ATTRIBUTE = rf"{_FILL}++((?:\w|{_LINE_BREAK}[ \t]*+)++){_FILL}*+={_FILL}*+(\"[^\"<>]*+\"|'[^'<>]*+'|[\w.:-]++)"


# A start would spend a twentieth of its time on these, and few requests hold a tag.
@cache
def _opening() -> re.Pattern[str]:
    return re.compile(rf"<\\*+{_FILL}*+{_TAG_WORD}((?:{_ATTRIBUTE})*+){_FILL}*+>?", re.IGNORECASE)


@cache
def _closing(end: str = ">?") -> re.Pattern[str]:
    return re.compile(rf"<\\*+{_FILL}*+/(?:{_FILL}|/)*+{_TAG_WORD}{_FILL}*+{end}", re.IGNORECASE)


# JSON within JSON or HTML, where no key can stand like this. It is read when it is decoded; as it is, its quotes
# would only make the reader go on to the end of the text.
_ENCODED = re.compile(r"[\s\[`~\w]*+\{\s*+[\\&]")
# How a block begins in any notation, behind what a line begins with. Without one, prose mentions the tag.
_BEGINS_BLOCK = re.compile(
    rf"(?:(?>\s*\n)(?:{MARK}){{0,3}})?[\s\d>+#*|/:;.=\\%-]*+(?:[\[{{(<\"'`~]|\w[\w.:-]{{0,200}}+[ \t]*+[({{<\n=\\])"
)
# What every notation that is read inside of the tags has: without one of these, prose mentions the tag.
_BRACKET = re.compile("[{(<]")


# A call in the form that is asked for: JSON is enough to read it.
_PLAIN = re.compile(r'[ \t\n\r]*+\{[ \t\n\r]*+"name"[ \t\n\r]*+:[ \t\n\r]*+"([\w.-]++)"[ \t\n\r]*+,'
                    r'[ \t\n\r]*+"arguments"[ \t\n\r]*+:[ \t\n\r]*+(?=\{)', re.ASCII)  # fmt: skip
_PLAIN_END = re.compile(rf"[ \t\n\r]*+\}}[ \t\n\r]*+{CLOSE_TAG}")

# What it costs, in a `ReadingBudget`'s units: to look at a block, to read one by JSON or as an answer is read; and of
# that, each slice and each character.
_LOOK, _BY_JSON, _AS_ANSWER, _FEED, _CHARACTER = 100, 700, 3_500, 400, 4


_JSON = json.JSONDecoder(parse_constant=refuse_constant)


class BlockReader:
    """Reads blocks as `SentinelParser` would, out of any context that would make them code or a thought.

    What was read before is not read again, since most blocks stand alike in many readings of one text.
    """

    __slots__ = ("_budget", "_known", "_known_to_go_on")

    def __init__(self, budget: ReadingBudget) -> None:
        self._budget = budget
        # Of a request that is all blocks, copies of them would take many times its size. `hash` is keyed.
        self._known: set[int] = set()
        # By the hash of a head: how many pieces the blocks that begin with it were seen to take. Broken blocks come in
        # long rows, each of which goes on over some of the next.
        self._known_to_go_on: dict[int, set[int]] = {}

    def read(self, text: str, *, more: int = 0) -> Iterator[list[ParserEvent]]:
        """The events of each block in `text` that was not read before; raises `TooMuchToReadError`.

        Another opening tag may stand in one of a block's strings: then reading goes on behind it.
        `more` blocks are allowed than usual.
        """
        if "<" not in text:
            return
        # The two differ only where a `>` is missing, and most texts have none such: then they are one text.
        # Half a close tag may be one, or the end of a text in which there is none.
        for closed in dict.fromkeys((_closing().sub(CLOSE_TAG, text), _closing(">").sub(CLOSE_TAG, text))):
            yield from self._read_closed(closed, more)

    def _read_closed(self, text: str, more: int) -> Iterator[list[ParserEvent]]:
        self._budget.spend(len(text) // 2)
        opens = list(_opening().finditer(text))
        ends = [match.start() for match in opens[1:]] + [len(text)]
        pieces = [(_tag(match[1]), text[match.end() : end]) for match, end in zip(opens, ends, strict=False)]
        self._budget.spend(_LOOK * len(pieces))
        # Counted are blocks that are worth reading: a text may mention the tag as often as it likes.
        blocks = 0
        for number, (_, piece) in enumerate(pieces):
            # Prose behind a tag is no block; nothing behind it may be the first of two opening tags.
            if not _BRACKET.search(piece) and not (piece == "" or piece.isspace()):
                continue
            blocks += 1
            if blocks > _MOST_BLOCKS + more:
                raise TooMuchToReadError
            alone = yield from self._read_at(pieces, number, piece, str)
            # What its lines begin and end with is taken away here and not from the text as a whole: most texts have
            # lists and tables, and few have blocks.
            if "\n" in (_head(piece) if alone else piece) and _BEGINS_BLOCK.match(piece):
                self._budget.spend(len(piece))
                for form, further in line_forms(piece):
                    self._budget.spend(len(form))
                    yield from self._read_at(pieces, number, form, further)
            head = _head(piece)
            framed = hash((head,))
            if "\n" in head and head.endswith(CLOSE_TAG) and framed not in self._known:
                self._known.add(framed)
                self._budget.spend(_LOOK + len(head))
                if (bare := unframed(head)) and bare.endswith(CLOSE_TAG):
                    yield from self._read_at(pieces, number, bare, str)

    def _read_at(
        self, pieces: list[tuple[str, str]], number: int, piece: str, further: Callable[[str], str]
    ) -> Generator[list[ParserEvent], None, bool]:
        """The block that begins with the piece `number` in the form `piece`; `further` gives those behind it theirs.

        Returns whether what is read there depends on the piece's head alone.
        """
        tag = pieces[number][0]
        if _ENCODED.match(piece):
            return CLOSE_TAG in piece
        head = _head(piece)
        # Known by its head, since most blocks end with it. So only what depends on nothing behind the head may be kept
        # here, else of two blocks that begin alike the second one would pass unread.
        if (known := hash((tag, head))) in self._known:
            return True
        # The form that is taught, and so that of nearly every block in an honest text: a fifth of the cost.
        if tag == OPEN_TAG and (call := self._read_plain(piece)) is not None:
            self._known.add(known)
            yield [call]
            return True
        lengths = self._known_to_go_on.setdefault(known, set())
        for seen in lengths:
            following = pieces[number + 1 : number + seen]
            self._budget.spend(_LOOK + sum(_LOOK + len(text) // 2 for _, text in following))
            if _hash(tag, piece, following, further) in self._known:
                return False
        events, length = self._read_block(pieces, number, piece, further)
        if length == 0:
            self._known.add(known)
        elif length is not None:
            lengths.add(length)
            self._known.add(_hash(tag, piece, pieces[number + 1 : number + length], further))
        yield events
        if not any(isinstance(event, CallCompleted) for event in events) and (begun := self._value_in_front(piece)):
            # Nobody closed it, and what follows in the note looks like more of it: a copy ends where the call does.
            yield self._read_block([(tag, "")], 0, begun + CLOSE_TAG, str)[0]
        return length == 0

    def _read_plain(self, piece: str) -> CallCompleted | None:
        """The call that `piece` begins with, when it has the form that is asked for."""
        begun = _PLAIN.match(piece)
        if begun is None:
            return None
        self._budget.spend(_BY_JSON)
        try:
            _, end = _JSON.raw_decode(piece, begun.end())
        except (ValueError, RecursionError):
            return None
        self._budget.spend(end - begun.end())
        arguments = piece[begun.end() : end]
        # A close tag in a string: then the block goes on behind its head, which is all that is known of it.
        if CLOSE_TAG in arguments or not (ended := _PLAIN_END.match(piece, end)):
            return None
        return CallCompleted(0, begun[1], arguments, None, OPEN_TAG + piece[: ended.end()])

    def _value_in_front(self, piece: str) -> str | None:
        """`piece` to the end of its first JSON object, where more follows."""
        try:
            _, end = _JSON.raw_decode(piece, begin := piece.index("{"))
        except (ValueError, RecursionError):
            return None
        self._budget.spend(_BY_JSON + end - begin)
        return piece[:end] if piece[end:].strip() else None

    def _read_block(
        self, pieces: list[tuple[str, str]], first: int, begun: str, further: Callable[[str], str]
    ) -> tuple[list[ParserEvent], int | None]:
        """The events of the block that begins with the piece `first`, and on how many pieces they depend.

        0 is for the head of the first alone, None for all to the end of the text.
        """
        # A fresh one for each block: code, thoughts and the calls before are context, and a copy may leave all of it
        # out.
        reader = SentinelParser(arguments=False)
        events: list[ParserEvent] = []
        fed = 0
        self._budget.spend(_AS_ANSWER)
        for number in range(first, len(pieces)):
            tag = pieces[number][0]
            piece = begun if number == first else further(pieces[number][1])
            head = _head(piece)
            for text in (tag, *_slices(head), *_slices(piece[len(head) :])):
                self._budget.spend(_FEED + _CHARACTER * len(text))
                heard = reader.receive_text(text)
                fed += len(text)
                events += heard
                # Text, a whole call or a malformed block: this block is over. What follows is read from its own tag.
                if any(not isinstance(event, CallStarted) for event in heard):
                    # At the latest by the next tag, whatever stands behind that.
                    alone = number == first and fed <= len(tag) + len(head)
                    return events + reader.receive_eof(), 0 if alone else number - first + 1
        return events + reader.receive_eof(), None


def tags_as_read(text: str) -> str:
    """`text` with each tag, and each half of one, as `BlockReader` reads it: in strings too, which changes them."""
    # So arguments have to go through here before they are compared with what was read: a call whose path holds a piece
    # of a tag would else never equal its own quotation.
    return _closing().sub(CLOSE_TAG, _opening().sub(lambda match: _tag(match[1]), text)) if "<" in text else text


def _hash(tag: str, piece: str, following: Sequence[tuple[str, str]], further: Callable[[str], str]) -> int:
    return hash((tag, piece, *((tag, further(piece)) for tag, piece in following)))


def _head(piece: str) -> str:
    """`piece` up to its first close tag, where most blocks end."""
    end = piece.find(CLOSE_TAG)
    return piece if end < 0 else piece[: end + len(CLOSE_TAG)]


def _slices(text: str) -> Iterator[str]:
    return (text[start : start + _SLICE] for start in range(0, len(text), _SLICE))


def _tag(attributes: str) -> str:
    """The open tag as it is taught, with these attributes."""
    # An attribute may name the call, so attributes are kept, in the one spelling that the parser knows.
    if not attributes:
        return OPEN_TAG
    found = re.findall(_ATTRIBUTE, attributes, re.IGNORECASE)
    written = "".join(re.sub(rf"{_LINE_BREAK}[ \t]*+", "", f" {key}={value}") for key, value in found)
    return f"{OPEN_TAG[:-1]}{written}>"
