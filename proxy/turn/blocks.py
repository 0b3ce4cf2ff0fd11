"""Blocks that are not whole calls, and calls that are text: what they hold, and what a client is told."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from msgspec import Struct

from parser import (
    BARE_ANSWERS,
    HEADED_ANSWERS,
    AnswerParser,
    CallCompleted,
    ParserEvent,
    SentinelParser,
    ToolRegistry,
)
from parser.foreign import begins_foreign
from parser.grammar import OPEN, OPEN_BEGUN, RESULT_OPENER

from .reason import Reason

# What a client is told of a block that it gets as text, or not at all.
QUOTED = (
    "A call of {tool} left as text: it was taken for a quotation, because of where it stands or what the request says."
)
UNTAGGED = "A call of the tool '{tool}' left as text: it has no tags."
# Of a call that was asked for once more in vain, or refused at once.
TAKEN_OUT = {
    Reason.NO_KEY: "A call of {tool} was taken out, because it did not carry the key for calls.",
    Reason.WRONG_KEY: "A call of {tool} was taken out, because it carried another key for calls than its own.",
    Reason.IN_OUTPUT: "A call of {tool} was taken out, because it stands in the output of a tool.",
    Reason.UNDECLARED: "A call of {tool} was taken out, because no such tool is offered.",
}


def unreadable(name: str) -> str:
    """What a client is told of a block that cannot be read, of a tool of that name if there is one."""
    return f"A {f'call of the tool {name!r}' if name else 'tool call'} was taken out, because it cannot be read."


# Characters of an answer's text that are looked at.
LOOKED_AT = 4_000
# Where in an answer such a call may begin, the first being all of it.
_BEGIN = re.compile(r"^(?:```|\{|\[)", re.MULTILINE)
# How a header of a small model may name its tool.
_NAMED = re.compile(r"\[(?:tool:|tool\s*+:?\s*+)?([\w.:-]{1,64})\]\s*+\{", re.ASCII)
_OBJECT = re.compile(r"^\[(?:tool|tool_call|function)\]\s*\{", re.MULTILINE | re.IGNORECASE)
# In code the tags are text to the parser as well.
_TAGGED = re.compile(r'<tool_call>\s{0,9}\{[^<]{0,400}?"name"\s{0,9}:\s{0,9}"([\w.:-]{1,128})"', re.ASCII)


class BegunCall(Struct, frozen=True):
    """A call that is one whatever comes, while it is written: also should the answer be cut in it."""

    index: int
    name: str
    id: str | None
    keyed: bool


def begun_arguments(block: str) -> str:
    """The arguments of a call that was cut off in the middle, as far as they came."""
    return "".join(event for event in SentinelParser(arguments=True).receive_text(block) if isinstance(event, str))


def half_a_block(events: Sequence[ParserEvent]) -> int:
    """How many of the last `events` are nothing but the beginning of a block: of its tag, or of a tag behind that."""
    begun = ""
    texts = takewhile(lambda event: isinstance(event, str), reversed(events[-2:]))
    for count, text in enumerate(texts, start=1):
        begun = f"{text}{begun}"
        if _is_half_a_block(begun.strip()):
            return count
    return 0


def _is_half_a_block(text: str) -> bool:
    tag = OPEN.match(text)
    if tag is None:
        # One character may be any.
        return len(text) > 1 and bool(OPEN_BEGUN.fullmatch(text))
    behind = text[tag.end() :].lstrip()
    return not behind or (behind[0] == "<" and begins_foreign(behind, 0) is None)


def is_markup(raw: str) -> bool:
    """Whether a block is in a notation of ours, and not the bare JSON of a call."""
    return "tool_call" in raw or raw.startswith(RESULT_OPENER)


def call_in_code(text: str, tools: ToolRegistry) -> tuple[str, bool] | None:
    """The tool of the call that stands in the code of `text` with its tags, and whether that is a fence."""
    for found in _TAGGED.finditer(text):
        if (tool := tools.match(found[1])) is not None:
            return tool.name, text.count("```", 0, found.start()) % 2 == 1
    return None


def untagged_call(text: str, tools: ToolRegistry) -> str | None:
    """The tool of the call that stands in `text` without tags; None where there is none."""
    for part in _parts(text):
        for openers in (BARE_ANSWERS, HEADED_ANSWERS):
            parser = AnswerParser(tools, openers, arguments=False)
            events = [*parser.receive_text(part), *parser.receive_eof()]
            if call := next((event for event in events if isinstance(event, CallCompleted)), None):
                return call.name
    for found in _NAMED.finditer(text):
        if (tool := tools.match(found[1])) is not None:
            return tool.name
    if _OBJECT.search(text):
        return next((tool.name for tool in tools if f'"{tool.name}"' in text), None)
    return None


def _parts(text: str) -> Iterator[str]:
    """All of it, and from the first line on that may begin a call to the end of its fence."""
    yield text
    if (found := _BEGIN.search(text)) is not None:
        part = text[found.start() :]
        end = part.find("\n```", 3) if part.startswith("```") else part.find("\n\n")
        yield part if end < 0 else part[: end + (4 if part.startswith("```") else 0)]
