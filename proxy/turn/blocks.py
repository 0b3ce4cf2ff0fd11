"""Blocks that are not whole calls: what there is of them, and what a client is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from parser import ParserEvent, SentinelParser
from parser.foreign import begins_foreign
from parser.grammar import OPEN, OPEN_BEGUN
from parser.headers import RESULT_OPENER

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
    return f"A call of the tool '{name}' was taken out, because it cannot be read." if name else _UNREADABLE


_UNREADABLE = "A tool call was taken out, because it cannot be read."


@dataclass(frozen=True, slots=True)
class BegunCall:
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
