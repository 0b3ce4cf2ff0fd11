"""What only we write, taken out of an answer: headers, our closing lines, and results that the model made up.

Models imitate what they are shown. At the start of a line stands

    [assistant] It is 10.5.     a header, where the answer begins: the rest of the line is the answer;
    [tool:call_2] 11            one of a result also behind such a beginning
    Result of t (c): 10.5       one that names a tool: so on any line
    If all parts ...            a line of ours, word for word or as it begins: it goes
    [get_weather: 10.5]         behind a call, a line that tells its result, as no tool can have done yet: it goes

and all other text passes at once. A result that begins with `[tool:` ends the reading instead, which is the parser's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, StrEnum

from parser.beginnings import beginnings
from parser.headers import HEADER, NAMED_RESULT, RESULT_OPENER
from parser.markdown import CodeState

_HEADER = re.compile(HEADER, re.IGNORECASE)
_HEADER_BEGUN = re.compile(beginnings(HEADER), re.IGNORECASE)
_NAMED_RESULT = re.compile(NAMED_RESULT, re.IGNORECASE)
_NAMED_RESULT_BEGUN = re.compile(beginnings(NAMED_RESULT), re.IGNORECASE)
# Characters. An id is shorter; without a bound a `[tool:` would hold back all that follows it.
_LONGEST_HEADER = 128
# Characters at the beginning of a line of ours that nobody else begins a line with.
_TELLING = 50
# What stands behind a tool's name in the line that tells its result. A link is none: `[search](...)`.
_BEHIND_NAME = r"[ \t]{0,4}(?:[:=(]|\](?=[^(\[])|(?:results?|outputs?|response|returned|returns)[^\w-])"
_TELLS = re.compile(_BEHIND_NAME, re.IGNORECASE)
_TELLS_BEGUN = re.compile(beginnings(_BEHIND_NAME), re.IGNORECASE)


class _Place(Enum):
    START = "the start of a line"
    LINE = "a line that passes"
    GONE = "a line that is taken out"


class TakenOut(StrEnum):
    """What was taken out of an answer, as it is counted."""

    HEADER = "header"
    OWN_LINE = "own_line"
    INVENTED_RESULT = "invented_result"
    BESIDE_CALLS = "beside_calls"
    BLOCK = "block"


class OwnNotation:
    """Feed it the text between the blocks of an answer; what it returns may be shown. How it is cut does not show.

    `names` are those of the declared tools. `named_results`: headers of results name their tool. `may_begin_so` is
    asked where a header stands at the beginning, whether it may be the client's own words; None: there is none to take
    out. `told` hears of each thing that is taken out. `lines` are those of ours that the model was shown, `said` lines
    that the client was.
    """

    def __init__(
        self,
        names: Iterable[str] = (),
        *,
        named_results: bool = False,
        may_begin_so: Callable[[], bool] | None = None,
        told: Callable[[TakenOut], None] = lambda what: None,
    ) -> None:
        self._names = {name.casefold() for name in names}
        self._named_results = named_results
        self._may_begin_so = may_begin_so
        self._told = told
        self.lines: Sequence[str] = ()
        self.said: Sequence[str] = ()
        self._place = _Place.START
        self._held = ""
        # Nothing but white space of this message was said.
        self._begins = True
        # It began with a header.
        self._headed = False
        # What was taken out takes the white space behind it along.
        self._eats = False
        # Whether a place behind a call is code; None in front of the first one.
        self._code: CodeState | None = None
        self.repeats_line = False
        """A line of ours was in it."""

    def feed(self, text: str) -> str:
        """The text that may be shown now."""
        if self._place is _Place.LINE and ("\n" not in text or not self._reads_lines):
            if self._code:
                self._code.feed(text)
            return text
        return self._read(self._held + text, last=False)

    def flush(self) -> str:
        """What was held back, where the text ends: a block follows, or nothing."""
        return self._read(self._held, last=True) if self._held else ""

    @property
    def _reads_lines(self) -> bool:
        """Whether anything may be taken out at the start of a line, not of the answer alone."""
        return bool(self.lines or self.said or self._code or self._named_results or self._headed)

    def begin(self) -> None:
        """What comes next is another message."""
        self._place, self._begins, self._headed, self._eats = _Place.START, True, False, False

    def pass_by(self, block: str) -> None:
        """A block was shown as it is."""
        self._place, self._begins, self._eats = _Place.LINE, False, False
        if self._code:
            self._code.feed(block)

    def pass_out(self) -> None:
        """A block stood here that nobody is shown."""
        self._place, self._eats = _Place.START, True

    def pass_call(self, name: str) -> None:
        """A call of that name stood here."""
        # Or as the parser would have ended the reading, had it seen the call.
        self._names |= {name.casefold(), "tool"}
        self._place, self._begins, self._code = _Place.START, False, CodeState()

    def _read(self, text: str, *, last: bool) -> str:
        self._held = ""
        said: list[str] = []
        while text:
            if self._place is _Place.START:
                text = self._start(text, said, last=last)
                continue
            end = text.find("\n") + 1 or len(text)
            if self._place is _Place.LINE:
                self._say(text[:end], said)
            if text[end - 1] == "\n":
                self._place = _Place.START
            text = text[end:]
        return "".join(said)

    def _say(self, text: str, said: list[str]) -> None:
        said.append(text)
        if self._code:
            self._code.feed(text)

    def _start(self, text: str, said: list[str], *, last: bool) -> str:
        """Decide what the line is that begins here. Returns what is still to be read."""
        blank = len(text) - len(text.lstrip())
        if blank:
            if not self._eats:
                self._say(text[:blank], said)
            return text[blank:]
        may_be_header = self._may_begin_so is not None and (self._begins or self._code is None)
        header = self._header(text) if may_be_header else None
        if header and self._may_begin_so and not self._may_begin_so():
            self._headed = self._headed or self._begins
            return self._take_out(text[header.end() :], TakenOut.HEADER)
        if own := next((line for line in (*self.lines, *self.said) if text.startswith(line)), None):
            self.repeats_line = True
            return self._take_out(text[len(own) :], TakenOut.OWN_LINE)
        is_own_begun = any(line.startswith(text) for line in (*self.lines, *self.said))
        if (last or not is_own_begun) and any(text.startswith(line[:_TELLING]) for line in self.lines):
            # Small models go on as they like, or with another of these lines.
            self._place, self.repeats_line = _Place.GONE, True
            self._told(TakenOut.OWN_LINE)
            return text
        is_result = self._tells_result(text, last=last)
        if is_result:
            self._place = _Place.GONE
            self._told(TakenOut.INVENTED_RESULT)
            return text
        is_begun = may_be_header and self._may_become_header(text)
        if not last and (is_result is None or is_begun or is_own_begun):
            self._held = text
            return ""
        self._place, self._begins, self._eats = _Place.LINE, False, False
        return text

    def _header(self, text: str) -> re.Match[str] | None:
        named = _NAMED_RESULT.match(text) if self._named_results else None
        if self._begins:
            return _HEADER.match(text) or named
        if self._headed and text[: len(RESULT_OPENER)].casefold() == RESULT_OPENER:
            return _HEADER.match(text)
        return named if named and named[1].casefold() in self._names else None

    def _may_become_header(self, text: str) -> bool:
        return len(text) < _LONGEST_HEADER and bool(
            ((self._begins or self._headed) and _HEADER_BEGUN.fullmatch(text))
            or (self._named_results and _NAMED_RESULT_BEGUN.fullmatch(text))
        )

    def _take_out(self, rest: str, what: TakenOut) -> str:
        self._told(what)
        self._eats = True
        return rest

    def _tells_result(self, text: str, *, last: bool) -> bool | None:
        """Whether the line at the start of `text` tells what a call of one of the tools returned. None: too early."""
        if self._code is None or text[0] not in "[Rr":
            return False
        self._code.end_run()
        if self._code.quoted:
            return False
        if text[0] != "[":
            if not self._named_results or _NAMED_RESULT.match(text):
                return self._named_results
            return None if len(text) < _LONGEST_HEADER and _NAMED_RESULT_BEGUN.fullmatch(text) else False
        line = text[1:].casefold()
        too_early = False
        for name in self._names:
            if line.startswith(name):
                behind = line[len(name) :]
                if _TELLS.match(behind if not last else behind + "\n"):
                    return True
                too_early = too_early or bool(_TELLS_BEGUN.fullmatch(behind))
            else:
                too_early = too_early or name.startswith(line)
        return None if too_early else False
