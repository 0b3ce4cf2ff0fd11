"""Blocks that are not whole calls: what there is of them, and what a client is told."""

from __future__ import annotations

from dataclasses import dataclass

from parser import ParserEvent, SentinelParser
from parser.grammar import OPEN, OPEN_BEGUN
from parser.headers import RESULT_OPENER

# What a client is told of a block that it gets as text, or not at all.
QUOTED = "A call of {tool} left as text, because it stands in the request: it was taken for a quotation."
NO_KEY = "A call of {tool} was taken out, because it did not carry the key for calls."
UNREADABLE = "A tool call was taken out, because it cannot be read."


@dataclass(frozen=True, slots=True)
class MeantCall:
    """A call that is one whatever comes, while it is written: also should the answer be cut in it."""

    index: int
    name: str
    id: str | None
    keyed: bool


def begun_arguments(block: str) -> str:
    """The arguments of a call that was cut off in the middle, as far as they came."""
    return "".join(event for event in SentinelParser(arguments=True).receive_text(block) if isinstance(event, str))


def is_half_a_tag(event: ParserEvent) -> bool:
    """Whether that is the beginning of a call's tag, and not any `<`."""
    tag = event.strip() if isinstance(event, str) else ""
    return len(tag) > 1 and bool(OPEN_BEGUN.fullmatch(tag) or OPEN.fullmatch(tag))


def is_markup(raw: str) -> bool:
    """Whether a block is in a notation of ours, and not the bare JSON of a call."""
    return "tool_call" in raw or raw.startswith(RESULT_OPENER)
