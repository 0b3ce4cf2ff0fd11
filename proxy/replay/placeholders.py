"""The placeholders for private things in a recording, and how they match a text that still has the private things."""

from __future__ import annotations

import re

KEY = "[key]"
REDACTED = "[redacted]"
PERSON = "somebody"
HOME = "/home/user"
WINDOWS_HOME = r"C:\Users\user"


def mail_address(number: int) -> str:
    """The one that stands for the so-manyth of a recording."""
    return f"user{'' if number == 1 else number}@example.com"


_PLACEHOLDER = re.compile(r"\[key\]|\[redacted\]|/home/user|C:\\Users\\user|\buser\d*@example\.com")


def stands_for(written: str, text: str) -> bool:
    """Whether `text` is, or begins with whole lines that are, what was `written` with its placeholders.

    Each stands for some text, of any length. Time is linear, as nothing is tried twice.
    """
    first, *literals = _PLACEHOLDER.split(written)
    if not text.startswith(first):
        return False
    at = len(first)
    for number, literal in enumerate(literals, start=1):
        # Where the leftmost place does, no later one does better, but for the end, which has to be that of a line.
        at = _find_end(text, literal, at + 1) if number == len(literals) else text.find(literal, at + 1)
        if at < 0:
            return False
        at += len(literal)
    return at == len(text) or text[at] == "\n"


def _find_end(text: str, literal: str, begin: int) -> int:
    """Where `literal` stands first from `begin` on at the end of a line, -1 for nowhere."""
    return f"{text}\n".find(f"{literal}\n", begin)
