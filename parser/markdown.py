"""Is this point of a Markdown text quoted as code?

Only what can be decided while the text is being written: a code span counts as open up to the end of
its line, a fence up to its closing line (CommonMark sections 4.5 and 6.1), whatever comes later.
"""

from __future__ import annotations

import re

# A run of backticks or tildes, and everything else on a line.
_PIECE = re.compile(r"`+|~+|[^`~]+")

_BLANKS = "".join(map(chr, range(0x21)))
# What may stand before a fence on its line: an item of a list begins with it, or a quotation goes on. Or words
# introduce it, and no more than a language ends their line. All that is looked for in so many characters.
_ITEM = re.compile(r"\A(?:[ \t]*+(?:>|(?:[-*+]|[0-9]{1,9}+[.)])[ \t]))+[ \t]*+")
_INTRODUCES = frozenset(" \t:\uff1a")
_LANGUAGE = re.compile(r"(?:[A-Za-z][A-Za-z0-9_+#-]*)?[ \t\r]*")
_IN_QUOTATION = f"{_BLANKS}>"
_MAX_ITEM = 32
# Characters. Longer runs are all of one length.
_MAX_RUN = 1000


class CodeState:
    """Whether the text so far leaves a code fence or a code span open. How it was cut does not show.
    To be asked after `end_run`.

                  run of >= 3 at the start of a line, of an item of a list or of a line of a quotation,
                  or of backticks at the end of a line of words
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

    __slots__ = ("_closing", "_fence", "_in_quotation", "_info", "_line", "_run", "_span", "blank", "has_words")

    def __init__(self) -> None:
        self.blank = True  # nothing but white space on this line so far
        self.has_words = False  # no mark of an item or of a quotation alone
        self._line = ""  # the beginning of this line, or what stands behind the run that opened the code span
        self._fence = ""  # the run that opened the fence
        self._in_quotation = False  # the lines of the fence go on with a `>`
        self._info = False  # still on the line that opened the fence
        self._closing = False  # this line closes the fence unless more text follows on it
        self._span = ""  # the run that opened the code span
        self._run = ""  # a run that may not have ended yet

    @property
    def quoted(self) -> bool:
        """True if what follows is code."""
        return bool(self._span or (self._fence and not (self._in_quotation and self.blank)))

    def behind_block(self) -> CodeState:
        """The state behind a block of text. Code in it says nothing; the words in front of it stay there."""
        state = CodeState()
        state.blank, state.has_words = False, self.has_words
        return state

    def feed(self, text: str) -> None:
        marked = self._run or "`" in text or "~" in text or self._in_quotation
        if not marked and (end := text.rfind("\n")) >= 0:
            text = text[: text.find("\n")] + text[end:]
        *lines, last = text.split("\n")
        for number, line in enumerate(lines):
            # Of whole lines the others say nothing: a fence stays open, a span ends with its line.
            if not number or "`" in line or "~" in line or self._in_quotation:
                self._go_on(line)
                self._end_line()
        self._go_on(last)

    def _go_on(self, text: str) -> None:
        """`text` goes on with the line."""
        # A pattern takes its time, and most lines are one piece.
        for piece in _PIECE.findall(text) if "`" in text or "~" in text else filter(None, (text,)):
            if piece[0] in "`~":
                if self._run and piece[0] != self._run[0]:
                    self.end_run()
                self._run = (self._run + piece)[:_MAX_RUN]
                continue
            self.end_run()
            if said := piece.lstrip(_BLANKS):
                self._begin(said[0])
                self._closing = False
                # Up to the first letter of a line; behind it nothing is searched.
                self.has_words = self.has_words or any(map(str.isalpha, said))
            line = self._line + piece
            self._line = line if len(line) < _MAX_ITEM else line[: _MAX_ITEM - 1] + line[-1]

    def _begin(self, char: str) -> None:
        """What follows on the line is no white space."""
        if self.blank and self._in_quotation and char != ">":
            self._end_fence()
        self.blank = False

    def _end_line(self) -> None:
        self.end_run()
        if self._span and len(self._line) < _MAX_ITEM and _LANGUAGE.fullmatch(self._line):
            # To CommonMark it is a span that goes on, to the same closing line. That line must open no fence.
            self._fence = self._span
        elif self._closing or (self._in_quotation and (self.blank or not self._fence)):
            self._end_fence()
        self._closing = self._info = False
        self._span = self._line = ""
        self.blank, self.has_words = True, False

    def _end_fence(self) -> None:
        self._fence, self._in_quotation = "", False

    def end_run(self) -> None:
        """A character follows that is no backtick or tilde: the run before it is whole."""
        if not (run := self._run):
            return
        self._run = ""
        line, blank = self._line, self.blank
        self._line = (line + run)[:_MAX_ITEM]
        self._begin(run[0])
        if self._info and run[0] == self._fence[:1] == "`":
            # An info string holds no backtick: the run that looked like a fence opened a code span.
            self._span = self._fence
            self._end_fence()
        if self._fence:
            alone = blank or (self._in_quotation and not line.strip(_IN_QUOTATION))
            self._closing = alone and run.startswith(self._fence)
        elif self._span:
            if run == self._span:
                self._span = ""
        elif len(run) < 3:
            self._span = run if run[0] == "`" else ""
        else:
            words = _ITEM.sub("", line)
            self._in_quotation = ">" in line[: len(line) - len(words)]
            if blank or (0 < len(line) < _MAX_ITEM and not words):
                self._fence, self._info = run, True
            elif run[0] == "`":
                self._span, self._line = run, "" if line[-1:] in _INTRODUCES else run
