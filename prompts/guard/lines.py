r"""What programs put at the beginning and the end of lines, and a copy leaves out again.

unmarked    "12:", "     1<TAB>", "file.md:12-", "> ", "+ ", "# ", "// ", "* ", "| " in front of each line
unwrapped   lines that were cut in the middle of a word, with `=` or a backslash at their ends or without
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

# Strategy: marks are taken off one at a time, and each time is a reading, since whoever wrote the text knows where the
# marks of the program end and those of the note begin. A list item in a call's argument, shown by `cat -n`, loses
# its number and keeps its dash.

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
