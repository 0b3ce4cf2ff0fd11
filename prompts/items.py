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

from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import Enum
from functools import cache
from hashlib import blake2b
from itertools import groupby, islice
from typing import Literal

from msgspec import Struct

from parser import ToolRegistry

from .beginnings import Beginnings, Begun
from .canonical import Members, folder_of, properties_of, sent_back
from .conversation import harmless, in_call_order, is_blank, merged, past_call, text_length
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
# Of the folders to which the calls of one answer change: a client is in one of them, and most answers have one.
_FOLDERS = 4
# Characters that defaults may add to the calls of an answer: each object may get all that stand in its tool's schema.
_MOST_FILLED = 4 * 2**20


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
    """One message. `parts` is what the model is shown. `ours` is None where somebody else said it.

    `meaning` is a digest of what was said, however it is written: line ends, outer white space and how a text
    is cut into parts do not count, nor do the spelling of a call's JSON, its key and what clients tidy up in it
    (`sent_back`). Behind that of an answer's texts each of its calls has one. Lines of ours have none.
    `phased` is an answer whose messages had phases as these messages, for backends that take such; else empty.
    `tool` is the name of the one whose result this is, for backends that tell results from what a user says.
    """

    role: Literal["user", "assistant", "developer"]
    parts: Sequence[Part]
    meaning: bytes = b""
    ours: OwnLine | None = None
    phased: Sequence[Phased] = ()
    tool: str | None = None


class _Form(Struct, frozen=True):
    """How past calls are written, and whether results name their tool."""

    key: str | None
    named_results: bool


class _Said(Struct, frozen=True):
    """The messages of a conversation, the characters of text in them, and its calls."""

    items: tuple[Item, ...] = ()
    length: int = 0
    called: tuple[PastCall, ...] = ()

    def behind(self, entries: Sequence[Entry], form: _Form) -> _Said:
        """Of a conversation that goes on with these."""
        new = _messages(entries, self.called, form)
        called = [entry for entry in entries if isinstance(entry, PastCall)]
        length = text_length(part for item in new for part in item.parts)
        return _Said((*self.items, *new), self.length + length, (*self.called, *called))


_BEGINNINGS: Beginnings[tuple[Entry, ...], _Said] = Beginnings(_MOST_BYTES)


def conversation_items(transcript: Transcript, key: str | None, *, named_results: bool) -> tuple[Sequence[Item], int]:
    """The messages of `transcript`, and how many characters of text are in them; past calls with `key`, and results
    that name their tool if they are to.
    """
    entries, form = transcript.conversation, _Form(key, named_results)
    begun = _BEGINNINGS.find(form, entries)
    said, start = (_Said(), 0) if begun is None else (begun.made, len(begun.beginning))
    end = _last_begin(entries, start)
    if end > start:
        said = said.behind(entries[start:end], form)
        _BEGINNINGS.keep(Begun(form, entries[:end], said, outline_of(transcript.entries).bytes), begun)
    said = said.behind(entries[end:], form)
    return said.items, said.length


def _last_begin(entries: Sequence[Entry], start: int) -> int:
    """The last place behind `start` that cuts no answer and no run of results; `start`, if there is none."""
    for place in range(len(entries) - 1, start, -1):
        if _begins(entries[place], entries[place - 1]):
            return place
    return start


def _begins(entry: Entry, before: Entry) -> bool:
    answers = isinstance(entry, (AssistantText, PastCall)) and isinstance(before, ToolResult)
    return (answers or isinstance(entry, UserTurn)) and not is_blank(entry)


def _messages(entries: Sequence[Entry], called: Sequence[PastCall], form: _Form) -> list[Item]:
    """The messages that say `entries`, in front of which these were `called`."""
    entries = [entry for entry in entries if not is_blank(entry)]
    names: dict[str, str] = {}
    if given := {entry.call_id for entry in entries if isinstance(entry, ToolResult)}:
        called = [call for call in called if call.call_id in given]
        names = {call.call_id: call.name for call in called}
        entries = list(in_call_order(entries, called))
    items: list[Item | None] = []
    answer: list[AssistantText | PastCall] = []
    for entry in entries:
        if isinstance(entry, (AssistantText, PastCall)):
            answer.append(entry)
            continue
        if answer:
            items.append(_answer(answer, form))
            names.update((call.call_id, call.name) for call in answer if isinstance(call, PastCall))
            answer = []
        if isinstance(entry, UserTurn):
            items.append(_words("user", entry.parts, form))
        elif isinstance(entry, Guidance):
            items.append(_words("developer", (Text(entry.text),), form))
        else:
            items.append(_result(entry, names.get(entry.call_id), form))
    if answer:
        items.append(_answer(answer, form))
    return [item for item in items if item is not None]


