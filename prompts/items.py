"""The conversation as messages, for backends that keep roles apart: nothing in one can pass for another.

    user        What is in a.md?                   no header, no indentation
    assistant   I will look.                       an answer: its texts and calls in order,
                <tool_call>{...}</tool_call>       each call on a line of its own
    user        [tool:call_1] output               a result, in the order of the calls
    developer   Now in Latin.                      guidance, but for what the developer text begins with
    user        Reminder: ...                      a line of ours, at the end

An item is the same whatever stands around it, so entries in front of others give the items in front of
theirs, unless the cut goes through an answer or through the results of one group of calls. Nothing is an
item without something to see: blank texts and messages are left out, and a result has its header.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from functools import partial
from hashlib import blake2b
from itertools import groupby
from typing import Literal

from msgspec import Struct

from .beginnings import Beginnings, Begun
from .canonical import canonical
from .conversation import PageWriter, harmless, in_call_order, is_blank, merged, past_call, text_length
from .deferred import Deferred
from .escape import escape, normalise_newlines
from .headers import named_result_header, result_header
from .outline import outline_of
from .transcript import (
    AssistantText,
    Entry,
    Guidance,
    Image,
    Part,
    PastCall,
    Text,
    ToolResult,
    Transcript,
    UserTurn,
)

# Bytes of a digest: nobody finds two contents of one digest, and a long conversation has few of them.
_DIGEST_SIZE = 16
# Bytes that messages may take which were made lately: those of two or three conversations of 1,000 messages.
_MOST_BYTES = 4 * 2**20
# Between the texts of one answer: Chat has one text for all of them, and sets them apart so.
_GAP = "\n\n"


class OwnLine(Enum):
    """What a line of ours at the end of a conversation is there for."""

    REMINDER = "reminder"
    DEMAND = "demand"
    NO_TOOLS = "no_tools"
    AFTER_RESULTS = "after_results"
    FAULT = "fault"
    NO_MESSAGE = "no_message"


class Phased(Struct, frozen=True):
    """A message of an answer, with the phase that it had."""

    text: str
    phase: str | None


class Item(Struct, frozen=True):
    """One message. `parts` is what the model is shown, made when it is looked at: a backend that holds the message
    already only asks for its meaning. `ours` is None where somebody else said it.

    `meaning` is a digest of what was said, however it is written: line ends, outer white space and how a text
    is cut into parts do not count, nor do the spelling of a call's JSON and its key. Lines of ours have none.
    `phased` is an answer whose messages had phases as these messages, for backends that take such; else empty.
    `tool` is the name of the one whose result this is, for backends that tell results from what a user says.
    """

    role: Literal["user", "assistant", "developer"]
    parts: Sequence[Part]
    meaning: bytes = b""
    ours: OwnLine | None = None
    phased: Sequence[Phased] = ()
    tool: str | None = None

    @property
    def length(self) -> int:
        """Its characters of text."""
        return text_length(self.parts)


# The messages of the beginning of a conversation, and its calls.
_BEGINNINGS: Beginnings[tuple[Entry, ...], tuple[tuple[Item, ...], tuple[PastCall, ...]]] = Beginnings(_MOST_BYTES)


def leading_guidance(transcript: Transcript) -> tuple[Guidance, ...]:
    """The guidance in front of the first user message, which stands with the instructions."""
    entries = transcript.entries[: _first_user(transcript)]
    return tuple(entry for entry in entries if isinstance(entry, Guidance))


def conversation_items(
    transcript: Transcript, key: str | None = None, *, named_results: bool = False
) -> Sequence[Item]:
    """The messages of `transcript`, past calls with `key`, and results that name their tool if they are to."""
    first = _first_user(transcript)
    leading = (entry for entry in transcript.entries[:first] if not isinstance(entry, Guidance))
    entries = (*leading, *transcript.entries[first:])
    written = partial(_messages, key=key, named_results=named_results)
    begun = _BEGINNINGS.find((key, named_results), entries)
    items, called, start = ((), (), 0) if begun is None else (*begun.made, len(begun.beginning))
    end = _last_begin(entries, start)
    if end > start:
        new = entries[start:end]
        items = (*items, *map(_made, written(new, called=called)))
        called = (*called, *_calls(new))
        size = outline_of(transcript.entries).bytes
        _BEGINNINGS.keep(Begun((key, named_results), entries[:end], (items, called), size), begun)
    return (*items, *written(entries[end:], called=called))


def _made(item: Item) -> Item:
    """It is kept, so whoever shows it waits for nothing."""
    len(item.parts)
    return item


def _last_begin(entries: Sequence[Entry], start: int) -> int:
    """The last place behind `start` that cuts no answer and no run of results; `start`, if there is none."""
    places = range(len(entries) - 1, start, -1)
    return next((place for place in places if _begins(entries[place], entries[place - 1])), start)


def _begins(entry: Entry, before: Entry) -> bool:
    answers = isinstance(entry, AssistantText | PastCall) and isinstance(before, ToolResult)
    return (answers or isinstance(entry, UserTurn)) and not is_blank(entry)


def _calls(entries: Iterable[Entry]) -> list[PastCall]:
    return [entry for entry in entries if isinstance(entry, PastCall)]


def _messages(
    entries: Sequence[Entry], *, key: str | None, named_results: bool, called: Sequence[PastCall] = ()
) -> Iterator[Item]:
    """The messages that say `entries`, in front of which these were `called`."""
    given = {entry.call_id for entry in entries if isinstance(entry, ToolResult)}
    called = [call for call in called if call.call_id in given] if given else ()
    names = {call.call_id: call.name for call in called}
    answer: list[AssistantText | PastCall] = []
    for entry in (*in_call_order([entry for entry in entries if not is_blank(entry)], called), None):
        if isinstance(entry, AssistantText | PastCall):
            if isinstance(entry, PastCall):
                names[entry.call_id] = entry.name
            answer.append(entry)
            continue
        if answer:
            yield from _message(tuple(answer), key, None, named_results)
            answer = []
        if isinstance(entry, ToolResult):
            yield from _message((entry,), None, names.get(entry.call_id), named_results)
        elif entry is not None:
            yield from _message((entry,), None, None, named_results)


def _message(said: tuple[Entry, ...], key: str | None, tool: str | None, named_results: bool) -> tuple[Item, ...]:
    """The message that says `said`, an answer or one other entry, if there is something to see."""

    def shown(parts: Iterable[Part], of: str = "") -> Sequence[Part]:
        return Deferred(partial(_shown, parts, of, named_results=named_results))

    match said:
        case (UserTurn(parts),):
            return _words("user", _said(parts), shown)
        case (Guidance(text),):
            return _words("developer", _said((Text(text),)), shown)
        case (ToolResult(call_id, parts),):
            content = _said(parts)
            header = result_header(call_id)
            if named_results:
                # A name is the client's own word, and may be anything.
                header = named_result_header(" ".join(escape("a tool" if tool is None else tool).split()), call_id)
            meaning = _digest("result", call_id, *_content(content))
            # A result without a call has the tool's name for its id, or no name at all.
            return (Item("user", shown(content, header), meaning, tool=call_id if tool is None else tool),)
        case _:
            answer = [entry for entry in said if isinstance(entry, AssistantText | PastCall)]
            written = Deferred(partial(_answer_parts, answer, key, named_results=named_results))
            phased = _phased(answer, key, named_results=named_results)
            return (Item("assistant", written, meaning_of_answer(answer), phased=phased),)


def _words(
    role: Literal["user", "developer"], said: list[Part], shown: Callable[[list[Part]], Sequence[Part]]
) -> tuple[Item, ...]:
    return (Item(role, shown(said), _digest(role, *_content(said))),) if said else ()


def meaning_of_answer(entries: Sequence[AssistantText | PastCall]) -> bytes:
    """`Item.meaning` of one answer of the model: all its texts, and its calls in order.

    Where the texts stand among the calls does not count, nor how many messages of which phase they were: a Chat client
    has one text beside its calls. So blank lines in it count as one, for that is what stands between two messages.
    Empty where nothing was said, as such an answer is no item.
    """
    fields: list[str] = []
    for entry in entries:
        if isinstance(entry, PastCall):
            value = canonical(entry.arguments)
            arguments = ("text", normalise_newlines(entry.arguments).strip()) if value is None else ("json", value)
            fields += (entry.call_id, entry.name, *arguments)
    told = _told(entry.text for entry in entries if isinstance(entry, AssistantText))
    return _digest("assistant", told, *fields) if told or fields else b""


def _first_user(transcript: Transcript) -> int:
    """The place of the first user message; the end, where there is none yet."""
    entries = transcript.entries
    return next((place for place, entry in enumerate(entries) if isinstance(entry, UserTurn)), len(entries))


def _said(parts: Iterable[Part]) -> list[Part]:
    """`parts` that have something to see."""
    return [part for part in merged(parts) if isinstance(part, Image) or part.text.strip()]


def _shown(said: Iterable[Part], header: str = "", *, named_results: bool = False) -> tuple[Part, ...]:
    page = PageWriter()
    page.write(header)
    gap = " " if header else ""
    for part in said:
        page.add(Text(gap + harmless(part.text, named_results=named_results)) if isinstance(part, Text) else part)
        gap = ""
    return page.parts()


def _content(said: Iterable[Part]) -> Iterator[str]:
    """Of each part its kind and its value."""
    for part in said:
        yield from ("text", part.text.strip()) if isinstance(part, Text) else ("image", part.url)


def _answer_parts(answer: Iterable[AssistantText | PastCall], key: str | None, *, named_results: bool) -> list[Part]:
    return [Text(_answer_text(answer, key, named_results=named_results))]


def _answer_text(answer: Iterable[AssistantText | PastCall], key: str | None, *, named_results: bool) -> str:
    written: list[str] = []
    texts: list[str] = []
    for entry in (*answer, None):
        if isinstance(entry, AssistantText):
            texts.append(normalise_newlines(entry.text))
            continue
        if texts:
            text = _GAP.join(texts)
            # A call is on a line of its own, and the model has written that line break itself: what it is shown of its
            # answer is then what it wrote, and what a cache holds.
            text = text.removeprefix("\n") if written else text
            text = text if entry is None else text.removesuffix("\n")
            # Escaped as a whole: no border may complete a tag.
            written.append(harmless(text, named_results=named_results))
            texts = []
        if entry is not None:
            written.append(past_call(entry, key))
    return "\n".join(written)


def _phased(answer: Sequence[AssistantText | PastCall], key: str | None, *, named_results: bool) -> Sequence[Phased]:
    """`answer` cut where its phase changes. A call is of the message that it stands behind."""
    runs: list[tuple[str | None, list[AssistantText | PastCall]]] = []
    for entry in answer:
        phase = entry.phase if isinstance(entry, AssistantText) else None
        if not runs or (isinstance(entry, AssistantText) and phase != runs[-1][0]):
            runs.append((phase, []))
        runs[-1][1].append(entry)
    if not any(phase for phase, _ in runs):
        return ()
    return Deferred(lambda: [Phased(_answer_text(run, key, named_results=named_results), phase) for phase, run in runs])


def _told(texts: Iterable[str]) -> str:
    """`texts` as one, in which paragraphs stand one blank line apart."""
    lines = _GAP.join(texts).splitlines()
    if all(map(str.strip, lines)):  # one paragraph, as most answers of a loop are
        return "\n".join(lines).strip()
    paragraphs = groupby(lines, key=lambda line: bool(line.strip()))
    return _GAP.join("\n".join(paragraph).rstrip() for told, paragraph in paragraphs if told).strip()


def _digest(*fields: str | bytes) -> bytes:
    """One digest of `fields`, each framed by its length: what stands in one cannot reach into the next."""
    framed: list[bytes] = []
    for field in fields:
        data = field.encode("utf-8", "surrogatepass") if isinstance(field, str) else field
        framed += (len(data).to_bytes(8, "big"), data)
    return blake2b(b"".join(framed), digest_size=_DIGEST_SIZE).digest()
