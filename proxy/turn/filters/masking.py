"""Takes the call key out of what a model wrote, on its way to anybody but the model.

A model may be asked for its key, by a note for instance. Somebody who reads the key could put it into a forged call. So
it leaves nowhere: neither in text nor in arguments, neither whole nor cut over two deltas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from prompts import MASK

# Characters. A beginning of the key that is as long is no accident: cut off there, it is taken out as well.
_NO_ACCIDENT = 5
# A character as JSON escapes it, at whatever depth, and the beginning of that where the text ends.
_ESCAPED = re.compile(r"\\{1,4}u00([0-9a-f]{2})", re.IGNORECASE)
_ESCAPED_BEGUN = re.compile(r"\\{1,4}(u?[0-9a-f]{0,3})\Z", re.IGNORECASE)


def _stands(key: str, text: str, at: int) -> tuple[int, int | None]:
    """How many characters of `key` stand in `text` from `at` on, and where that ends; None: something else follows."""
    for count, char in enumerate(key):
        if at == len(text):
            return count, at
        if text[at].lower() == char:
            at += 1
        elif (escaped := _ESCAPED.match(text, at)) and int(escaped[1], 16) == ord(char):
            at = escaped.end()
        else:
            begun = _ESCAPED_BEGUN.match(text, at)
            return count, len(text) if begun and f"u00{ord(char):02x}".startswith(begun[1].lower()) else None
    return len(key), at


@lru_cache
def _begins(char: str) -> re.Pattern[str]:
    """What a key may begin with whose first character that is: few texts have it."""
    return re.compile(rf"[{char}\\]")


def places(key: str, text: str) -> Iterator[tuple[int, int, bool]]:
    """From where to where `key` stands in `text`, and whether all of it does: the text may end in it."""
    end = 0
    for begin in _begins(key[0]).finditer(text):
        if begin.start() >= end:
            count, stop = _stands(key, text, begin.start())
            if stop is not None:
                yield begin.start(), (end := stop), count == len(key)


class Mask:
    """`MASK` for each `key`, if there is one, in text that arrives in pieces; how it is cut does not show.

    What may be the beginning of a key waits, a bounded piece.
    """

    __slots__ = ("_begun", "_key")

    def __init__(self, key: str | None) -> None:
        self._key = key
        self._begun = ""

    def feed(self, text: str) -> str:
        """The text that may leave now."""
        if self._key is None or not (self._begun or self._key[0] in text or "\\" in text):
            return text
        text, self._begun = self._begun + text, ""
        shown: list[str] = []
        left = 0
        for start, end, is_whole in places(self._key, text):
            shown.append(text[left:start])
            left = end
            if is_whole:
                shown.append(MASK)
            else:
                self._begun = text[start:]
        return "".join((*shown, text[left:]))

    def flush(self) -> str:
        """What waited, at the end of the text; the next `feed` begins a new one."""
        begun, self._begun = self._begun, ""
        return MASK if self._key and _stands(self._key, begun, 0)[0] >= _NO_ACCIDENT else begun


def masked(text: str, key: str | None) -> str:
    """`text` as it leaves in one piece."""
    mask = Mask(key)
    return mask.feed(text) + mask.flush()
