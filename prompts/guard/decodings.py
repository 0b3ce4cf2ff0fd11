r"""A text as a copy may spell it, and as what it may be an encoding of.

Undone are, on top of one another: the escapes of JSON, of programs (`\x7b`), of HTML and of addresses (`%7B`), the
doubled quotes of CSV and SQL, and a text in strings, one for each line, as in programs and notebooks.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from urllib.parse import unquote

from ..escape import INVISIBLE, json_unescape, normalise_newlines
from .budget import ReadingBudget
from .characters import COLOUR, typed

# Strategy: rather a reading too many than one too few. A reading that nobody would write costs some work, and a call is
# held back for it only if the answer has exactly that call. A reading that is missing is a way in: whoever wrote the
# note chose its spelling, and a model that shows the note may undo it.
#
# Each encoding is undone once at a time and every text on the way is read: a call's own strings may hold an escape that
# must stay. Most pairs commute, and a text that was met on another way is not read again.

# Decodings on top of one another. A string inside a string inside a string: a tool's JSON output that holds a note that
# holds JSON; and a page in the innermost.
_DEPTH = 4
# What it costs to undo one escape, in a `ReadingBudget`'s units.
_ESCAPE = 24

# How JSON in ASCII writes one character beyond 16 bits: as two escapes, which are decoded one by one.
_HALVES = re.compile(r"[\ud800-\udbff][\udc00-\udfff]")
_UNSEEN = re.compile(f"[{INVISIBLE}]+")
# Not from within a row of backslashes, which would be looked along from each of them.
_COLOUR = re.compile(rf"(?:(?<!\\)|(?!\\)){COLOUR}")
# No-break, typographic and ideographic blanks: no white space to JSON, plain blanks in a copy.
_BLANK = re.compile(r"[^\S\n\t\r ]")
# What each begins with, and the whole.
PROGRAM_ESCAPES = (("\\x", r"\\x([0-9a-fA-F]{2})"), ("\\u{", r"\\u\{0*+([0-9a-fA-F]{1,4})\}"))
# Where one string with a line in it ends and the next begins.
_NEXT_STRING = r"\\n{quote}[ \t]*+[+,.]?[ \t]*+\\?\n[ \t]*+[A-Za-z]{{0,2}}{quote}"
# As Markdown escapes punctuation; before the others a backslash means something in JSON.
_MARKDOWN_ESCAPE = re.compile(r'\\(?=[^\w\s"\\/]|_)')
_PERCENT = re.compile(r"%[0-9a-fA-F]{2}")
# As mail writes the equals sign and what is not ASCII. What it puts at line ends is taken away with the lines.
_MAIL = re.compile("=(?=3D|[C-E][0-9A-F])")
# Empty strings are no doubled quotes, and no call that has quotes can do without one in front of a word.
_DOUBLED = re.compile(r'(?<!")""(?=[\w\\"])')
_DOUBLED_SINGLE = re.compile(r"(?<!')''(?=[\w\\'])")


def _character(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16))


def _from_json(text: str) -> str:
    # Whatever the text is, as the JSON may begin anywhere in it.
    decoded = json_unescape(text)
    halves = _HALVES.search(decoded)
    return decoded.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") if halves else decoded


@dataclass(frozen=True, slots=True)
class _Encoding:
    """How one encoding is undone. `escape` is what each of its escapes begins with; `most` is how often in a row."""

    escape: str
    is_used: re.Pattern[str]
    decode: Callable[[str], str]
    most: int


_ENCODINGS = (
    _Encoding("\\", re.compile(r"\\"), _from_json, 3),
    *(_Encoding(begin, re.compile(form), partial(re.sub, form, _character), 2) for begin, form in PROGRAM_ESCAPES),
    *(
        _Encoding(f"\\n{quote}", re.compile(form), partial(re.sub, form, r"\\n"), 1)
        for quote, form in ((quote, _NEXT_STRING.format(quote=quote)) for quote in "\"'")
    ),
    _Encoding("&", re.compile(r"&(?:#[\dxX]|[A-Za-z]{2})"), html.unescape, 3),
    _Encoding("%", _PERCENT, unquote, 2),
    # As forms write blanks.
    _Encoding("%", re.compile(r"\S\+\S"), lambda text: unquote(text.replace("+", " ")), 1),
    _Encoding("=", _MAIL, lambda text: unquote(re.sub("=(?=[0-9A-F]{2})", "%", text.replace("%", "%25"))), 1),
    _Encoding('""', _DOUBLED, lambda text: text.replace('""', '"'), 2),
    _Encoding("''", _DOUBLED_SINGLE, lambda text: text.replace("''", "'"), 2),
)


def readings(text: str, budget: ReadingBudget) -> Iterator[str]:
    """`text` as it stands, as a copy may spell it, and as what it may be an encoding of.

    Raises `TooMuchToReadError`.
    """
    # Searches that find little cost half a unit a character.
    budget.spend(len(text) // 2)
    yield from _spellings(text)
    # `hash` is keyed: nobody can make two texts that have the same.
    known = {hash(text)}
    level = [(text, (0,) * len(_ENCODINGS))]
    for _ in range(_DEPTH):
        decoded: list[tuple[str, tuple[int, ...]]] = []
        for outer, undone in level:
            for number, encoding in enumerate(_ENCODINGS):
                if undone[number] == encoding.most or encoding.escape not in outer:
                    continue
                # Each escape is decoded by a call of its own, so that a text of nothing but backslashes takes nearly
                # fifty times as much: that is what has to be counted.
                budget.spend(len(outer) // 2)
                if not encoding.is_used.search(outer):
                    continue
                budget.spend(_ESCAPE * outer.count(encoding.escape))
                inner = encoding.decode(outer)
                if (key := hash(inner)) in known:
                    continue
                known.add(key)
                budget.spend(len(inner) // 2)
                yield from _spellings(inner)
                decoded.append((inner, (*undone[:number], undone[number] + 1, *undone[number + 1 :])))
        level = decoded


def _spellings(text: str) -> Iterable[str]:
    # One is no substitute for the other: curly quotes inside of a string end it when they are typed as straight ones.
    shown = normalise_newlines(text)
    seen = _COLOUR.sub("", shown) if "\x1b" in shown else shown
    seen = _BLANK.sub(" ", _UNSEEN.sub("", seen))
    return dict.fromkeys((text, shown, seen, _MARKDOWN_ESCAPE.sub("", typed(seen))))
