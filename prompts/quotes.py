"""The quote guard: a call that stands in the request's own untrusted text is a quotation, not a call.

A note may hold a whole call. A model that is asked to show the note writes it, and nobody has jailbroken
anything. So before a call is passed on, its name and its arguments, compared as values, are looked up among
all calls that can be read from the request: in any spelling of the tags, escaped or not, in JSON strings
within JSON strings, as HTML, and as far gone as `SentinelParser` would still repair it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from parser import (
    CLOSE_TAG,
    OPEN_TAG,
    ArgumentsDelta,
    CallCompleted,
    CallStarted,
    ParserEvent,
    SentinelParser,
    ToolRegistry,
)

from .canonical import canonical
from .escape import INVISIBLE, json_unescape
from .transcript import AssistantText, Guidance, PastCall, Text, ToolResult, Transcript, UserTurn

# A string inside a string inside a string: a tool's JSON output that holds a note that holds JSON.
_LEVELS = 3
# Over this many blocks in one request, or this many times its length to read, the guard gives up: every call is
# taken for a quotation.
_MOST_BLOCKS = 10_000
_READING_ON = 8

_UNSEEN = rf"(?:[{INVISIBLE}]|\\+u(?:00ad|20[0-6][0-9a-f]|feff))*+"
# The word alone, since its `<` may be written as `\u003c` or `&lt;`.
_WORD = re.compile(_UNSEEN.join("tool_call"), re.IGNORECASE)
_FILL = rf"[\s{INVISIBLE}]"
_TAG_WORD = f"[{INVISIBLE}]*+".join("tool_call")
_OPEN = re.compile(rf"<\\*+{_FILL}*+{_TAG_WORD}{_FILL}*+>?", re.IGNORECASE)
_CLOSE = re.compile(rf"<\\*+{_FILL}*+/[\s/{INVISIBLE}]*+{_TAG_WORD}{_FILL}*+>?", re.IGNORECASE)
_FOLDED_AWAY = re.compile(rf"\\[bfnrt]|\\u00[01][0-9a-f]|[\\\s{INVISIBLE}]+", re.IGNORECASE)


def _fold(text: str) -> str:
    """`text` without what a copy may lose or change: white space, backslashes, unseen characters, case."""
    return _FOLDED_AWAY.sub("", text).casefold()


def untrusted_strings(transcript: Transcript, registry: ToolRegistry) -> Iterator[str]:
    """Every string of a request that somebody else wrote and the model will read."""
    yield transcript.instructions or ""
    for entry in transcript.entries:
        match entry:
            case Guidance(text) | AssistantText(text):
                yield text
            case PastCall(arguments=arguments):
                yield arguments
            case UserTurn(parts) | ToolResult(parts=parts):
                # Together, since a block may go over the border of two parts.
                yield "\n".join(part.text for part in parts if isinstance(part, Text))
    for tool in registry:
        yield tool.description or ""
        yield tool.parameters or ""


def _readings(text: str) -> Iterator[str]:
    """`text` as it stands and as what it may be an encoding of."""
    for _ in range(_LEVELS + 1):
        yield text
        if "&" in text and (decoded := html.unescape(text)) != text:
            yield decoded
        if "\\" not in text or (decoded := json_unescape(text)) == text:
            return
        text = decoded


class QuoteGuard:
    """Knows the calls that stand in `strings`, which are read when the first call is asked about.

    Names are compared as `registry` understands them. The work is linear in the length of `strings`
    and bounded in the number of blocks; strings without the tag's word cost one search.
    """

    __slots__ = ("_overflow", "_quoted", "_registry", "_strings")

    def __init__(self, strings: Iterable[str], registry: ToolRegistry) -> None:
        self._strings = tuple(strings)
        self._registry = registry
        self._quoted: set[tuple[str, str]] | None = None
        self._overflow = False

    @classmethod
    def of(cls, transcript: Transcript, registry: ToolRegistry) -> QuoteGuard:
        """The guard over everything untrusted in one request."""
        return cls(untrusted_strings(transcript, registry), registry)

    def is_quotation(self, name: str, arguments: str) -> bool:
        """Whether a call of `name` with the JSON object `arguments` can be read from the request's own text."""
        if self._quoted is None:
            self._quoted = {self._folded(*call) for call in self._read()}
        if self._overflow:
            return True
        comparable = canonical(arguments)
        return comparable is not None and self._folded(name, comparable) in self._quoted

    def _folded(self, name: str, comparable: str) -> tuple[str, str]:
        tool = self._registry.match(name)
        return _fold(tool.name if tool else name), _fold(comparable)

    def _read(self) -> Iterator[tuple[str, str]]:
        blocks = 0
        for string in self._strings:
            if not _WORD.search(string):
                continue
            for text in _readings(string):
                for block in _blocks(text):
                    blocks += 1
                    if block is None or blocks > _MOST_BLOCKS:
                        self._overflow = True
                        return
                    for call in block:
                        if comparable := canonical(call.arguments):
                            yield call.name, comparable


def _blocks(text: str) -> Iterator[list[CallCompleted] | None]:
    """The calls of each block in `text`, as the reader of the model's answers reads them; None for "too much to read".

    Each block is read from its opening tag on, out of any context that would make it code or a thought. Another
    opening tag may stand in one of its strings: then reading goes on behind it, and `budget` keeps that linear.
    """
    opens = [match.span() for match in _OPEN.finditer(text)]
    pieces = [text[begin:end] for (_, begin), (end, _) in pairwise([*opens, (len(text), len(text))])]
    budget = _READING_ON * len(text) + 65_536
    for number, piece in enumerate(pieces):
        # Prose behind a tag is no block; nothing behind it may be the first of two opening tags.
        if "{" not in piece and not (piece == "" or piece.isspace()):
            continue
        reader = SentinelParser()
        events: list[ParserEvent] = []
        for further in range(number, len(pieces)):
            budget -= len(OPEN_TAG) + len(pieces[further])
            if budget < 0:
                yield None
                return
            events += reader.receive_text(OPEN_TAG + _CLOSE.sub(CLOSE_TAG, pieces[further]))
            if any(not isinstance(event, CallStarted | ArgumentsDelta) for event in events):
                break
        events += reader.receive_eof()
        yield [event for event in events if isinstance(event, CallCompleted)]
