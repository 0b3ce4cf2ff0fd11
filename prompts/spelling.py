r"""What a text says, however it is spelled: `essence`, its letters and digits with all encodings undone.

`t\u200bool\u005fcall`, `TOOL_CALL`, `tool&#95;call` and `tool%5Fcall` have one essence. So have a call as it is
asked for and the same call in JSON, HTML, Python, a table or a listing with numbers. Texts are compared, not read:
nothing has to be parsed, and no way to write a call has to be known.
"""

from __future__ import annotations

import html
import re
import string
import unicodedata
from functools import cache
from urllib.parse import unquote

from .escape import INVISIBLE

# What only looks like it, and what is one ASCII character by NFKD, without its accents. A table, since
# `unicodedata.normalize` takes quadratic time on hostile text. Letters are those of our tags, in Greek, Cyrillic and
# Armenian.
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
    "a": "\u03b1\u0430\u0251\u1d00",
    "c": "\u03f2\u0441\u1d04",
    "l": "\u04cf\u0399\u0406\u01c0\u029f",
    "o": "\u03bf\u043e\u0585\u1d0f",
    "t": "\u03c4\u0442\u1d1b",
    "A": "\u0391\u0410",
    "C": "\u03f9\u0421",
    "O": "\u039f\u041e\u0555",
    "T": "\u03a4\u0422",
}
# Where NFKD is asked, which takes its time and so not of all Unicode: Latin, punctuation, letter-like and enclosed
# characters, CJK forms, full width; and the letters of mathematics.
_COMPATIBLE = (range(0xA0, 0x250), range(0x1E00, 0x2500), range(0x3000, 0x3400), range(0xFE10, 0xFFEF))
_MATHEMATICAL = (range(0x1D400, 0x1D800), range(0x1F100, 0x1F200))


@cache  # when it is first needed, as much text is ASCII
def _typed_characters() -> dict[int, str]:
    table = {}
    for code in (code for codes in (*_COMPATIBLE, *_MATHEMATICAL) for code in codes):
        plain = "".join(part for part in unicodedata.normalize("NFKD", chr(code)) if not unicodedata.combining(part))
        if len(plain) == 1 and plain.isascii():
            table[code] = plain
    return table | {ord(alike): plain for plain, likes in _LOOKALIKES.items() for alike in likes}


def typed(text: str) -> str:
    """`text` with the characters of a keyboard for those that only look like them."""
    return text if text.isascii() else text.translate(_typed_characters())


# Encodings of different kinds on top of one another; one of a kind on top of itself is undone at once.
ROUNDS = 3
_NESTED_HTML = re.compile(r"&(?:amp;|#0*38;|#[xX]0*26;)+")
_NESTED_PERCENT = re.compile(r"%(?:25)+(?=[0-9a-fA-F]{2})")
# As programs escape a character, and as JSON does. From the beginning of a row of backslashes only: it would be looked
# along from each of them.
_CODE_ESCAPE = re.compile(r"(?<!\\)\\++(?:x([0-9a-fA-F]{2})|u\{0*+([0-9a-fA-F]{1,4})\}|(?:u|U0000)([0-9a-fA-F]{4}))")
_OCTAL_ESCAPE = re.compile(r"(?<!\\)\\++([01][0-7]{2})")
# As mail does, and as people name a character.
_MAIL_ESCAPE = re.compile(r"=([0-9A-F]{2})|U\+00([0-9A-F]{2})")
_SPACE_ESCAPE = re.compile(r"(?<!\\)\\++[bfnrt]")
# As terminals switch colours.
_COLOUR = re.compile(r"\x1b\[[\d;]{0,16}+[A-Za-z]")

_NO_LETTER = re.compile(rf"[\W_{INVISIBLE}]+")
_LOWER = bytes.maketrans(string.ascii_uppercase.encode(), string.ascii_lowercase.encode())
_NO_ASCII_LETTER = bytes(set(range(128)) - set((string.ascii_letters + string.digits).encode()))


def essence(text: str) -> str:
    """The letters and digits of `text`, in lower case, whatever it is encoded as.

    A few searches for each encoding that it may have, up to three on top of one another.
    """
    text = _innermost(text)
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    if text.isascii():
        # Most text is, and a pattern takes ten times as long.
        return text.encode().translate(_LOWER, _NO_ASCII_LETTER).decode()
    # Unseen letters go first: case folding may make others of them.
    return _NO_LETTER.sub("", typed(text)).casefold()


def _innermost(text: str) -> str:
    for _ in range(ROUNDS):
        before = text
        if "&" in text:
            text = html.unescape(_NESTED_HTML.sub("&", text))
        if "%" in text:
            text = unquote(_NESTED_PERCENT.sub("%", text))
        if "=" in text or "U+" in text:
            text = _MAIL_ESCAPE.sub(lambda match: chr(int(match[1] or match[2], 16)), text)
        if "\\" in text:
            text = _OCTAL_ESCAPE.sub(lambda match: chr(int(match[1], 8)), text)
            text = _SPACE_ESCAPE.sub(
                "\n", _CODE_ESCAPE.sub(lambda match: chr(int(match[match.lastindex or 0], 16)), text)
            )
            # Two halves of a character are one again, as it stands in a value.
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if text == before:
            break
    return text
