"""The conversation that a prompt shows, read back from its text.

Only what docs/reference/prompts.md promises of the form is relied on: headers and tags in column 0, what
others wrote indented. The words around it may change from one version to the next.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

_HEADER = re.compile(r"^\[(user|assistant)\]|^\[(tool):[^\]\s]*\]", re.MULTILINE)
_CALL = re.compile(r"<tool_call[^>]*>\s*(.*?)\s*</tool_call>\s*\Z", re.DOTALL)
_TAG = "<tool_call"
_INDENT = "  "


@dataclass(frozen=True, slots=True)
class Said:
    """One message. `by` is `user`, `assistant`, `tool`, or `call` for a call that the assistant made."""

    by: str
    text: str
    tool: str = ""


@dataclass(frozen=True, slots=True)
class Conversation:
    """`closing` counts the lines behind the last message that nobody said: they are the proxy's own."""

    said: tuple[Said, ...]
    closing: int = 0

    @property
    def last_user(self) -> str:
        return next((said.text for said in reversed(self.said) if said.by == "user"), "")

    @property
    def after_tools(self) -> tuple[str, ...]:
        """The names of the calls since the newest user message, in order."""
        newest = max((at for at, said in enumerate(self.said) if said.by == "user"), default=-1)
        return tuple(said.tool for said in self.said[newest + 1 :] if said.by == "call")


def folded(text: str) -> str:
    """`text` with every run of white space as one blank."""
    return " ".join(text.split())


def folded_lines(text: str) -> list[str]:
    """The lines of `text` that are not blank, each folded."""
    return [line for line in map(folded, text.splitlines()) if line]


def read_conversation(text: str) -> Conversation:
    """The messages of a prompt's conversation, without its introduction; a text without headers is the user's."""
    headers = list(_HEADER.finditer(text))
    if not headers:
        return Conversation((Said("user", text),))
    said: list[Said] = []
    closing = 0
    ends = [header.start() for header in headers[1:]] + [len(text)]
    for header, end in zip(headers, ends, strict=True):
        own, calls, closing = _read_message(text[header.end() : end])
        by = header[1] or header[2]
        if own.strip() or not calls:
            said.append(Said(by, own.strip()))
        said += calls
    return Conversation(tuple(said), closing)


def _read_message(body: str) -> tuple[str, list[Said], int]:
    """What stands behind a header: the message's text, the calls in it, and how many lines are nobody's."""
    first, *rest = body.split("\n")
    own, calls, closing = [first], list[Said](), 0
    for line in rest:
        if line.startswith(_INDENT) or not line.strip():
            own.append(line.removeprefix(_INDENT))
        elif line.startswith(_TAG):
            calls.append(_read_call(line))
        else:
            closing += 1
    return "\n".join(own), calls, closing


def _read_call(line: str) -> Said:
    found = _CALL.match(line)
    try:
        value: object = json.loads(found[1] if found else "", strict=False)
    except ValueError:
        value = None
    match value:
        case {"name": str(name), **rest}:
            return Said("call", json.dumps(rest.get("arguments"), sort_keys=True), name)
        case _:
            return Said("call", line)


def closing_lines(conversation: Conversation, text: str, last_user: str) -> int:
    """How many lines of `text` are the proxy's own. Without headers: all behind `last_user`."""
    if _HEADER.search(text):
        return conversation.closing
    return max(0, len(folded_lines(text)) - len(folded_lines(last_user)))


def common_end(one: Conversation, other: Conversation) -> int:
    """How many messages at the end of both are the same."""
    count = 0
    for mine, theirs in _backwards(one, other):
        if (mine.by, mine.tool, folded(mine.text)) != (theirs.by, theirs.tool, folded(theirs.text)):
            break
        count += 1
    return count


def _backwards(one: Conversation, other: Conversation) -> Iterator[tuple[Said, Said]]:
    return zip(reversed(one.said), reversed(other.said), strict=False)
