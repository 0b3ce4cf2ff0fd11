r"""What programs put at the beginning and the end of lines, and a copy leaves out again.

unmarked    "12:", "     1<TAB>", "file.md:12-", "> ", "+ ", "# ", "// ", "* ", "| " in front of each line
unframed    what all lines of a block have there, whatever it is: time and host in a log, `<br>`, a cell's `|`
unwrapped   lines that were cut in the middle of a word, with `=` or a backslash at their ends or without
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import takewhile

# Strategy: marks are taken off one at a time, and each time is a reading, since whoever wrote the text knows where the
# marks of the program end and those of the note begin. A list item in a call's argument, shown by `cat -n`, loses
# its number and keeps its dash.

# Lines behind the first from which what they have in common can be told: two may begin alike by chance.
_TELLING_LINES = 3
# Characters of a line that may stand in front.
_LONGEST_MARK = 256

# Marks in front of one line: a quote in a mail that was quoted twice, in a listing with numbers.
_MARKS = 4

# All of it is bounded, so that to look for a mark costs no more than a line, wherever it is done. File names have
# blanks, but nothing that JSON or a tag needs.
_NUMBER = r'(?:[^\n"{}<>]{1,128}?[:-])?\d{1,9}(?:[:|)│→-]|\.?[ \t]{1,16}+)'
_SIGN = r"[>+|│┃*]|--?|#{1,6}+|/{2,3}+!?|;{1,4}+|%{1,4}+"
MARK = rf"[ \t]{{0,64}}+(?:{_NUMBER}|{_SIGN})[ \t]?"

_MARK_OF_LINE = re.compile(rf"\n{MARK}")
_CUT = re.compile(r"(?<![ \t])[ \t]*+\n[ \t\n]*+")
# As quoted-printable and shells end a line that goes on.
_SOFT_CUT = re.compile(r"[=\\][ \t]*+\n[ \t]*+")
# JSON that is set over lines breaks beside its own punctuation, and strings may have line breaks: only elsewhere a
# reading without them is another.
_IN_A_TOKEN = re.compile(r"[^\s{}\[\],:][ \t]*+\n\s*+[^\s{}\[\],:]")


def _unmark(times: int, text: str) -> str:
    for _ in range(times):
        text = _MARK_OF_LINE.sub("\n", text)
    return text


def _unwrap(times: int, cut: re.Pattern[str], text: str) -> str:
    return cut.sub("", _unmark(times, text))


def unmarked(text: str) -> Iterator[str]:
    """`text`, and `text` without the first marks of its lines, as often as there are any."""
    yield text
    for _ in range(_MARKS):
        before, text = text, _MARK_OF_LINE.sub("\n", text)
        if text == before:
            return
        yield text


# What counts up from line to line, with the blanks that keep it in its column; names of commits; and all else. Only
# where blanks begin is looked behind them.
_COUNTED = re.compile(r"(?<![ \t])[ \t]*+(?:\d++|\b[0-9a-f]{7,40}\b)|.", re.DOTALL)
# What a line of a call begins with, and no mark ends in.
_BEGINS_VALUE = frozenset("<{[(\"'")


def unframed(block: str) -> str | None:
    """`block` without what its lines behind the first have in front, and those before the last behind, all alike.

    In front numbers may differ. None where that is nothing but blanks, or there are too few lines to tell.
    """
    # Nobody can list what programs write there, and a block that is set over lines tells by itself: the lines of its
    # JSON have neither their first nor their last character in common.
    first, *lines = block.split("\n")
    if len(lines) < _TELLING_LINES:
        return None
    same = sum(1 for _ in takewhile(_are_one, zip(*map(reversed, (first, *lines[:-1])), strict=False)))
    first, ending = first[: len(first) - same], first[len(first) - same :]
    lines[:-1] = [line[: len(line) - same] for line in lines[:-1]]
    begins = (_COUNTED.finditer(line[:_LONGEST_MARK]) for line in lines)
    alike = list(takewhile(lambda column: _are_one(map(_kind, column)), zip(*begins, strict=False)))
    while alike and alike[-1][0][0] in _BEGINS_VALUE:
        alike.pop()
    if not ending.strip() and not any(column[0][0].strip() for column in alike):
        return None
    marks = [part.end() for part in alike[-1]] if alike else [0] * len(lines)
    return "\n".join((first, *(line[mark:] for line, mark in zip(lines, marks, strict=True))))


def _kind(part: re.Match[str]) -> str:
    return "0" if len(part[0]) > 1 or part[0].isdigit() else part[0]


def _are_one(column: Iterable[str]) -> bool:
    return len(set(column)) == 1


def line_forms(text: str) -> Iterator[tuple[str, Callable[[str], str]]]:
    """What `text` may be without what its lines begin and end with, each with what makes the same of further text.

    Not `text` itself. Its first line is no line here: it begins with `text`.
    """
    for times, form in enumerate(unmarked(text)):
        if times:
            yield form, partial(_unmark, times)
        for is_cut, cut in ((_SOFT_CUT, _SOFT_CUT), (_IN_A_TOKEN, _CUT)):
            if is_cut.search(form):
                yield cut.sub("", form), partial(_unwrap, times, cut)
