"""A call that a model wrote where it is text: without its tags, or in code. Only told, never made."""

from __future__ import annotations

import re
from collections.abc import Iterator

from parser import BARE_ANSWERS, HEADED_ANSWERS, AnswerParser, CallCompleted, ToolRegistry

# Characters of an answer's text that are looked at.
LOOKED_AT = 4_000
# Where in an answer such a call may begin, the first being all of it.
_BEGIN = re.compile(r"^(?:```|\{|\[)", re.MULTILINE)
# How a header of a small model may name its tool.
_NAMED = re.compile(r"\[(?:tool:|tool\s*+:?\s*+)?([\w.:-]{1,64})\]\s*+\{", re.ASCII)
_OBJECT = re.compile(r"^\[(?:tool|tool_call|function)\]\s*\{", re.MULTILINE | re.IGNORECASE)


# In code the tags are text to the parser as well.
_TAGGED = re.compile(r'<tool_call>\s{0,9}\{[^<]{0,400}?"name"\s{0,9}:\s{0,9}"([\w.:-]{1,128})"', re.ASCII)


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
