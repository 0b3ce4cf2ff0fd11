"""Whether a word stands in a request, in whatever spelling a model would read it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from urllib.parse import unquote

from ..escape import INVISIBLE, json_unescape
from .characters import typed

# Levels of encoding, as one note lies in another's JSON.
_LEVELS = 3

# Characters that are typed at a time: some 5 ms.
_PIECE = 65_536

# Escapes of letters and digits in JSON, HTML and URLs. Hardly anybody writes one, so most requests are read just once.
# One by one, as a search for a pattern's own first character is six times as fast as one for any of three.
_ENCODED = (
    re.compile(r"\\u00[3467]", re.IGNORECASE),
    re.compile(r"&(?:amp;)*+#", re.IGNORECASE),
    re.compile(r"%(?:25)*+[3467]"),
)
_UNSEEN = re.compile(f"[{INVISIBLE}]+")


def holds_word(word: str, strings: Iterable[str]) -> bool:
    """Whether `word`, of lower-case letters and digits, stands in one of `strings`, or is cut over two of them."""
    # One text of them all: a copy may leave out what stands between two strings.
    text = "".join(string.strip() for string in strings)
    for _ in range(_LEVELS):
        if word in _folded(text):
            return True
        if not any(pattern.search(text) for pattern in _ENCODED):
            return False
        text = unquote(html.unescape(json_unescape(text)))
    return word in _folded(text)


def _folded(text: str) -> str:
    if text.isascii():
        return text.casefold()
    # In pieces, as nothing else runs while one is typed: each character stands for itself alone.
    pieces = (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))
    return "".join(_UNSEEN.sub("", typed(piece)).casefold() for piece in pieces)
