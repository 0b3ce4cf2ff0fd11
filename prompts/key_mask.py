"""The call key as others see it: its length, the text in its place wherever anybody but the model looks, and whether it
stands in the request, because then it proves nothing any more.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from urllib.parse import unquote

from .beginnings import Beginnings, Begun
from .escape import INVISIBLE, json_unescape
from .outline import outline_of
from .spelling import ROUNDS, typed
from .transcript import Entry, Transcript, strings_of

# Characters of a key: a digit, since prose has few, and small letters, of which a token holds more than of digits. Each
# call costs 11 tokens for it with Qwen2.5's tokens, where 16 hexadecimal digits took 19; it is one of 5e13.
KEY_LENGTH = 10

# What is written instead of a key, in all that leaves. Nothing in it can end a JSON string.
MASK = "[call key]"

# Characters that are typed at a time: some 5 ms.
_PIECE = 65_536

# Escapes of letters and digits in JSON, HTML and URLs. Hardly anybody writes one, so most requests are read just once.
# One by one, as a search for a pattern's own first character is six times as fast as one for any of three; and that
# character alone is found to be missing in a twentieth of the time.
_ENCODED = {
    "\\": re.compile(r"\\u00[3467]", re.IGNORECASE),
    "&": re.compile(r"&(?:amp;)*+#", re.IGNORECASE),
    "%": re.compile(r"%(?:25)*+[3467]"),
}
_UNSEEN = re.compile(f"[{INVISIBLE}]+")

# Bytes that conversations may take in which a key was looked for lately; of each the open end is known.
_BEGINNINGS: Beginnings[tuple[Entry, ...], str] = Beginnings(2 * 2**20)


def holds_word(word: str, strings: Iterable[str]) -> bool:
    """Whether `word`, of lower-case letters and digits, stands in one of `strings`, or is cut over two of them.

    Asked of each request, for its key: so it is less than a search in the essence, which nearly no request needs.
    """
    # One text of them all: a copy may leave out what stands between two strings.
    text = "".join(map(str.strip, strings))
    for _ in range(ROUNDS):
        if word in _unstyled(text):
            return True
        if not any(first in text and pattern.search(text) for first, pattern in _ENCODED.items()):
            return False
        text = unquote(html.unescape(json_unescape(text)))
    return word in _unstyled(text)


def was_sent(word: str, transcript: Transcript, others: Iterable[str]) -> bool:
    """Whether `word` stands in `transcript`, or in the `others` behind it, as `holds_word` finds it."""
    context, entries = (word, transcript.instructions), transcript.entries
    begun = _BEGINNINGS.find(context, entries)
    start, open_end = (0, transcript.instructions or "") if begun is None else (len(begun.beginning), begun.made)
    new = [open_end, *strings_of(entries[start:-1])]
    if holds_word(word, [*new, *strings_of(entries[max(start, len(entries) - 1) :]), *others]):
        return True
    if start < len(entries) - 1:
        open_end = _open_end(new)
        _BEGINNINGS.keep(Begun(context, entries[:-1], open_end, outline_of(entries).bytes), begun)
    return False


def _open_end(strings: Iterable[str]) -> str:
    """The characters that a word over two strings may begin with. White space is in no word, nor in anything that
    stands for one of its letters.
    """
    text = "".join(map(str.strip, strings))
    return text[max(map(text.rfind, " \t\r\n")) + 1 :]


def _unstyled(text: str) -> str:
    if text.isascii():
        return text.casefold()
    # In pieces, as nothing else runs while one is typed: each character stands for itself alone.
    pieces = (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))
    return "".join(_UNSEEN.sub("", typed(piece)).casefold() for piece in pieces)
