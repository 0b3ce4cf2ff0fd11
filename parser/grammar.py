"""The notation: what prompts teach, what past calls look like, what `SentinelParser` reads.

A call is one JSON object between the tags, with a `name` and an `arguments` object:

    <tool_call>{"name": "read_note", "arguments": {"path": "a.md"}}</tool_call>
"""

from __future__ import annotations

import json

OPEN_TAG = "<tool_call>"
CLOSE_TAG = "</tool_call>"


def write_call(name: str, arguments: str, *, key: str | None = None) -> str:
    """The text of one call. `arguments` is JSON text and is embedded as it is."""
    extra = "" if key is None else f', "key": {json.dumps(key)}'
    return f'{OPEN_TAG}{{"name": {json.dumps(name, ensure_ascii=False)}, "arguments": {arguments}{extra}}}{CLOSE_TAG}'
