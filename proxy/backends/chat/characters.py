"""Characters that a server has cut, and JSON that only these characters break.

Servers cut an answer by tokens, whose bytes alone may not be UTF-8, or by UTF-16 units, of which an emoji has two. In
Python both are lone surrogates, the bytes by PEP 383. If the next event completes a character, it is restored. Any
other piece becomes U+FFFD.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from ...wire.json_body import well_formed

_HALF = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
# As many bytes as a character has. Where they are none after all, and alone, they stay what they are.
_BYTES = re.compile(
    "[\udcc2-\udcdf][\udc80-\udcbf]|[\udce0-\udcef][\udc80-\udcbf]{2}|[\udcf0-\udcf4][\udc80-\udcbf]{3}"
)
# What a character may begin with, at the end of a text.
_BEGUN = re.compile(r"(?:[\ud800-\udbff]|[\udcc2-\udcf4][\udc80-\udcbf]{0,2})\Z")


def read_whole(data: bytes) -> Any:  # noqa: ANN401 -- JSON
    """The value in `data`, with U+FFFD for what is no character. Raises `ValueError`."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return orjson.loads(well_formed(data.decode(errors="replace").encode()))


def read_cut(data: bytes) -> Any:  # noqa: ANN401 -- JSON
    """The value in `data`, with lone surrogates for what is no character yet. Raises `ValueError`."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        read_whole(data)  # nothing else may be wrong with it
        try:
            return json.loads(data.decode(errors="surrogateescape"))
        except RecursionError as error:
            raise ValueError(*error.args) from None


class CharacterReader:
    """Puts characters together. At most three bytes, or one unit, wait for what comes next."""

    def __init__(self) -> None:
        self._begun = ""

    def receive_text(self, text: str) -> str:
        """What `text` adds, which has no surrogate."""
        text = self._begun + text
        self._begun = ""
        if text.isascii() or not _HALF.search(text):
            return text
        # Only where a character may be: an event that is no UTF-8 at all has a million places where none is.
        text = _PAIR.sub(_joined, text)
        text = _BYTES.sub(_decoded, text)
        if begun := _BEGUN.search(text):
            text, self._begun = text[: begun.start()], begun[0]
        return _HALF.sub("\N{REPLACEMENT CHARACTER}", text)

    def receive_eof(self) -> str:
        """What stands for the one that was not completed."""
        begun, self._begun = self._begun, ""
        return "\N{REPLACEMENT CHARACTER}" if begun else ""


def _joined(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _decoded(run: re.Match[str]) -> str:
    return run[0].encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
