"""What of a text's characters a copy keeps: those that only look like others are typed as these, some get lost."""

from __future__ import annotations

import re
import unicodedata

from ..escape import INVISIBLE

# As terminals switch colours, raw or escaped.
COLOUR = r"(?:\x1b|\\++(?:u001[bB]|x1[bB]|033|e))\[[\d;]{0,16}+[A-Za-z]"

# What only looks like it, and what NFKC maps to one ASCII character. A table, since `unicodedata.normalize`
# takes quadratic time on hostile text.
_LOOKALIKES = {
    '"': "\u201c\u201d\u201e\u201f\u2033\u2036\u301d\u301e\u301f\u275d\u275e",
    "'": "\u2018\u2019\u201a\u201b\u2032\u2035\u275b\u275c",
    "<": "\u2039\u27e8\u3008\u276c\u276e",
    ">": "\u203a\u27e9\u3009\u276d\u276f",
    "{": "\u2774",
    "}": "\u2775",
    ":": "\u2236\ua789\u02d0",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
    "/": "\u2044\u2215\u29f8",
    "\\": "\u2216\u29f5",
}
# Where NFKC is asked, which is done at import and so not of all Unicode: Latin, punctuation, letter-like and enclosed
# characters, CJK forms, full width; and the letters of mathematics.
_COMPATIBLE = (range(0xA0, 0x250), range(0x2000, 0x2500), range(0x3000, 0x3400), range(0xFE10, 0xFFEF))
_MATHEMATICAL = (range(0x1D400, 0x1D800), range(0x1F100, 0x1F200))


def _typed_characters() -> dict[int, str]:
    table = {}
    for code in (code for codes in (*_COMPATIBLE, *_MATHEMATICAL) for code in codes):
        plain = unicodedata.normalize("NFKC", chr(code))
        # What stands for several characters, as a fraction does, has no place in a tag or between the tokens of JSON.
        if len(plain) == 1 and plain.isascii():
            table[code] = plain
    return table | {ord(alike): plain for plain, likes in _LOOKALIKES.items() for alike in likes}


TYPED = _typed_characters()


def typed(text: str) -> str:
    """`text` with the characters of a keyboard for those that only look like them."""
    return text if text.isascii() else text.translate(TYPED)


# Backslashes behind `<` are our own escaping. `\n` and the like and `\u00..` below U+0020 are white space as JSON
# writes it. Everything unseen may get lost in a copy.
_FOLDED_AWAY = re.compile(rf"(?<=<)\\+|\\[bfnrt]|\\u00[01][0-9a-f]|[\\\s{INVISIBLE}]+", re.IGNORECASE)


def fold(text: str) -> str:
    """`text` without what a copy may lose or change: white space, backslashes, unseen characters, type, case."""
    return _FOLDED_AWAY.sub("", typed(text)).casefold()
