"""What the terminal shows: plain ASCII lines of at most 80 columns, with colour where there is a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby, takewhile

from rich.console import Console
from rich.text import Text

from parser import CLOSE_TAG, OPEN_TAG

# Columns.
_WIDTH = 80
# What stands before each line of a text that is shown as it is.
_GUTTER = "  | "
# The two that speak, and their colours.
_SIDES = {"client": "bold blue", "model": "bold yellow"}
_TAGS = [OPEN_TAG, CLOSE_TAG]


def runs(names: Sequence[str]) -> list[str]:
    """Names of stream events, short, with repetitions counted: `output_text.delta x12`."""
    counted = [(name.removeprefix("response."), len(list(same))) for name, same in groupby(names)]
    return [name if count == 1 else f"{name} x{count}" for name, count in counted]


def abridged(lines: Sequence[str], head: int, tail: int = 0) -> list[str]:
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
    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, markup=False, emoji=False)
        self._width = min(_WIDTH, self._console.width)

    def heading(self, text: str) -> None:
        self._line()
        self._line(f"-- {text} ".ljust(self._width, "-"), "bold cyan")

    def step(self, who: str, does: str, what: str) -> None:
        """`who` is one of the two sides."""
        beginning = f"The {who} {does}:"
        self._line()
        for number, part in enumerate(textwrap.wrap(f"{beginning} {what}", self._width, subsequent_indent="  ")):
            line = Text(part)
            if number == 0:
                line.stylize(_SIDES[who], 0, len(beginning))
            self._console.print(line, soft_wrap=True)

    def paragraph(self, text: str, style: str = "") -> None:
        for line in textwrap.wrap(text, self._width):
            self._line(line, style)

    def quote(self, text: str, style: str = "") -> None:
        """The whole of `text`, wrapped, with the tags of calls in another colour."""
        for line in text.splitlines():
            for part in self._wrapped(line) or [""]:
                self._quoted(part, style)

    def excerpt(self, text: str, *, head: int, tail: int = 0, known: str = "") -> None:
        """What is new in `text` since `known`: beginning and end, each line cut to fit, empty ones left out."""
        room = self._width - len(_GUTTER)
        for line in abridged(news(_lines(text), _lines(known)), head, tail):
            self._quoted(line if len(line) <= room else line[: room - 3] + "...")

    def _wrapped(self, line: str) -> list[str]:
        return textwrap.wrap(line, self._width - len(_GUTTER), break_on_hyphens=False, replace_whitespace=False)

    def _quoted(self, text: str, style: str = "") -> None:
        line = Text(text, style)
        line.highlight_words(_TAGS, "bold magenta")
        self._console.print(Text.assemble((_GUTTER, "dim"), line), soft_wrap=True)

    def _line(self, text: str = "", style: str = "") -> None:
        self._console.print(Text(text, style), soft_wrap=True)
