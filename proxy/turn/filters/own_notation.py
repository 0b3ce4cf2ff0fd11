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
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import NamedTuple, Protocol

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


class TakenOut(StrEnum):
    """What was taken out of an answer, as it is counted."""

    HEADER = "header"
    OWN_LINE = "own_line"
    INVENTED_RESULT = "invented_result"
    BESIDE_CALLS = "beside_calls"
    BLOCK = "block"


@dataclass(slots=True)
class Position:
    """Where a line begins, by what stands in front of it."""

    begins: bool = True
    """Nothing but white space of this message was said."""
    headed: bool = False
    """It began with a header."""
    code: CodeState | None = None
    """Whether the place is code, behind a call; None in front of the first one."""
    called: set[str] = field(default_factory=set)
    """The names of these calls."""


class Found(NamedTuple):
    """So many characters of a line go, or all of it."""

    what: TakenOut
    end: int | None = None


class LineRule(Protocol):
    """Knows one thing that nobody but us begins a line with."""

    def counts(self, at: Position) -> bool:
        """Whether it may stand on another line than that with which the message begins."""
        ...

    def find(self, text: str, at: Position, *, last: bool) -> Found | None:
        """What of `text` goes, which begins with a line. `last`: nothing comes behind it."""
        ...

    def is_begun(self, text: str, at: Position) -> bool:
        """Whether more of it may show that something goes."""
        ...


class Headers:
    """Headers of messages. Earned 8 of 80 answers after results, `small`.

    `quoted` is asked where one stands: whether it may be somebody else's, that is shown. `named`: the headers of
    results name their tool, of which `names` are all.
    """

    def __init__(self, quoted: Callable[[], bool], names: Iterable[str] = (), *, named: bool = False) -> None:
        self._quoted = quoted
        self._names = frozenset(map(str.casefold, names))
        self._named = named

    def counts(self, at: Position) -> bool:
        return self._named or at.headed

    def find(self, text: str, at: Position, *, last: bool) -> Found | None:
        header = self._header(text, at)
        return Found(TakenOut.HEADER, header.end()) if header and not self._quoted() else None

    def _header(self, text: str, at: Position) -> re.Match[str] | None:
        named = _NAMED_RESULT.match(text) if self._named else None
        if at.begins:
            return _HEADER.match(text) or named
        if at.code is not None:
            return None
        if at.headed and text[: len(RESULT_OPENER)].casefold() == RESULT_OPENER:
            return _HEADER.match(text)
        return named if named and named[1].casefold() in self._names else None

    def is_begun(self, text: str, at: Position) -> bool:
        if len(text) >= _LONGEST_HEADER or not (at.begins or at.code is None):
            return False
        return bool(
            ((at.begins or at.headed) and _HEADER_BEGUN.fullmatch(text))
            or (self._named and _NAMED_RESULT_BEGUN.fullmatch(text))
        )


class OwnLines:
    """Lines of ours that the model was shown, and those that the client was `told` at. Earned 2 of 80, `small`."""

    def __init__(self, lines: Sequence[str], told: Sequence[str] = ()) -> None:
        self._lines = lines
        self._all = (*lines, *told)

    def counts(self, at: Position) -> bool:
        return bool(self._all)

    def find(self, text: str, at: Position, *, last: bool) -> Found | None:
        if own := next(filter(text.startswith, self._all), None):
            return Found(TakenOut.OWN_LINE, len(own))
        # Small models go on as they like, or with another of these lines.
        goes_on = last or not self.is_begun(text, at)
        begins_alike = goes_on and any(text.startswith(line[:_TELLING]) for line in self._lines)
        return Found(TakenOut.OWN_LINE) if begins_alike else None

    def is_begun(self, text: str, at: Position) -> bool:
        return any(line.startswith(text) for line in self._all)