def _words(role: Literal["user", "developer"], parts: Iterable[Part], form: _Form) -> Item | None:
    """A message, if there is something to see in it."""
    said = _said(parts)
    return Item(role, _shown(said, form), _digest(role, *_content(said))) if said else None


def _result(result: ToolResult, tool: str | None, form: _Form) -> Item:
    call_id, said = result.call_id, _said(result.parts)
    header = result_header(call_id)
    if form.named_results:
        # A name is the client's own word, and may be anything.
        header = named_result_header(" ".join(escape("a tool" if tool is None else tool).split()), call_id)
    meaning = _digest("result", call_id, *_content(said))
    # A result without a call has the tool's name for its id, or no name at all.
    return Item("user", _shown(said, form, header), meaning, tool=call_id if tool is None else tool)


def _answer(answer: Sequence[AssistantText | PastCall], form: _Form) -> Item:
    parts = (Text(_answer_text(answer, form)),)
    return Item("assistant", parts, meaning_of_answer(answer), phased=_phased(answer, form))


def meaning_of_answer(entries: Sequence[AssistantText | PastCall]) -> bytes:
    """`Item.meaning` of one answer of the model: all its texts, and its calls in order.

    Where the texts stand among the calls does not count, nor how many messages of which phase they were: a Chat client
    has one text beside its calls. So blank lines in it count as one, for that is what stands between two messages.
    Empty where nothing was said, as such an answer is no item.
    """
    return _meaning(_told_in(entries), [_call_meaning(entry) for entry in entries if isinstance(entry, PastCall)])


def meanings_of_answer(entries: Sequence[AssistantText | PastCall], tools: ToolRegistry) -> frozenset[bytes]:
    """Each `meaning_of_answer` that an answer may have when its client sends it back.

    Some clients leave out the text beside calls. Others write into a call the defaults that its tool declares for what
    the model left out, or leave out the change to the folder that they are in, and run it so. The calls are known by
    their ids, and what the model said of them holds.
    """
    calls = [entry for entry in entries if isinstance(entry, PastCall)]
    matched = {call.name: tools.match(call.name) for call in calls}
    declared = {name: tool.parameters for name, tool in matched.items() if tool is not None and tool.parameters}
    defaults = {name: schema for name, schema in declared.items() if '"default"' in schema}
    longest = sum(call.arguments.count("{") * len(defaults.get(call.name, "")) for call in calls)
    filled = {name: properties_of(schema) for name, schema in defaults.items()} if longest <= _MOST_FILLED else {}
    folders = [folder_of(call.arguments) for call in calls]

    @cache  # a call may be long, and most of it is the same in each form of the answer
    def one(place: int, folder: str | None, with_defaults: bool) -> bytes:
        call = calls[place]
        return _call_meaning(call, filled[call.name] if with_defaults else None, folder)

    def called(folder: str | None, with_defaults: bool) -> Iterator[bytes]:
        for place, call in enumerate(calls):
            its = folder if folders[place] == folder else None
            yield one(place, its, with_defaults and call.name in filled)

    told = _told_in(entries)
    return frozenset(
        [
            _meaning(text, [*called(folder, with_defaults)])
            for text in ({told, ""} if calls else {told})
            for with_defaults in {False, bool(filled)}
            for folder in [None, *islice(dict.fromkeys(filter(None, folders)), _FOLDERS)]
        ]
    )


