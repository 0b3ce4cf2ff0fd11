"""Placeholders: what the form of a call has in place of a name, a value or the arguments.

{"name": "...", "arguments": {...}}
{"name": <name>, "arguments": {{ .Arguments }}}
"""

from __future__ import annotations

import re

from .relaxed_json import WS

# Strategy: a placeholder without quotes is no JSON however that is repaired, so nobody who means a call writes it; in
# quotes it is a string like any other, but for a name, which no tool has, and for arguments, which are an object. What
# stands inside of longer text, and any string in the arguments, may be meant.

_DOTS = r"(?:\.{3,}|\u2026)"
_BARE = rf"""(?:{_DOTS}|<[^\W\d][\w .:-]{{0,64}}>|\{{\{{[^{{}}"':,\n]{{1,64}}\}}\}})"""
# Without quotes the dots are found within the braces, and a word in braces may be what is left of an object.
_QUOTED = rf"(?:{_BARE}|\{{[ \t]*+(?:{_DOTS}|[^\W\d]\w*+)[ \t]*+\}})"
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*(?:"|(?P<lost>\\?\Z))'
_NAME = re.compile(rf"\s*+{_QUOTED}\s*+")
_FOUND = re.compile(
    rf'"(?:name|arguments|parameters)"{WS}:{WS}"(?P<quoted>{_QUOTED})"|{_STRING}'
    rf"|(?:\A|[:,=(\[{{])\s*+(?P<bare>{_BARE})(?=\s*+(?:[:,)\]}}]|\Z))",
    re.DOTALL,
)


def is_placeholder(name: str) -> bool:
    """Whether it stands for the name of a tool, and is none."""
    return bool(_NAME.fullmatch(name))


def end_of_placeholder(text: str) -> int | None:
    """Where the first one ends in what stands between a block's tags, if there is one."""
    first = None
    for found in _FOUND.finditer(text):
        if found["lost"] is not None:
            # Without that quote, what seems to stand outside of strings may stand in one.
            return None
        first = first or (found.end() if found.lastgroup else None)
    return first
