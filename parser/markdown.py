"""Is this point of a Markdown text quoted as code?

Only what can be decided while the text is being written: a code span counts as open up to the end of
its line, a fence up to its closing line (CommonMark sections 4.5 and 6.1), whatever comes later.
"""

from __future__ import annotations

import re

# A run of backticks or tildes, a line end, blanks (no character above the space), and everything else.
_PIECE = re.compile(r"`+|~+|\n|[\x00-\x09\x0b-\x20]+|[^`~\n]+")

_BLANKS = "".join(map(chr, range(0x21)))
# What may stand before a fence on its line: an item of a list begins with it, or a quotation goes on. It is looked for
# in so many characters.
_ITEM = re.compile(r"(?:[ \t]*+(?:>|(?:[-*+]|[0-9]{1,9}+[.)])[ \t]))++[ \t]*+")
_IN_QUOTATION = f"{_BLANKS}>"
_MAX_ITEM = 32


class CodeState:
    """Whether the text so far leaves a code fence or a code span open. How it was cut does not show.

                  run of >= 3 at the start of a line, of an item of a list or of a line of a quotation
        +---------------------------------------------> in a fence --+
        |            (a backtick later on that line:       |   ^     | a line of nothing but an equal
    plain            it was a code span after all)         |   |     | or longer run, or out of its quotation
        |                                                  v   |     |
        |<-------------------------------------------- closing line <+
        |  any other run of backticks
        +----------------------------> in a code span
        |<----------------------------------+
           a run of equal length, or the end of the line
    """

    __slots__ = (
        "_closing",
        "_fence",
        "_in_quotation",
        "_info",
        "_leaves",
        "_line",
        "_run",
        "_run_blank",
        "_run_char",
        "_run_opens",
        "_span",
        "blank",
        "has_words",
    )

    def __init__(self) -> None:
        self.blank = True  # nothing but white space on this line so far
        self.has_words = False  # no mark of an item or of a quotation alone
        self._line = ""  # the beginning of this line
        self._fence = ("", 0)  # the run that opened the fence: its character and length
        self._in_quotation = False  # the lines of the fence go on with a `>`
        self._leaves = False  # and this one has not, so far
        self._info = False  # still on the line that opened the fence
        self._closing = False  # this line closes the fence unless more text follows on it
        self._span = 0  # length of the run that opened the code span
        self._run = 0  # length of a run that may not have ended yet
        self._run_char = ""
        self._run_blank = False  # `blank` before that run
        self._run_opens = False  # a fence may open there

    @property
    def quoted(self) -> bool:
        """True if what follows is code. To be asked after `end_run`."""
        return (self._fence[1] > 0 and not self._leaves) or self._span > 0

    def behind_block(self) -> CodeState:
        """The state behind a block of text. Code in it says nothing; the words in front of it stay there."""
        state = CodeState()
        state.blank, state.has_words = False, self.has_words
        return state

    def feed(self, text: str) -> None:
        if not text:
            return
        if "`" not in text and "~" not in text:
            self.end_run()
            if not self._in_quotation:
                self._pass_plain(text)
                return
        for piece in _PIECE.findall(text):
            first = piece[0]
            if self._leaves and (first > " " or first == "\n"):
                self._leaves = False
                if first != ">":
                    self._end_fence()
            if first in "`~":
                if first != self._run_char:
                    self.end_run()
                if not self._run:
                    self._run_char = first
                    self._run_blank = self.blank or (self._in_quotation and not self._line.strip(_IN_QUOTATION))
                    is_item = len(self._line) < _MAX_ITEM and _ITEM.fullmatch(self._line)
                    self._run_opens = self.blank or bool(is_item)
                self._run += len(piece)
                self._go_on(piece)
                self.blank = False
                continue
            self.end_run()
            if first == "\n":
                self._end_line()
                continue
            self._go_on(piece)
            if first > " ":
                self.blank = False
                self._closing = False
                # Up to the first letter of a line; behind it nothing is searched.
                if not self.has_words:
                    self.has_words = first.isalpha() or any(map(str.isalpha, piece))

    def _go_on(self, text: str) -> None:
        """`text` goes on with the line."""
        if (room := _MAX_ITEM - len(self._line)) > 0:
            self._line += text[:room]

    def _pass_plain(self, text: str) -> None:
        """The short way for text without backticks and tildes: lines are looked at, not what is in them."""
        last = text.rfind("\n")
        if last >= 0:
            if self._closing and text[: text.find("\n")].strip(_BLANKS):
                self._closing = False
            self._end_line()
        rest = text[last + 1 :]
        self._go_on(rest)
        if rest.strip(_BLANKS):
            self.blank = self._closing = False
            self.has_words = self.has_words or any(map(str.isalpha, rest))

    def _end_line(self) -> None:
        if self._closing:
            self._end_fence()
        self._leaves = self._in_quotation
        self._closing = self._info = False
        self._span = 0
        self._line = ""
        self.blank, self.has_words = True, False

    def _end_fence(self) -> None:
        self._fence, self._in_quotation = ("", 0), False

    def end_run(self) -> None:
        """A character follows that is no backtick or tilde: the run before it is whole."""
        length, char = self._run, self._run_char
        if not length:
            return
        self._run = 0
        fence_char, fence_length = self._fence
        if self._info and char == fence_char == "`":
            # An info string holds no backtick: the run that looked like a fence opened a code span.
            self._span = fence_length
            self._end_fence()
        if self._fence[1]:
            self._closing = self._run_blank and char == fence_char and length >= fence_length
        elif self._span:
            if char == "`" and length == self._span:
                self._span = 0
        elif self._run_opens and length >= 3:
            self._fence, self._info = (char, length), True
            self._in_quotation = ">" in self._line
        elif char == "`":
            self._span = length