def as_one_round(rounds: Sequence[Item], answers: Collection[bytes]) -> Iterator[Sequence[bytes]]:
    """The meanings of `rounds` of calls and of their answer, as a client has them that makes one of several rounds.

        call 1, result 1, call 2, result 2  -->  call 1, call 2, result 1, result 2

    That is where they have no words between them. The answer has one of the meanings `answers`, or is empty.
    """
    meanings: list[bytes] = []
    calls: int | None = None
    for item in rounds:
        if calls is not None and item.meaning.startswith(_ONLY_CALLS):
            meanings[calls] += item.meaning[_DIGEST_SIZE:]
            continue
        if item.role == "assistant":
            calls = len(meanings) if len(item.meaning) > _DIGEST_SIZE else None
        meanings.append(item.meaning)
    speaks = not all(answer.startswith(_ONLY_CALLS) for answer in answers)
    for answer in answers:
        only_calls = answer.startswith(_ONLY_CALLS)
        # Who makes one round leaves no words out: they would come behind it.
        if only_calls and not speaks and calls is not None:
            behind = meanings[calls] + answer[_DIGEST_SIZE:]
            yield [*meanings[:calls], behind, *meanings[calls + 1 :]]
        elif not only_calls and len(meanings) < len(rounds):
            yield [*meanings, *([answer] if answer else [])]


def _told_in(entries: Iterable[AssistantText | PastCall]) -> str:
    return _told(entry.text for entry in entries if isinstance(entry, AssistantText))


def _call_meaning(call: PastCall, properties: Members | None = None, folder: str | None = None) -> bytes:
    """`properties` and `folder` as in `sent_back`."""
    value = sent_back(call.arguments, properties, folder)
    arguments = ("text", normalise_newlines(call.arguments).strip()) if value is None else ("json", value)
    return _digest("call", call.call_id, call.name, *arguments)


def _meaning(told: str, called: Sequence[bytes]) -> bytes:
    return b"".join([_digest("assistant", told), *called]) if told or called else b""


def _said(parts: Iterable[Part]) -> list[Part]:
    """`parts` that have something to see."""
    return [part for part in merged(parts) if isinstance(part, Image) or part.text.strip()]


def _shown(said: Iterable[Part], form: _Form, header: str = "") -> tuple[Part, ...]:
    """`said` behind its `header`, if it has one: on the same line, unless an image is first."""
    shown = [
        Text(harmless(part.text, named_results=form.named_results)) if isinstance(part, Text) else part for part in said
    ]
    if header:
        match shown:
            case [Text(text), *_]:
                shown[0] = Text(f"{header} {text}")
            case _:
                shown.insert(0, Text(header))
    return tuple(shown)


def _content(said: Iterable[Part]) -> Iterator[str]:
    """Of each part its kind and its value, and how closely an image is looked at."""
    for part in said:
        yield from ("text", part.text.strip()) if isinstance(part, Text) else (f"image {part.detail}", part.url)


def _answer_text(answer: Iterable[AssistantText | PastCall], form: _Form) -> str:
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
            written.append(harmless(text, named_results=form.named_results))
            texts = []
        if entry is not None:
            written.append(past_call(entry, form.key))
    return "\n".join(written)


def _phased(answer: Sequence[AssistantText | PastCall], form: _Form) -> Sequence[Phased]:
    """`answer` cut where its phase changes. A call is of the message that it stands behind."""
    runs: list[tuple[str | None, list[AssistantText | PastCall]]] = []
    for entry in answer:
        phase = entry.phase if isinstance(entry, AssistantText) else None
        if not runs or (isinstance(entry, AssistantText) and phase != runs[-1][0]):
            runs.append((phase, []))
        runs[-1][1].append(entry)
    if not any(phase for phase, _ in runs):
        return ()
    return Deferred(lambda: [Phased(_answer_text(run, form), phase) for phase, run in runs])


def _told(texts: Iterable[str]) -> str:
    """`texts` as one, in which paragraphs stand one blank line apart."""
    lines = _GAP.join(texts).splitlines()
    if all(map(str.strip, lines)):  # one paragraph, as most answers of a loop are
        return "\n".join(lines).strip()
    paragraphs = groupby(lines, key=lambda line: bool(line.strip()))
    return _GAP.join("\n".join(paragraph).rstrip() for told, paragraph in paragraphs if told).strip()


def _digest(*fields: str) -> bytes:
    """One digest of `fields`, each framed by its length: what stands in one cannot reach into the next."""
    framed = "".join([f"{len(field)}:{field}" for field in fields])
    return blake2b(framed.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_SIZE).digest()


# How an answer begins that is nothing but calls.
_ONLY_CALLS = _meaning("", [b""])
