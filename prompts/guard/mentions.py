"""Whether a text names a tool and all that a call hands it: the test for texts that are too much to read.

Whatever can be read as a call holds its name and its values, so a text in which one of them is missing does not
quote it. The reverse is not true: a text may name them in passing.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from ..canonical import canonical
from ..escape import INVISIBLE
from .budget import ReadingBudget
from .characters import typed
from .decodings import PROGRAM_ESCAPES
from .lines import unmarked

# Strategy: what a copy may change is taken out of both sides, text and values: all encodings at once, down to the
# innermost, case, and every character that is no letter or digit. What an exact reading would have to decide (how
# often a text is encoded, where its strings end) has no say then, and no text takes more than a few searches.

# Encodings of different kinds on top of one another; one of a kind on top of itself is undone at once.
_ROUNDS = 3
# Units of a `ReadingBudget` for one escape.
_ESCAPE = 12

_JSON_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|[bfnrt])?")
_PROGRAM_ESCAPE = re.compile(rf"(?<!\\)\\*(?:{'|'.join(form for _, form in PROGRAM_ESCAPES)})")
_NESTED_HTML = re.compile(r"&(?:amp;|#0*38;|#[xX]0*26;)+")
_NESTED_PERCENT = re.compile(r"%(?:25)+(?=[0-9a-fA-F]{2})")
_NO_LETTER = re.compile(rf"[\W_{INVISIBLE}]+")


def _innermost(text: str) -> str:
    for _ in range(_ROUNDS):
        before = text
        if "&" in text:
            text = html.unescape(_NESTED_HTML.sub("&", text))
        if "%" in text:
            text = unquote(_NESTED_PERCENT.sub("%", text))
        if "\\" in text:
            text = _PROGRAM_ESCAPE.sub(lambda match: chr(int(match[1] or match[2], 16)), text)
            # Two halves of a character are one again, as it stands in a value.
            text = _JSON_ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else "\n", text)
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if text == before:
            break
    return text


def essence(text: str) -> str:
    """The letters and digits of `text`, whatever it is encoded as."""
    # Unseen letters go first: case folding may make others of them.
    return _NO_LETTER.sub("", typed(_innermost(text))).casefold()


def essences(text: str, budget: ReadingBudget) -> str:
    """The essence of `text` as it stands, and without the numbers in front of its lines; a line each.

    Raises `TooMuchToReadError`.
    """
    # Each round, for both: what is searched, and what is replaced.
    escapes = sum(map(text.count, "&%\\"))
    budget.spend(2 * _ROUNDS * (len(text) // 2 + _ESCAPE * escapes // _ROUNDS))
    plain = _innermost(text)
    return "\n".join(dict.fromkeys(_NO_LETTER.sub("", typed(form)).casefold() for form in unmarked(plain)))


@dataclass(frozen=True, slots=True)
class Mention:
    """What a text must hold to mention one call: one of `names`, and all `values`; as essences."""

    names: frozenset[str]
    values: frozenset[str]

    def stands_in(self, held: str) -> bool:
        """Whether the essence of a text has all of it."""
        return any(name in held for name in self.names) and all(value in held for value in self.values)


def mention(names: Iterable[str], arguments: str) -> Mention:
    """What mentions a call by one of these names with the JSON object `arguments`."""
    return Mention(frozenset(map(essence, names)), frozenset(map(essence, scalars(arguments))))


def scalars(arguments: str) -> list[str]:
    """The strings and numbers in the JSON object `arguments`; none, if it is no such object.

    Of a number the digits that all ways to write it have. `true` and `null` are written in many ways, and named by
    nobody.
    """
    comparable = canonical(arguments)
    return [] if comparable is None else list(_scalars(json.loads(comparable)))


def _scalars(value: object) -> Iterator[str]:
    todo = [value]
    while todo:
        match todo.pop():
            case str(text):
                yield text
            # As `canonical` keeps numbers apart from strings.
            case {"\0number": str(written)}:
                yield written.lstrip("-").partition("e")[0]
            case dict(members):
                todo += members.values()
            case list(items):
                todo += items
            case _:
                pass
