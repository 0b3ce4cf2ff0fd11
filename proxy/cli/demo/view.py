"""What the terminal shows: plain ASCII lines of at most 80 columns, with colour where there is a terminal."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from itertools import groupby, takewhile
from typing import TextIO

from parser import CLOSE_TAG, OPEN_TAG

from ...logs import in_colour

# Columns.
_WIDTH = 80
# What stands before each line of a text that is shown as it is.
_GUTTER = "  | "
# What a terminal is told for each style. A library for these few would be a third of what the demo installs.
_STYLES = {
    "client": "1;34",
    "model": "1;33",
    "tag": "1;35",
    "heading": "1;36",
    "answer": "32",
    "failure": "1;31",
    "bold": "1",
    "dim": "2",
}
_TAGS = re.compile("|".join(map(re.escape, (OPEN_TAG, CLOSE_TAG))))


def runs(names: Sequence[str]) -> list[str]:
    """Names of stream events, short, with repetitions counted: `output_text.delta x12`."""
    counted = [(name.removeprefix("response."), len(list(same))) for name, same in groupby(names)]
    return [name if count == 1 else f"{name} x{count}" for name, count in counted]


def abridged(lines: Sequence[str], head: int, tail: int) -> list[str]:
    """The first and the last of `lines`, with a note between them on what was left out."""
    left_out = len(lines) - head - tail
    if left_out <= 1:
        return list(lines)
    return [*lines[:head], f"... {left_out} more lines ...", *lines[len(lines) - tail :]]


def news(lines: Sequence[str], known: Sequence[str]) -> list[str]:
    """`lines` without those with which `known` begins too, and a note on them."""
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(lines, known, strict=False))))
    return [f"... {same} lines as before ...", *lines[same:]] if same > 1 else list(lines)


def _lines(text: str) -> list[str]:
    return [line for line in text.expandtabs(4).splitlines() if line.strip()]


class View:
    """`colour` None: as `in_colour` says of `out`."""

    def __init__(self, out: TextIO | None = None, width: int | None = None, *, colour: bool | None = None) -> None:
        self._out = out or sys.stdout
        self._width = min(_WIDTH, width or shutil.get_terminal_size().columns)
        self._colour = in_colour(self._out) if colour is None else colour

    def heading(self, text: str) -> None:
        self._line()
        self._line(f"-- {text} ".ljust(self._width, "-"), "heading")

    def step(self, who: str, does: str, what: str) -> None:
        """`who` is `client` or `model`."""
        beginning = f"The {who} {does}:"
        self._line()
        for line in textwrap.wrap(f"{beginning} {what}", self._width, subsequent_indent="  "):
            said, rest = (line[: len(beginning)], line[len(beginning) :]) if line.startswith("The") else ("", line)
            self._line(self._styled(said, who) + rest)

    def paragraph(self, text: str, style: str = "") -> None:
        for line in textwrap.wrap(text, self._width):
            self._line(line, style)

    def command(self, text: str) -> None:
        """What can be typed as it stands: on one line, however long that is."""
        self._line(f"  {text}")

    def quote(self, text: str) -> None:
        """The whole of `text`, wrapped, with the tags of calls in another colour."""
        for line in text.splitlines():
            for part in self._wrapped(line) or [""]:
                self._quoted(part)

    def excerpt(self, text: str, *, head: int, tail: int = 0, known: str = "") -> None:
        """What is new in `text` since `known`: beginning and end, each line cut to fit, empty ones left out."""
        room = self._width - len(_GUTTER)
        for line in abridged(news(_lines(text), _lines(known)), head, tail):
            self._quoted(line if len(line) <= room else line[: room - 3] + "...")

    def _wrapped(self, line: str) -> list[str]:
        return textwrap.wrap(line, self._width - len(_GUTTER), break_on_hyphens=False, replace_whitespace=False)

    def _quoted(self, text: str) -> None:
        shown = _TAGS.sub(lambda tag: self._styled(tag[0], "tag"), text)
        self._line(self._styled(_GUTTER, "dim") + shown)

    def _styled(self, text: str, style: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self._colour and style and text else text

    def _line(self, text: str = "", style: str = "") -> None:
        print(self._styled(text, style), file=self._out)