class InventedResults:
    """Lines behind a call that tell what one of the tools `names` returned. Earned 4 of 44 first turns, `small`.

    `named`: also as the headers of results are that name their tool.
    """

    def __init__(self, names: Iterable[str], *, named: bool = False) -> None:
        self._names = frozenset(map(str.casefold, names))
        self._named = named

    def counts(self, at: Position) -> bool:
        return at.code is not None

    def _may_stand(self, at: Position) -> bool:
        if at.code is None:
            return False
        at.code.end_run()
        return not at.code.quoted

    def find(self, text: str, at: Position, *, last: bool) -> Found | None:
        if text[0] not in "[Rr" or not self._may_stand(at):
            return None
        if text[0] != "[":
            return Found(TakenOut.INVENTED_RESULT) if self._named and _NAMED_RESULT.match(text) else None
        line = text[1:].casefold() + "\n" * last
        tells = any(line.startswith(name) and _TELLS.match(line, len(name)) for name in self._names | at.called)
        return Found(TakenOut.INVENTED_RESULT) if tells else None

    def is_begun(self, text: str, at: Position) -> bool:
        if text[0] not in "[Rr" or not self._may_stand(at):
            return False
        if text[0] != "[":
            return self._named and len(text) < _LONGEST_HEADER and bool(_NAMED_RESULT_BEGUN.fullmatch(text))
        line = text[1:].casefold()
        return any(
            _TELLS_BEGUN.fullmatch(line, len(name)) if line.startswith(name) else name.startswith(line)
            for name in self._names | at.called
        )


class _Place(Enum):
    START = "the start of a line"
    LINE = "a line that passes"
    GONE = "a line that is taken out"


class OwnNotation:
    """Feed it the text between the blocks of an answer; what it returns may be shown. How it is cut does not show.

    Of `rules` the first that finds something counts. `told` hears of each thing that is taken out.
    """

    def __init__(self, rules: Iterable[LineRule], told: Callable[[TakenOut], None] = lambda what: None) -> None:
        self._rules = [*rules]
        self._told = told
        self.took: set[TakenOut] = set()
        """What was taken out."""
        self._place = _Place.START
        self._held = ""
        self._at = Position()
        # What was taken out takes the white space behind it along.
        self._eats = False

    def feed(self, text: str) -> str:
        """The text that may be shown now."""
        if self._place is _Place.LINE and ("\n" not in text or not self._reads_lines):
            if self._at.code:
                self._at.code.feed(text)
            return text
        return self._read(self._held + text, last=False)

    def flush(self) -> str:
        """What was held back, where the text ends: a block follows, or nothing."""
        return self._read(self._held, last=True) if self._held else ""

    @property
    def _reads_lines(self) -> bool:
        return any(rule.counts(self._at) for rule in self._rules)

    def know(self, rule: LineRule) -> None:
        """One more rule, before the first text."""
        self._rules.append(rule)

    def begin(self) -> None:
        """What comes next is another message."""
        self._place, self._eats = _Place.START, False
        self._at.begins, self._at.headed = True, False

    def pass_by(self, block: str) -> None:
        """A block was shown as it is."""
        self._place, self._at.begins, self._eats = _Place.LINE, False, False
        if self._at.code:
            self._at.code.feed(block)

    def pass_out(self) -> None:
        """A block stood here that nobody is shown."""
        self._place, self._eats = _Place.START, True

    def pass_call(self, name: str) -> None:
        """A call of that name stood here."""
        # Or as the parser would have ended the reading, had it seen the call.
        self._at.called |= {name.casefold(), "tool"}
        self._place, self._at.begins, self._at.code = _Place.START, False, CodeState()

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
        if self._at.code:
            self._at.code.feed(text)

    def _start(self, text: str, said: list[str], *, last: bool) -> str:
        """Decide what the line is that begins here. Returns what is still to be read."""
        blank = len(text) - len(text.lstrip())
        if blank:
            if not self._eats:
                self._say(text[:blank], said)
            return text[blank:]
        for rule in self._rules:
            if found := rule.find(text, self._at, last=last):
                return self._take_out(found, text)
            if not last and rule.is_begun(text, self._at):
                self._held = text
                return ""
        self._place, self._at.begins, self._eats = _Place.LINE, False, False
        return text

    def _take_out(self, found: Found, text: str) -> str:
        self._told(found.what)
        self.took.add(found.what)
        if found.end is None:
            self._place = _Place.GONE
            return text
        self._eats = True
        if found.what is TakenOut.HEADER:
            self._at.headed = self._at.headed or self._at.begins
        return text[found.end :]
