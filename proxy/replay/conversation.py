"""The conversation of a thread, read back from its messages.

It relies only on the form that docs/reference/prompts.md promises. The words around it may change from one version to
the next. There are two forms:

    a message for each   the user's own text; `[tool:ID] output`, a part or a message for each result, for small models
                         `Result of NAME (ID): output`; answers with their calls in them; the proxy's own lines are
                         the last parts of a turn's input
    one page             all of it as the text of one turn: headers and tags in column 0, what others wrote
                         indented, the proxy's own lines at the end in column 0

In the first form, nothing distinguishes the proxy's own line behind a question or a result from a message of the user,
or two messages of the user from two parts of one. So a conversation may be read in several ways, see
`Conversation.askings`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from msgspec import Struct

_HEADER = re.compile(r"^\[(user|assistant)\]|^\[(tool):[^\]\s]*\]", re.MULTILINE)
_RESULT = re.compile(r"\[tool:[^\]\s]*\]")
# In a conversation without the other form. Anybody's words, but where only a result can stand.
_NAMED_RESULT = re.compile(r"Result of [^\n()]{1,128} \([^\n()]{1,128}\):")
_OPEN = "<tool_call"
_CLOSE = "</tool_call>"
_INDENT = "  "


class ThreadMessage(Struct, frozen=True):
    """One message of a thread, with the texts of its parts. Roles but `user` and `assistant` say nothing here."""

    role: str
    texts: tuple[str, ...]


class SaidItem(Struct, frozen=True):
    """One message. `by` is `user`, `assistant`, `tool`, `call` for a call of the assistant, `own` for a line of ours.

    `open_end`: lines of the proxy's own may stand at the end of this text; `doubtful`: all of it may be such lines.
    """

    by: str
    text: str
    tool: str = ""
    open_end: bool = False
    doubtful: bool = False
    parts: tuple[str, ...] = ()
    """Those of a text that may be several messages, each but the first as well the beginning of the newest."""


class Asking(Struct, frozen=True, dict=True):
    """What is asked if the newest user message is the one at `place`; -1 if there is none."""

    place: int
    last_user: str
    after_tools: tuple[str, ...]
    """The names of the calls since then, in order."""

    @cached_property
    def lines(self) -> list[str]:
        """The newest user message, see `folded_lines`."""
        return folded_lines(self.last_user)


class Conversation(Struct, frozen=True, dict=True):
    said: tuple[SaidItem, ...]

    @cached_property
    def askings(self) -> tuple[Asking, ...]:
        """What may be asked, the likeliest first, which takes no text for the proxy's own; at least one."""
        askings: list[Asking] = []
        tools: list[str] = []
        for place in reversed(range(len(self.said))):
            said = self.said[place]
            if said.by == "call":
                tools.insert(0, said.tool)
            elif said.by == "user":
                askings.append(Asking(place, said.text, tuple(tools)))
                later = ("\n".join(said.parts[first:]) for first in range(1, len(said.parts)))
                askings += [Asking(place, text, tuple(tools)) for text in later]
                if not said.doubtful:
                    return tuple(askings)
        return (*askings, Asking(-1, "", tuple(tools)))

    @cached_property
    def comparable(self) -> tuple[tuple[str, str, str], ...]:
        """Of each message who said it, the tool, and the folded text."""
        return tuple((said.by, said.tool, folded(said.text)) for said in self.said)

    def own_lines(self, asking: Asking, wanted: int) -> int:
        """How many lines are the proxy's own, if `wanted` lines are the newest user message."""
        behind = (said.text for said in self.said[asking.place + 1 :] if said.by in {"user", "own"})
        open_end = asking.place >= 0 and self.said[asking.place].open_end
        more = len(asking.lines) - wanted if open_end else 0
        return max(0, more) + sum(len(folded_lines(text)) for text in behind)

    def exchange(self, asking: Asking) -> list[tuple[str, str, str]]:
        """What is `comparable` without the proxy's own lines. The newest user message is there without its text."""
        newest = [("user", "", "")] if asking.place >= 0 else []
        behind = (message for message in self.comparable[asking.place + 1 :] if message[0] not in {"user", "own"})
        return [*self.comparable[: max(0, asking.place)], *newest, *behind]


def folded(text: str) -> str:
    """`text` with every run of white space as one blank."""
    return " ".join(text.split())


