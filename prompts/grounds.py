"""What a call right behind results can stand on: what is not done yet, and names that somebody has said.

Small models go on calling when the results already say it all. The values alone show two kinds of such calls:

    append_to_note {"path": "log.md", "text": "Called Jo."}     was made, and answered, just now
    write_note     {"path": "log.md", "content": "Called Jo."}  has the same values: it is done
    fetch_page     {"url": "https://x.example/T-4410"}          has nothing but a name that stands nowhere

Either may still be meant: this module says which calls are worth asking for once more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import takewhile

from parser import Tool, ToolRegistry

from .canonical import leaves
from .transcript import PastCall, ToolResult, Transcript, untrusted_strings

# What stands around a value and does not make it another.
_AROUND = " \t\r\n\"'`.,;:!?"
_WORD = re.compile(r"[^\W_]+")
# Of a currency, a country, a language, a unit: who says "yen" means one.
_CODE = re.compile(r"[A-Z]{1,4}|[a-z]{1,2}(?:-[A-Z]{2})?")
# Who is in examples of forms everywhere. Others' names of two words may be in a text that the model is to write.
_NOBODY = frozenset({"john doe", "jane doe", "john smith", "jane smith"})


class Grounds:
    """Judges a call that comes where results are the newest entries of `transcript`; anywhere else it is false."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._answered = [(call.name, [*leaves(call.arguments)]) for call in _answered_just_now(transcript)]

    def __bool__(self) -> bool:
        return bool(self._answered)

    def adds_nothing(self, tool: Tool, arguments: str) -> bool:
        """Whether a call has the values of one whose result has just come, or no others but names that stand nowhere.

        Of another tool it has two values at least in common. A name is one word of ASCII with a letter in it, as a
        path, an address or a table's name is, or John Doe; a code, as EUR, is none, nor is what the tool's schema
        lists. It stands somewhere if each part of it does.
        """
        values = [*leaves(arguments)]
        same = [name for name, made in self._answered if _folded(made) == _folded(values)]
        if tool.name in same or (same and len(values) > 1):
            return True
        new = [value for value in values if not self._sent.issuperset(_words([str(value)]))]
        return bool(new) and all(self._is_made_up(value, tool) for value in new)

    def _is_made_up(self, value: object, tool: Tool) -> bool:
        return (
            isinstance(value, str)
            and _is_name(value)
            and not self._said.issuperset(_words([value]))
            and json.dumps(value) not in (tool.parameters or "")
        )

    @cached_property
    def _sent(self) -> frozenset[str]:
        return frozenset(_words(str(value) for _, made in self._answered for value in made))

    @cached_property
    def _said(self) -> frozenset[str]:
        return frozenset(_words(untrusted_strings(self._transcript, ToolRegistry())))


def _answered_just_now(transcript: Transcript) -> list[PastCall]:
    newest = takewhile(lambda entry: isinstance(entry, ToolResult), reversed(transcript.entries))
    ids = {entry.call_id for entry in newest if isinstance(entry, ToolResult)}
    return [entry for entry in transcript.entries if isinstance(entry, PastCall) and entry.call_id in ids]


def _folded(values: Iterable[object]) -> list[str]:
    """`values` in one order, without what does not count: case, and blanks and points around them."""
    return sorted(str(value).casefold().strip(_AROUND) for value in values)


def _words(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from _WORD.findall(text.casefold())


def _is_name(value: str) -> bool:
    if value.strip(_AROUND).casefold() in _NOBODY:
        return True
    return value.isascii() and len(value.split()) == 1 and any(map(str.isalpha, value)) and not _CODE.fullmatch(value)
