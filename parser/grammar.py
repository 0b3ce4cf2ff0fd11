"""The notation: what prompts teach, what past calls look like, what `SentinelParser` reads.

A call is one JSON object between the tags, with a `name` and an `arguments` object:

    <tool_call>{"name": "read_note", "arguments": {"path": "a.md"}}</tool_call>
"""

from __future__ import annotations

import json
import re

OPEN_TAG = "<tool_call>"
CLOSE_TAG = "</tool_call>"

# Reasoning that a model wrote into its answer: drafts in there are not calls.
THINK_TAGS = {"<think>": "</think>", "<thinking>": "</thinking>"}

# How a model begins to invent the result of its own call, at the start of a line, in lower case.
RESULT_OPENERS = (
    "[tool:",
    "[tool_result",
    "[tool_output",
    "<tool_response",
    "<tool_result",
    "<tool_output",
    "<function_response",
    "<function_result",
    "<function_output",
    "<observation>",
    "<|tool_response",
    "<|tool_result",
    "<|tool_output",
    "<|observation",
    "<|im_start|>",
)


def write_call(name: str, arguments: str, *, key: str | None = None) -> str:
    """The text of one call. `arguments` is JSON text and is embedded as it is."""
    extra = "" if key is None else f', "key": {json.dumps(key)}'
    return f'{OPEN_TAG}{{"name": {json.dumps(name, ensure_ascii=False)}, "arguments": {arguments}{extra}}}{CLOSE_TAG}'


def prefixes_of(literal: str, then: str = "") -> str:
    """A pattern for every non-empty beginning of `literal`; `then` may follow the whole of it."""
    pattern = then
    for char in reversed(literal[1:]):
        pattern = f"(?:{re.escape(char)}{pattern})?"
    return re.escape(literal[0]) + pattern


# Models are seen to vary case and blanks; prompts escape those spellings in what they quote, too.
_BLANKS = "[ \t\r\n]{0,4}"
OPEN = re.compile(f"<tool_call{_BLANKS}>", re.IGNORECASE)
CLOSE = re.compile(f"</tool_call{_BLANKS}>", re.IGNORECASE)

# A text that ends in the middle of a tag: match these where the `<` stands.
OPEN_BEGUN = re.compile(rf"{prefixes_of('<tool_call', _BLANKS)}\Z", re.IGNORECASE)
CLOSE_BEGUN = re.compile(rf"{prefixes_of('</tool_call', _BLANKS)}\Z", re.IGNORECASE)