def folded_lines(text: str) -> list[str]:
    """The lines of `text` that are not blank, each folded."""
    return [line for line in map(folded, text.splitlines()) if line]


def read_conversation(messages: Iterable[ThreadMessage]) -> Conversation:
    """What was said on a thread, in order."""
    messages = list(messages)
    users = (text for message in messages if message.role == "user" for text in message.texts)
    result = _RESULT if any(map(_RESULT.match, users)) else _NAMED_RESULT
    said: list[SaidItem] = []
    for message in messages:
        match message.role:
            case "user" if _is_page(message):
                said += _read_page("\n".join(message.texts))
            case "user":
                said += _read_parts(message, said, result)
            case "assistant":
                said += _read_answer("\n".join(message.texts))
            case _:
                pass
    return Conversation(tuple(said))


def _is_page(message: ThreadMessage) -> bool:
    """Whether headers stand where no message for each has one: only that of a result stands there, and in front."""
    headers = (header for text in message.texts for header in _HEADER.finditer(text))
    return any(header[1] or header.start() for header in headers)


def _read_parts(message: ThreadMessage, before: Sequence[SaidItem], result: re.Pattern[str]) -> list[SaidItem]:
    said: list[SaidItem] = []
    for text in message.texts or ("",):
        previous = said[-1] if said else None
        # Behind an answer somebody must have said something, or the model would not be asked.
        last = previous or (before[-1] if before else None)
        may_be_result = result is _RESULT or (last is not None and last.by in {"call", "tool"})
        if may_be_result and (header := result.match(text)):
            said.append(SaidItem("tool", text[header.end() :].strip()))
        elif previous is not None and previous.by == "user":
            parts = (*(previous.parts or (previous.text,)), text)
            said[-1] = SaidItem("user", "\n".join(parts), "", open_end=True, doubtful=previous.doubtful, parts=parts)
        else:
            doubtful = last is not None and last.by in {"user", "own", "tool"}
            said.append(SaidItem("user", text, "", open_end=True, doubtful=doubtful))
    return said


def _read_answer(text: str) -> Iterator[SaidItem]:
    """The texts and the calls of an answer, in order. What the client wrote has no tag in it: it is escaped."""
    *blocks, rest = text.split(_CLOSE)
    for block in blocks:
        words, tag, call = block.partition(_OPEN)
        yield from _read_words(words)
        if tag:
            yield _read_call(f"{tag}{call}{_CLOSE}")
    yield from _read_words(rest)


def _read_words(text: str) -> Iterator[SaidItem]:
    if own := text.strip():
        yield SaidItem("assistant", own)


def _read_page(text: str) -> list[SaidItem]:
    """The messages of a page, without its introduction, and the proxy's own lines behind them."""
    headers = list(_HEADER.finditer(text))
    said: list[SaidItem] = []
    closing: list[SaidItem] = []
    ends = [header.start() for header in headers[1:]] + [len(text)]
    for header, end in zip(headers, ends, strict=True):
        own, calls, closing = _read_message(text[header.end() : end])
        by = header[1] or header[2]
        if own.strip() or not calls:
            said.append(SaidItem(by, own.strip()))
        said += calls
    return said + closing


def _read_message(body: str) -> tuple[str, list[SaidItem], list[SaidItem]]:
    """What stands behind a header: the message's text, the calls in it, and the lines that are nobody's."""
    first, *rest = body.split("\n")
    own, calls, closing = [first], list[SaidItem](), list[SaidItem]()
    for line in rest:
        if line.startswith(_INDENT) or not line.strip():
            own.append(line.removeprefix(_INDENT))
        elif line.startswith(_OPEN):
            calls.append(_read_call(line.rstrip()))
        else:
            closing.append(SaidItem("own", line))
    return "\n".join(own), calls, closing


def _read_call(block: str) -> SaidItem:
    try:
        value: object = json.loads(block.partition(">")[2].removesuffix(_CLOSE), strict=False)
    except (ValueError, RecursionError):
        value = None
    match value:
        case {"name": str(name), **rest}:
            return SaidItem("call", json.dumps(rest.get("arguments"), sort_keys=True), name)
        case _:
            return SaidItem("call", block)


def common_end(one: Sequence[object], other: Sequence[object]) -> int:
    """How many values at the end of both are the same."""
    count = 0
    for mine, theirs in zip(reversed(one), reversed(other), strict=False):
        if mine != theirs:
            break
        count += 1
    return count
