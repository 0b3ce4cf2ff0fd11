"""Whether a text may hold one of our tags at all: a few searches, and for most requests all that the guard does."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..escape import INVISIBLE
from .characters import COLOUR, TYPED

# Between two letters of the word: what is not seen, escaped or not, the backslash of Markdown, and the end of a line
# with what the next one begins with (no file names: to look for these behind every `t` costs more than all the rest).
# The line break may be one of JSON.
_LINE_BREAK = r"(?:[=\\]?[ \t]{0,16}+(?:\r\n?|\n)|=?\\++[nr])(?:[ \t\d>+#*|/:;.)%│→-]|\\++[tnr]){0,48}+"
_ESCAPED = r"\\++(?:u[0-9a-fA-F]{4})?|&(?:amp;)*+#?\w{1,20}+;|(?:%(?:25)*+[0-9a-fA-F]{2})++"
_GAP = rf"(?:{COLOUR}|[{INVISIBLE}]|{_LINE_BREAK}|{_ESCAPED})*+"


def _letter(letter: str) -> str:
    """A class of all that is typed as `letter`. Without IGNORECASE, which would make the search slow."""
    # Full width or mathematical letters are read and copied as the letter, so they are suspect as it is.
    alike = (chr(code) for code, plain in TYPED.items() if plain.lower() == letter)
    return f"[{letter}{letter.upper()}{''.join(alike)}]"


# Each character of a text is held against the first letter, and so against one range in place of thirty letters of
# mathematics: that takes a quarter of the time, and nobody's word begins with an emoji.
_FIRST = re.sub("[\U00010000-\U0010ffff]+", "\U00010000-\U0010ffff", _letter("t"))
# The word alone, since its `<` may be written as `\u003c` or `&lt;`. What may follow its first letter is looked at
# first: most words that begin with it are others.
_WORD = re.compile(rf"{_FIRST}(?=[\n\r={INVISIBLE}\\&%]|{_letter('o')}){_GAP}{_GAP.join(map(_letter, 'ool_call'))}")

_ESCAPED_LETTERS = (
    # Nobody escapes letters, but a letter of the word may be written like that.
    # From U+0040 to U+007F ASCII has its letters and the underscore. Suspicion is enough here: decoding costs more. The
    # escape may itself begin with one: `\u0026#116;`, `\u002574`.
    # So may a letter in full width, or one of mathematics.
    re.compile(r"\\u(?:00(?:[4-7]|26(?:#|\\++u0023)|25[4-7])|[fF][fF][2-5]|[dD]835)"),
    # As programs escape it.
    re.compile(r"\\(?:x|u\{0*+)[4-7]"),
    # The same in HTML: decimal, hexadecimal, and by the names of the underscore; a percent sign of the next.
    re.compile(
        r"&(?:amp;|#38;|#[xX]26;)*+(?:#0*+(?:9[579]|1[0-2]\d|[68]\d|7\d|37)|#[xX]0*+(?:[4-7]|25)|lowbar|UnderBar|percnt"
        r"|#0*+653[1-7]|#[xX]0*+[fF][fF][2-5])"
    ),
    # And in addresses, however often that was encoded again. `@`, `[` and the like have reasons to be.
    re.compile(
        r"%(?:25)*+(?:4[1-9A-Fa-f]|5[0-9AaFf]|6[1-9A-Fa-f]|7[0-9Aa]|26(?:#|%(?:25)*+23)|5[cC]u00|[eE][fF]%(?:25)*+[bB][cCdD])"
    ),
)


def is_suspect(text: str) -> bool:
    """Whether any reading of `text` may hold the word of our tags."""
    return bool(_WORD.search(text)) or any(pattern.search(text) for pattern in _ESCAPED_LETTERS)


# Characters in front of the word in which its `<` stands, however that is written. A tag with more filling is no tag
# to any reader, as `escape` has it; the rest is for the case that the filling is escaped.
_BEFORE = 96
_OPENER = re.compile(rf"[<&%{''.join(chr(code) for code, plain in TYPED.items() if plain == '<')}]|\\[ux]")


def places(text: str) -> Iterator[int]:
    """Where in `text` something may be a tag, in any reading: each place lies somewhat in front of it."""
    for word in _WORD.finditer(text):
        start = max(0, word.start() - _BEFORE)
        if _OPENER.search(text, start, word.start()):
            yield start
    for pattern in _ESCAPED_LETTERS:
        for letter in pattern.finditer(text):
            yield max(0, letter.start() - _BEFORE)


def may_hold_tag(text: str) -> bool:
    """Whether any reading of `text` may hold a tag of ours, and not just its word."""
    return any(True for _ in places(text))
