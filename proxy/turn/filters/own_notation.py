"""Takes out of an answer what only we write: headers, our closing lines, and results that the model made up.

Models imitate what they are shown. At the start of a line stands

    [assistant] It is 10.5.     a header, where the answer begins: the rest of the line is the answer;
    [tool:call_2] 11            one of a result also behind such a beginning
    Result of t (c): 10.5       one that names a tool: so on any line
    If all parts ...            a line of ours, word for word or as it begins: it goes
    [get_weather: 10.5]         behind a call, a line that gives its result, as no tool can have done yet: it goes

and all other text passes at once. The parser ends the reading at a made-up result that begins with `[tool:`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from parser.beginnings import beginnings
from parser.grammar import RESULT_OPENER
from parser.markdown import CodeState
from parser.sentinel import MAX_PIECE
from prompts.headers import HEADER, NAMED_RESULT

from ..reason import Reason

_HEADER = re.compile(HEADER, re.IGNORECASE)
_HEADER_BEGUN = re.compile(beginnings(HEADER), re.IGNORECASE)
_NAMED_RESULT = re.compile(NAMED_RESULT, re.IGNORECASE)
_NAMED_RESULT_BEGUN = re.compile(beginnings(NAMED_RESULT), re.IGNORECASE)
# Characters. An id is shorter; without a bound a `[tool:` would hold back all that follows it.
_LONGEST_HEADER = 128
# Characters at the beginning of a line of ours that nobody else begins a line with.
_OWN_BEGINNING = 50
# What stands behind a tool's name in the line that gives its result. A link is none: `[search](...)`.
_BEHIND_NAME = r"[ \t]{0,4}(?:[:=(]|\](?=[^(\[])|(?:results?|outputs?|response|returned|returns)[^\w-])"
_RETURNS = re.compile(_BEHIND_NAME, re.IGNORECASE)
_RETURNS_BEGUN = re.compile(beginnings(_BEHIND_NAME), re.IGNORECASE)


class Position(Struct):
    """Where a line begins, by what stands in front of it.

    `begins`: nothing but white space of the message. `headed`: a header, with which it began. `code` says whether a
    place behind a call is code, None in front of the first one; `called` are the names of these calls.
    """

    begins: bool = True
    headed: bool = False
    code: CodeState | None = None
    called: set[str] = field(default_factory=set)

    @property
    def is_behind_call(self) -> bool:
        """And no code."""
        if self.code is None:
            return False
        self.code.end_run()
        return not self.code.quoted


class Found(NamedTuple):
    """So many characters of a line go, or all of it."""

    what: Reason
    end: int | None = None


# What a rule makes of text that begins with a line, of which nothing comes behind the `last`: something goes, more may
# show that (True), or it is none of the rule's (False).
LineRule = Callable[[str, Position, bool], Found | bool]


def headers(quoted: Callable[[], bool], names: Iterable[str] = (), *, named: bool = False) -> LineRule:
    """`ModelRule.HEADER`. `quoted` is asked where one stands whether it may be somebody else's, that is shown.

    `named`: the headers of results name their tool, of which `names` are all.
    """
    known = frozenset(map(str.casefold, names))

    def rule(text: str, at: Position, last: bool) -> Found | bool:
        if at.code is not None and not at.begins:
            return False
        header = _HEADER.match(text) if at.begins or (at.headed and text.casefold().startswith(RESULT_OPENER)) else None
        result = _NAMED_RESULT.match(text) if named else None
        if result and (at.begins or result[1].casefold() in known):
            header = header or result
        if header and not quoted():
            return Found(Reason.HEADER, header.end())
        begun = (at.begins or at.headed) and _HEADER_BEGUN.fullmatch(text)
        return len(text) < _LONGEST_HEADER and bool(begun or (named and _NAMED_RESULT_BEGUN.fullmatch(text)))

    return rule


def own_lines(lines: Sequence[str], seen: Sequence[str] = ()) -> LineRule:
    """`ModelRule.OWN_LINE`: lines of ours that the model was shown, and those that the client has `seen` before."""

    def rule(text: str, at: Position, last: bool) -> Found | bool:
        if own := next(filter(text.startswith, (*lines, *seen)), None):
            return Found(Reason.OWN_LINE, len(own))
        begun = any(line.startswith(text) for line in (*lines, *seen))
        # Small models go on as they like, or with another of these lines.
        if (last or not begun) and any(text.startswith(line[:_OWN_BEGINNING]) for line in lines):
            return Found(Reason.OWN_LINE)
        return begun

    return rule


def invented_results(names: Iterable[str], *, named: bool) -> LineRule:
    """`ModelRule.INVENTED_RESULT`: lines behind a call that say what one of the tools `names` returned.

    `named`: also as the headers of results do that name their tool.
    """
    known = frozenset(map(str.casefold, names))

    def rule(text: str, at: Position, last: bool) -> Found | bool:
        if text[0] not in "[Rr" or not at.is_behind_call:
            return False
        if text[0] != "[":
            if named and _NAMED_RESULT.match(text):
                return Found(Reason.INVENTED_RESULT)
            return named and len(text) < _LONGEST_HEADER and bool(_NAMED_RESULT_BEGUN.fullmatch(text))
        line, tools = text[1:].casefold() + "\n" * last, known | at.called
        behind = [line[len(name) :] for name in tools if line.startswith(name)]
        if any(map(_RETURNS.match, behind)):
            return Found(Reason.INVENTED_RESULT)
        return any(map(_RETURNS_BEGUN.fullmatch, behind)) or any(name.startswith(line) for name in tools)

    return rule


class OwnNotation:
    """Feed it the text between the blocks of an answer; what it returns may be shown. How it is cut does not show.

    Of `rules` the first counts that has something to say. `count` hears of each thing that is taken out.
    """

    def __init__(self, rules: Sequence[LineRule], count: Callable[[Reason], None] = lambda what: None) -> None:
        self._rules = rules
        self._count = count
        self.took: set[Reason] = set()
        """What was taken out."""
        # At the start of a line, in one that passes ("line"), or in one that is taken out ("gone").
        self._place = "start"
        self._begun = ""
        self._at = Position()
        # What was taken out takes the white space behind it along.
        self._eats = False

    def feed(self, text: str) -> str:
        """The text that may be shown now."""
        if self._place == "line" and "\n" not in text:
            if self._at.code:
                self._at.code.feed(text)
            return text
        if len(text) > MAX_PIECE:  # each line that is read is cut off from the rest
            return "".join(map(self.feed, (text[at : at + MAX_PIECE] for at in range(0, len(text), MAX_PIECE))))
        return self._read(self._begun + text, last=False)

    def flush(self) -> str:
        """What waited, where the text ends: a block follows, or nothing."""
        return self._read(self._begun, last=True) if self._begun else ""

    def begin(self) -> None:
        """What comes next is another message."""
        self._place, self._eats = "start", False
        self._at.begins, self._at.headed = True, False

    def pass_by(self, block: str) -> None:
        """A block was shown as it is."""
        self._place, self._at.begins, self._eats = "line", False, False
        if self._at.code:
            self._at.code.feed(block)

    def pass_out(self) -> None:
        """A block stood here that nobody is shown."""
        self._place, self._eats = "start", True

    def pass_call(self, name: str) -> None:
        """A call of that name stood here."""
        # Or as the parser would have ended the reading, had it seen the call.
        self._at.called |= {name.casefold(), "tool"}
        self._place, self._at.begins, self._at.code = "start", False, CodeState()

    def _read(self, text: str, *, last: bool) -> str:
        self._begun = ""
        said: list[str] = []
        while text:
            if self._place == "start":
                text = self._start(text, said, last=last)
                continue
            end = text.find("\n") + 1 or len(text)
            if self._place == "line":
                self._say(text[:end], said)
            if text[end - 1] == "\n":
                self._place = "start"
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
            found = rule(text, self._at, last)
            if isinstance(found, Found):
                return self._take_out(found, text)
            if found and not last:
                self._begun = text
                return ""
        self._place, self._at.begins, self._eats = "line", False, False
        return text

    def _take_out(self, found: Found, text: str) -> str:
        self._count(found.what)
        self.took.add(found.what)
        if found.end is None:
            self._place = "gone"
            return text
        self._eats = True
        if found.what is Reason.HEADER:
            self._at.headed = self._at.headed or self._at.begins
        return text[found.end :]
