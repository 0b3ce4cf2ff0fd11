r"""Untrusted text can never look like our notation: escaping, its inverse, and indentation.

`<tool_call>` in any spelling that a reader of tags could accept, opening or closing, gets a backslash
after its `<`. If backslashes stand there already, it gets one more. So nothing is ambiguous, and the
way out takes away exactly one:

    <tool_call>  ->  <\tool_call>        </Tool_Call>  ->  <\/Tool_Call>        <\tool_call>  ->  <\\tool_call>

Only what follows the `<` decides, so escaping and unescaping are one linear pass each.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

# Default-ignorable code points, controls and the blank Braille cell: they are not seen, so a reader may skip them.
INVISIBLE = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"
)
# Bounded, so that streamed text is never held back for long: a tag with more filling than this is no tag to any reader.
_FILL = rf"[\s/{INVISIBLE}]{{0,64}}+"
_GAP = f"[{INVISIBLE}]{{0,8}}+"
_WORD = _GAP.join("tool_call")

# The `<` of a tag in any spelling, escaped or not.
LOOKALIKE = re.compile(rf"<(?=\\*+{_FILL}{_WORD})", re.IGNORECASE)

_ESCAPED = re.compile(rf"<\\(?=\\*+{_FILL}{_WORD})", re.IGNORECASE)


def _prefixes(word: str) -> str:
    """A pattern for every proper prefix of `word`, the empty one too."""
    pattern = ""
    for letter in reversed(word[:-1]):
        pattern = f"(?:{letter}{_GAP}{pattern})?"
    return pattern


# The end of a text that may become an escaped tag: backslashes, and what stands behind them.
_FORMING = re.compile(rf"<(?:(\\++)({_FILL}{_prefixes('tool_call')}))?", re.IGNORECASE)


def escape(text: str) -> str:
    """`text` without a tag of ours in any spelling. Injective: `unescape(escape(text)) == text`."""
    return LOOKALIKE.sub(r"<\\", text) if "<" in text else text


def unescape(text: str) -> str:
    """The inverse of `escape`; text that was never escaped only loses a backslash where `escape` would have put one."""
    return _ESCAPED.sub("<", text) if "<\\" in text else text


class Unescaper:
    r"""`unescape` for text that arrives in pieces; how it is cut does not show.

    Joined, what `feed` and `flush` return is `unescape` of the joined input. Only the last backslash of
    `<\` and what follows it is held back, a bounded piece, and only while a tag may be forming.
    """

    __slots__ = ("_tail",)

    def __init__(self) -> None:
        # Empty, or `<` (which has left already) with what is held back behind it.
        self._tail = ""

    def feed(self, text: str) -> str:
        if not self._tail and "<" not in text:
            return text
        sent = len(self._tail[:1])
        text = self._tail + text
        self._tail = ""
        start = text.rfind("<")
        if forming := _FORMING.fullmatch(text, start):
            backslashes, rest = forming.group(1) or "", forming.group(2) or ""
            # Of several backslashes all but one stay, whatever comes.
            ready = unescape(text[:start]) + "<" + backslashes[1:]
            self._tail = "<" + backslashes[:1] + rest
            return ready[sent:]
        return unescape(text)[sent:]

    def flush(self) -> str:
        """What was held back, at the end of the text; the next `feed` begins a new one."""
        held, self._tail = self._tail[1:], ""
        return held


_JSON_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*"', re.DOTALL)
_JSON_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_JSON_CHARACTER = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)|.", re.DOTALL)
_SHORT_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


# A text that is nothing but escapes has few different ones.
@lru_cache(maxsize=1024)
def _character(written: str) -> str:
    """The one character (a half of a surrogate pair counts as one) that a piece of a JSON string stands for."""
    if written[0] != "\\":
        return written
    return chr(int(f"0x{written[2:]}", 16)) if len(written) == 6 else _SHORT_ESCAPES.get(written[1], written[1])


def json_unescape(text: str) -> str:
    """`text` with its JSON string escapes decoded, whatever else it is."""
    return _JSON_ESCAPE.sub(lambda match: _character(match[0]), text)


def _edit_strings(raw: str, tag: re.Pattern[str], behind: int, edit: Callable[[str], str]) -> str:
    """`edit` one written character of each `tag` in the value of a string in `raw`: the one so far `behind` its `<`."""

    def edited(match: re.Match[str]) -> str:
        # The value's characters and their written forms have the same indices.
        if not tag.search(json_unescape(match[0])):
            return match[0]
        written = _JSON_CHARACTER.findall(match[0])
        value = "".join(map(_character, written))
        for found in tag.finditer(value):
            place = found.start() + behind
            written[place] = edit(written[place])  # in place: to move all that follows, at each tag, takes a minute
        return "".join(written)

    return _JSON_STRING.sub(edited, raw) if "<" in raw or "\\u" in raw else raw


def escape_json(raw: str) -> str:
    """The JSON text `raw` with `escape` done to every string in it, keys too; all other characters stay as they are."""
    return _edit_strings(raw, LOOKALIKE, 0, lambda written: written + r"\\")


def unescape_json(raw: str) -> str:
    """The inverse of `escape_json`, character for character; of other JSON text `unescape` of every string in it."""
    return _edit_strings(raw, _ESCAPED, 1, lambda _: "")


# In a string: what an escaped tag begins with, or may begin with, where the text ends; and the string up to its end.
_JSON_TAG_BEGUN = re.compile(r"(?:<|\\u003[cC])(?:(\\\\|\\u005[cC])|\Z)")
_JSON_INSIDE = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*', re.DOTALL)


class JsonUnescaper:
    """`unescape_json` for JSON text that arrives in pieces, none of which ends within an escape.

    From what may be an escaped tag on, a string waits for its end.
    """

    __slots__ = ("_forming", "_held")

    def __init__(self) -> None:
        # The `<` that the text ends with.
        self._forming = ""
        # A string from its escaped tag on, in pieces: none is looked at twice.
        self._held: list[str] = []

    def feed(self, text: str) -> str:
        if not self._forming and not self._held and "<" not in text and "\\u" not in text:
            return text
        text, self._forming = self._forming + text, ""
        ready: list[str] = []
        while True:
            if not self._held:
                begun = _JSON_TAG_BEGUN.search(text)
                if begun is None:
                    return "".join((*ready, text))
                ready.append(text[: begun.start()])
                text = text[begun.start() :]
                if begun[1] is None:
                    self._forming = text
                    return "".join(ready)
            inside = _JSON_INSIDE.match(text)
            end = len(text) if inside is None else inside.end()
            self._held.append(text[:end])
            text = text[end:]
            if not text:
                return "".join(ready)
            ready.append(unescape_json(f'"{self.flush()}"')[1:-1])

    def flush(self) -> str:
        """What waits, as it was written; the next `feed` begins a new text."""
        held = "".join((*self._held, self._forming))
        self._held, self._forming = [], ""
        return held


def normalise_newlines(text: str) -> str:
    r"""`text` with CR, CRLF, VT, FF, FS, GS, RS, NEL, U+2028 and U+2029 as `\n`: all that `str.splitlines` knows."""
    # The mark keeps a last line that is empty.
    return "\n".join(f"{text}|".splitlines())[:-1]


_LINE_START = re.compile(r"\n(?=[^\n])")


def indent(text: str) -> str:
    """Every line but the first moved right by two spaces; empty lines stay empty. Wants normalised newlines."""
    return _LINE_START.sub("\n  ", text)
