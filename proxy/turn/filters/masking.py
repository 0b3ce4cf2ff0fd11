"""The call key taken out of what a model wrote, on its way to anybody but the model.

A model may be asked for its key, by a note for instance. What shows it could be copied into a call of somebody
else's making, so it leaves nowhere: not in text, nor in arguments, not whole and not cut over two deltas.
"""

from __future__ import annotations

import re
from functools import lru_cache

from prompts import MASK

# Characters. A beginning of the key that is as long is no accident: cut off there, it is taken out as well.
_TELLING = 5
# Of one character of the key at most, as `_written` spells it.
_LONGEST = 9


def _written(char: str) -> str:
    """`char` as itself or as JSON escapes it, at whatever depth."""
    return rf"(?:{char}|\\{{1,4}}u00{ord(char):02x})"


def _begun(key: str) -> str:
    """A pattern for every beginning of `key`, also one that ends in half an escape."""
    pattern = ""
    for char in reversed(key):
        code = f"u00{ord(char):02x}"
        half = "".join(f"(?:{digit}" for digit in code[:-1]) + ")?" * len(code[:-1])
        pattern = rf"(?:{_written(char)}{pattern}|\\{{1,4}}{half})?"
    return pattern


@lru_cache(maxsize=256)
def _patterns(key: str) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """For the key, for its telling beginning, and for any beginning of it where the text ends."""
    written = [_written(char) for char in key]
    return (
        re.compile("".join(written), re.IGNORECASE),
        re.compile("".join(written[:_TELLING]), re.IGNORECASE),
        # It begins with a character that is in few texts, so this is hardly ever asked.
        re.compile(rf"(?=[{key[0]}\\]){_begun(key)}\Z", re.IGNORECASE),
    )


class Mask:
    """`MASK` for each `key` in text that arrives in pieces; how it is cut does not show.

    What may be the beginning of a key is held back, a bounded piece.
    """

    __slots__ = ("_held", "_key")

    def __init__(self, key: str) -> None:
        self._key = key
        self._held = ""

    def feed(self, text: str) -> str:
        """The text that may leave now."""
        if not self._held and self._key[0] not in text and "\\" not in text:
            return text
        text, self._held = self._held + text, ""
        return self._spelt(text) if "\\" in text else self._plain(text)

    def _plain(self, text: str) -> str:
        """`feed` without a backslash in `text`, as in most answers: a new key's patterns take longer than a request."""
        key, left = self._key, 0
        shown: list[str] = []
        at = text.find(key[0])
        while at >= 0:
            found = text[at : at + len(key)].lower()
            if not key.startswith(found):
                at = text.find(key[0], at + 1)
            elif len(found) < len(key):
                self._held = text[at:]
                return "".join([*shown, text[left:at]])
            else:
                shown += text[left:at], MASK
                left = at + len(key)
                at = text.find(key[0], left)
        return "".join([*shown, text[left:]])

    def _spelt(self, text: str) -> str:
        """`feed` of any `text`."""
        whole, _, begun = _patterns(self._key)
        text = whole.sub(MASK, text)
        if found := begun.search(text, max(0, len(text) - len(self._key) * _LONGEST)):
            self._held = found[0]
            return text[: found.start()]
        return text

    def flush(self) -> str:
        """What was held back, at the end of the text; the next `feed` begins a new one."""
        held, self._held = self._held, ""
        return MASK if len(held) >= _TELLING and _patterns(self._key)[1].match(held) else held


def spelt(key: str) -> re.Pattern[str]:
    """What `masked` takes for `key`."""
    return _patterns(key)[0]


def masked(text: str, key: str | None) -> str:
    """`text` as it leaves in one piece: as it is where there is no key."""
    if key is None:
        return text
    mask = Mask(key)
    return mask.feed(text) + mask.flush()
