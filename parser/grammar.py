"""The notation: what prompts teach, what past calls look like, what `SentinelParser` reads.

A call is one JSON object between the tags, with a `name` and an `arguments` object, and before them the
key of its conversation, where one is asked for:

    <tool_call>{"name": "read_note", "arguments": {"path": "a.md"}}</tool_call>
    <tool_call>{"key": "7qhvxmrtbz", "name": "read_note", "arguments": {"path": "a.md"}}</tool_call>
"""

from __future__ import annotations

import json
import re

from .beginnings import growing

OPEN_TAG = "<tool_call>"
CLOSE_TAG = "</tool_call>"
# The member that says that a call is meant: `CallStarted.extra`, `CallCompleted.extra`.
KEY = "key"

# Reasoning that a model wrote into its answer: drafts in there are not calls.
THINK_TAGS = {"<think>": "</think>", "<thinking>": "</thinking>"}

# How a line begins that tells a result.
RESULT_OPENER = "[tool:"
# How a model begins to invent the result of its own call, at the start of a line, in lower case.
RESULT_OPENERS = (
    RESULT_OPENER,
    "[tool_result",
    "[tool_output",
    *(f"{who}_{what}" for who in ("<tool", "<function", "<|tool") for what in ("response", "result", "output")),
    "<observation>",
    "<|observation",
    "<|im_start|>",
)


def write_call(name: str, arguments: str, *, key: str | None = None) -> str:
    """The text of one call. `arguments` is JSON text and is embedded as it is."""
    # First, so that a call which is passed on while it is written is known by then to be meant.
    keyed = "" if key is None else f'"{KEY}": {json.dumps(key)}, '
    named = f'"name": {json.dumps(name, ensure_ascii=False)}, "arguments": {arguments}'
    return f"{OPEN_TAG}{{{keyed}{named}}}{CLOSE_TAG}"


# Models are seen to vary case and blanks, to write the tag of an empty element, and to say in the tag what the JSON
# says; prompts escape those spellings in what they quote, too.
_BLANKS = "[ \t\r\n]{0,4}"
_KEYS = (KEY, "id", "call_id", "name", "tool", "function", "type", "index")
_VALUE = r'"[^"<>\n]{0,128}"|\'[^\'<>\n]{0,128}\'|[\w.:-]{1,128}'
ATTRIBUTE = rf"({'|'.join(_KEYS)}) ?= ?({_VALUE})"
_WITH_ATTRIBUTE = rf"(?:[ \t\r\n]{{1,4}}(?:{'|'.join(_KEYS)}) ?= ?(?:{_VALUE}))"
# BEGUN: a text that ends in the middle of one; match it where the `<` stands.
OPEN, OPEN_BEGUN = growing(f"<tool_call{_WITH_ATTRIBUTE}{{0,3}}{_BLANKS}/?>", re.IGNORECASE)
CLOSE, CLOSE_BEGUN = growing(f"</tool_call{_BLANKS}/?>", re.IGNORECASE)
# Right behind a call, where no string of JSON can be that has its slashes escaped.
CLOSE_BEHIND, CLOSE_BEHIND_BEGUN = growing(rf"<\\?/tool_call{_BLANKS}/?>", re.IGNORECASE)
# The key as a word in front of the object, where models put it that take it for a title of the call: a digit and
# letters, as all keys are.
KEY_IN_FRONT, KEY_IN_FRONT_BEGUN = growing(
    r"""(?:["']?[Kk]ey["']? ?[:=] ?)?(["']?)([0-9][a-z]{9})\1[ \t\r\n]*+(?:[:,][ \t\r\n]*+)?(?=[\[{`~])"""
)
