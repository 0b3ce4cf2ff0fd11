"""The headers of a conversation: only we write them, at the start of a line.

    [user] What is in a.md?
    [assistant] I will look.
    [tool:call_1] output
    Result of read_note (call_1): output      where each message stands by itself, for small models

One table, because four places must agree: the one that renders headers, the one that keeps other lines from passing for
headers, the one that recognises a copy, and the one that takes headers out of an answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from parser.grammar import RESULT_OPENER

USER = "[user]"
ASSISTANT = "[assistant]"

# The word behind the bracket, and what ends it. The last one we never write: models make it of ours and the tag.
WORDS: Mapping[str, str] = {"user": "]", "assistant": "]", "tool": ":", "tool_call": "]"}


def result_header(call_id: str) -> str:
    """The header of the result of that call."""
    return f"{RESULT_OPENER}{call_id}]"


def header_like(gap: str) -> str:
    """A pattern for what could be read as a header, with what `gap` matches between its pieces. Ignore case."""
    words = "|".join(f"{word}{gap}{re.escape(end)}" for word, end in WORDS.items())
    return rf"\[{gap}(?:{words})"


# As we write them. Of an id anything may stand there but the bracket.
HEADER = r"\[(?:user|assistant|tool:[^\]\n]*)\]"

# Names and ids have no parentheses. The groups are the name and the id.
NAMED_RESULT = r"Result of ([^\n()]{1,128}) \(([^\n()]{1,128})\):"


def named_result_header(tool: str, call_id: str) -> str:
    """The header of a result that names the tool, too."""
    return f"Result of {tool} ({call_id}):"


def named_result_like(gap: str) -> str:
    """As `header_like`, for what could be read as that one."""
    return rf"result{gap}of\b[^\n(]{{0,300}}+\([^\n)]{{0,300}}+\){gap}:"
