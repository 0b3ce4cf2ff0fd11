"""The conversation as one text, cut only where an image stands.

    [user] first line          a header stands in column 0, and only our own words do:
      further lines            further lines of untrusted text are indented, empty ones stay empty
                               one blank line between messages
    [assistant] I will look.
    <tool_call>{...}</tool_call>

    [tool:call_1] output

The form can be read back: transcripts that differ render differently. Only these differences are lost: the cut of a
text into parts, empty texts, line ends, white space between JSON tokens, and the order of the results of one group
of calls. Guidance stands elsewhere. A call's id is not shown if no call of its group has a result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from parser import write_call

from .canonical import canonical
from .escape import INVISIBLE, escape, escape_json, indent, normalise_newlines
from .headers import ASSISTANT, USER, WORDS, header_like, named_result_like, result_header
from .passages import passage
from .transcript import AssistantText, Entry, Guidance, Image, Part, PastCall, Text, ToolResult, Transcript, UserTurn

_UNSEEN = rf"(?:[^\S\n]|[{INVISIBLE}])*+"
# Most texts have none of these, and to look for brackets is less work than to look at the start of every line.
_HEADER_WORD = re.compile(rf"\[{_UNSEEN}(?:{'|'.join(WORDS)})", re.IGNORECASE)
_HEADER_LIKE = re.compile(rf"^{_UNSEEN}{header_like(_UNSEEN)}", re.IGNORECASE | re.MULTILINE)
_NAMED_RESULT_LIKE = re.compile(rf"^{_UNSEEN}{named_result_like(_UNSEEN)}", re.IGNORECASE | re.MULTILINE)
# Outside its strings JSON has no line break but these first two, and inside them the others may stand unescaped.
_ONE_LINE = str.maketrans(
    {"\n": " ", "\r": " ", "\t": " ", "\x85": r"\u0085", "\u2028": r"\u2028", "\u2029": r"\u2029"}
)


def move_headers(text: str) -> str:
    """`text` with each line that could be taken for a header of ours moved right by two spaces."""
    return _HEADER_LIKE.sub(r"  \g<0>", text) if _HEADER_WORD.search(text) else text


def harmless(text: str, *, named_results: bool = False) -> str:
    """Untrusted `text` for a place where a header or a tag of ours in it would count. Wants normalised newlines.

    `named_results`: where one that names its tool would, too.
    """
    text = move_headers(escape(text))
    return _NAMED_RESULT_LIKE.sub(r"  \g<0>", text) if named_results else text


def one_line(raw: str) -> str:
    """The JSON text `raw` without anything that could be read as a line break, of equal value."""
    return raw.translate(_ONE_LINE)


def past_call(call: PastCall, key: str | None = None) -> str:
    """A past call in the form that the tool block asks for; arguments that are no JSON object become a JSON string."""
    arguments = call.arguments
    if canonical(arguments) is None:
        arguments = json.dumps(arguments, ensure_ascii=False)
    return one_line(write_call(escape(call.name), escape_json(arguments.strip()), key=key))


def text_length(parts: Iterable[Part]) -> int:
    """The characters of text in `parts`."""
    return sum(len(part.text) for part in parts if isinstance(part, Text))


class PageWriter:
    """Text and images in the order of writing; adjacent text is one part. `length` counts characters of text."""

    def __init__(self) -> None:
        self.length = 0
        self._parts: list[Part] = []
        self._text: list[str] = []

    def write(self, text: str) -> None:
        self.length += len(text)
        self._text.append(text)

    def add(self, part: Part) -> None:
        match part:
            case Text(text):
                self.write(text)
            case Image():
                self._parts = [*self.parts(), part]
                self._text = []

    def parts(self) -> tuple[Part, ...]:
        text = "".join(self._text)
        return (*self._parts, Text(text)) if text else tuple(self._parts)


def merged(parts: Iterable[Part]) -> list[Part]:
    """`parts` without empty texts, neighbouring texts joined as lines: only then may they be escaped, as a whole."""
    pieces: list[Part] = []
    lines: list[str] = []
    for part in parts:
        if isinstance(part, Text):
            if part.text:
                # Before they are joined: a part may end in the first half of a line break.
                lines.append(normalise_newlines(part.text))
            continue
        if lines:
            pieces.append(Text("\n".join(lines)))
            lines = []
        pieces.append(part)
    if lines:
        pieces.append(Text("\n".join(lines)))
    return pieces


def is_blank(entry: Entry) -> bool:
    """Whether `entry` is a text of the assistant that says nothing."""
    return isinstance(entry, AssistantText) and not entry.text.strip()


def visible(transcript: Transcript) -> list[Entry]:
    """The entries that the conversation shows: guidance stands elsewhere, blank assistant texts say nothing."""
    return list(filter(_is_visible, transcript.entries))


def last_visible(transcript: Transcript) -> Entry | None:
    return next(filter(_is_visible, reversed(transcript.entries)), None)


def _is_visible(entry: Entry) -> bool:
    return not (isinstance(entry, Guidance) or is_blank(entry))


def in_call_order(entries: Sequence[Entry], called: Sequence[PastCall] = ()) -> Iterator[Entry]:
    """`entries` with each run of results in the order of the calls, in front of which these were `called`.

    Calls show no id, so only its place ties a result to its call: a call of the group that has no
    result among the others' gets an empty one. Guidance among the results of a run stands behind them.
    """
    place = {call.call_id: at - len(called) for at, call in enumerate(called)}
    group: list[str] = []
    results: list[ToolResult] = []
    guidance: list[Guidance] = []

    def ordered() -> Iterator[ToolResult]:
        seen = {result.call_id for result in results}
        absent = [ToolResult(call_id, ()) for call_id in group if call_id not in seen]
        found = absent if len(absent) < len(group) else []
        yield from sorted([*results, *found], key=lambda result: place.get(result.call_id, len(entries)))

    for position, entry in enumerate(entries):
        if isinstance(entry, ToolResult):
            results.append(entry)
            continue
        if results and isinstance(entry, Guidance):
            guidance.append(entry)
            continue
        if results:
            yield from ordered()
            yield from guidance
            results, group, guidance = [], [], []
        match entry:
            case PastCall(call_id=call_id):
                place[call_id] = position
                group.append(call_id)
            case AssistantText() | Guidance():
                pass
            case _:
                group = []
        yield entry
    yield from ordered()
    yield from guidance


def shows_header(transcript: Transcript) -> bool:
    """Whether a line that could be read as a header of ours stands in what somebody else than the assistant wrote."""
    words = map(normalise_newlines, _words(transcript))
    return any(_HEADER_LIKE.search(text) or _NAMED_RESULT_LIKE.search(text) for text in words)


def _words(transcript: Transcript) -> Iterator[str]:
    yield transcript.instructions or ""
    for entry in transcript.entries:
        match entry:
            case Guidance(text):
                yield text
            case UserTurn(parts) | ToolResult(parts=parts):
                yield from (part.text for part in parts if isinstance(part, Text))
            case _:
                pass


def _lone_message(entries: Sequence[Entry]) -> list[Part] | None:
    """The one user message that needs no header: none of its lines could be taken for one."""
    match entries:
        case [UserTurn(parts)]:
            pieces = merged(parts)
            imitated = any(isinstance(part, Text) and _HEADER_LIKE.search(part.text) for part in pieces)
            return None if imitated else pieces
        case _:
            return None


def write_conversation(page: PageWriter, transcript: Transcript, key: str | None) -> None:
    """Write all messages; a lone user message stands as it is unless a line in it could be taken for a header."""
    entries = visible(transcript)
    if not entries:
        return
    if (lone := _lone_message(entries)) is not None:
        for part in lone:
            page.add(Text(escape(part.text)) if isinstance(part, Text) else part)
        return

    page.write(passage("conversation"))
    assistant_speaks = False
    for entry in in_call_order(entries):
        match entry:
            case UserTurn(parts):
                _write_message(page, USER, parts)
            case AssistantText(text):
                _write_message(page, ASSISTANT, (Text(text),))
            case ToolResult(call_id, parts):
                _write_message(page, result_header(call_id), parts)
            case PastCall():
                page.write("\n" if assistant_speaks else f"\n\n{ASSISTANT}\n")
                page.write(past_call(entry, key))
            case Guidance():
                pass
        assistant_speaks = isinstance(entry, AssistantText | PastCall)


def _write_message(page: PageWriter, header: str, parts: Iterable[Part]) -> None:
    page.write(f"\n\n{header}")
    before = " "
    for part in merged(parts):
        match part:
            case Text(text):
                page.write(indent(before + escape(text)))
            case Image():
                page.add(part)
                # Text behind an image begins a part of its own, where column 0 would be.
                before = "\n"
