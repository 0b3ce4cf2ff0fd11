"""Tiers C and D: how an answer begins that is nothing but calls, without the tags or with them in a code fence.

    {"name": "read_note", "arguments": {"path": "a.md"}}                       also in a fence
    ```
    <tool_call>{...}</tool_call>
    ```
    [tool_call] {"name": "read_note", "arguments": {"path": "a.md"}}           also behind `[tool:call_2]`
    [tool:read_note] {"path": "a.md"}
    {"calls": [{"name": "read_note", "arguments": {"path": "a.md"}}, ...]}     also {"call": {...}}

Small models make the headers of the two notations that they are shown. The last form is what decoders are held to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from .beginnings import beginnings
from .call_shape import Call, calls_of, check_arguments
from .events import CallCompleted, CallMalformed, CallStarted, ParserEvent, StrayCloser, Tier
from .json_scan import BLANKS, MAX_HELD, STRING_RUN, ValueScanner
from .json_text import decode_string, members_of
from .members import ARGUMENTS_ALIASES, NAME_ALIASES, NESTINGS, NEUTRAL, folded_key
from .registry import Tool, ToolRegistry
from .relaxed_json import UnreadableError
from .rules import Rule
from .sentinel import SentinelParser

# Strategy: without tags nothing but its own strictness makes a call of JSON, so none of the repairs is used here, and
# all of the answer has to be the call. Until that is certain the text is held back and the user sees nothing; so each
# member is judged when its first character is there, and the first that a call does not have lets everything go.
# A fence with tagged calls belongs here because only the end of the answer tells that nothing follows which would make
# it an example.

# Characters. What stands in front of a call and behind it, with the white space round them.
MAX_FRAME_CHARS = 1024
# What may differ from the taught form: other words for the same members. Without arguments an object with a name is
# anything, and a fault in JSON that is only shown must not be repaired into a call.
HARMLESS = frozenset({Rule.ALIAS_KEYS, Rule.NESTED_CALL})
# What the form that decoders are held to takes to be read: it is no tolerance, for it was asked for.
_ASKED_FOR = frozenset({Rule.WRAPPER_OBJECT, Rule.ARRAY_OF_CALLS, Rule.NESTED_CALL})
# The one member of its object: several calls, or the only one.
CALLS, CALL = "calls", "call"


class _NoCallError(Exception):
    """The answer is no such call, whatever follows."""


def _call_has(key: str, value: str, registry: ToolRegistry) -> bool:
    match value[0]:
        case '"' if key in NAME_ALIASES and len(value) > 1:
            # An object with a name of something else, as a person's: it need not be held to its end to know that.
            return registry.match(decode_string(value[1:-1])) is not None
        case '"':
            return key in NAME_ALIASES | ARGUMENTS_ALIASES | NEUTRAL
        case "{":
            return key in NESTINGS | ARGUMENTS_ALIASES | NEUTRAL
        case _:
            return key in NEUTRAL


def _any(key: str, value: str, registry: ToolRegistry) -> bool:
    return True


def _one_call(value: str, named: str, registry: ToolRegistry) -> Sequence[Call]:
    calls = calls_of(value)
    # Strict JSON may take a rule all the same: a wrapper round the calls, arguments that are missing or encoded twice.
    return calls if len(calls) == 1 and HARMLESS.issuperset(calls[0].rules) else []


def _held_calls(value: str, named: str, registry: ToolRegistry) -> Sequence[Call]:
    calls = calls_of(value)
    fit = all(_ASKED_FOR.issuperset(call.rules) for call in calls)
    return [replace(call, rules=()) for call in calls] if fit else []


def _arguments(value: str, named: str, registry: ToolRegistry) -> Sequence[Call]:
    """A result begins like this, too. So it has to be arguments of that tool: all that is required, and no others."""
    tool = registry.match(named)
    if tool is None:
        return []
    written = {key for key, _ in members_of(value)}
    fit = written and _names(tool, "required") <= written <= _names(tool, "properties")
    return [Call(tool.name, value, None, ())] if fit else []


def _names(tool: Tool, where: str) -> set[str]:
    try:
        schema = json.loads(tool.parameters or "")
    except (ValueError, RecursionError):
        return set()
    names = schema.get(where) if isinstance(schema, dict) else None
    return {name for name in names if isinstance(name, str)} if isinstance(names, list | dict) else set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Opener:
    """What stands in front of a call, and what has to follow for the whole answer to be one.

    `pattern` ends in front of tags, or behind the brace of an object. Its group `fence` has to come again behind it,
    its group `named` may be the name of the tool. `has` is asked of each member of the object, its key folded, with the
    first character of the value and with all of it; `read` finds the calls in the object. `sure`: nothing else begins
    so, and one that is cut off is malformed.
    """

    pattern: str
    rules: tuple[Rule, ...] = ()
    tier: Tier = Tier.BARE
    tagged: bool = False
    has: Callable[[str, str, ToolRegistry], bool] = _call_has
    read: Callable[[str, str, ToolRegistry], Sequence[Call]] = _one_call
    sure: bool = False


_WS = f"[{BLANKS}]*"
_FENCE = rf"{_WS}(?P<fence>`{{3,}}|~{{3,}})[\w-]*[ \t]*\r?\n{_WS}"
_BEHIND_HEADER = r"[ \t]{0,4}(?:\r?\n)?[ \t]{0,4}\{"
_ID = r"[^\]\n]{1,100}"
_HEADED = (Rule.HEADED_ANSWER,)

HEADED_ANSWERS = (
    Opener(pattern=rf"{_WS}\[tool_call\]{_BEHIND_HEADER}", rules=_HEADED, sure=True),
    Opener(pattern=rf"{_WS}\[tool:{_ID}\]{_BEHIND_HEADER}", rules=_HEADED),
)
BARE_ANSWERS = (
    Opener(pattern=rf"{_WS}\{{", rules=(Rule.BARE_ANSWER,)),
    Opener(pattern=rf"{_FENCE}\{{", rules=(Rule.BARE_ANSWER, Rule.FENCED_ANSWER)),
    Opener(pattern=rf"{_FENCE}(?=<)", rules=(Rule.FENCED_ANSWER,), tagged=True),
    *HEADED_ANSWERS,
    Opener(pattern=rf"{_WS}\[tool:(?P<named>{_ID})\]{_BEHIND_HEADER}", rules=_HEADED, has=_any, read=_arguments),
)
HELD_ANSWERS = (
    Opener(pattern=rf'{_WS}\{{(?={_WS}"(?:{CALLS}|{CALL})")', tier=Tier.HELD, has=_any, read=_held_calls, sure=True),
    *BARE_ANSWERS,
)


# Few answers are asked about, so these are made when they are.
@cache
def _opening(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@cache
def _begun(pattern: str) -> re.Pattern[str]:
    return re.compile(beginnings(pattern))


class Candidate:
    """An answer as far as it is what one opener begins."""

    def __init__(self, opener: Opener, registry: ToolRegistry, *, tells: bool) -> None:
        self._opener = opener
        self._registry = registry
        self._tells = tells
        self._start = ""
        self._body: _Object | _TaggedCalls | None = None

    def feed(self, text: str) -> bool:
        """Whether the answer may still be that."""
        try:
            if self._body is None:
                self._start += text
                text = self._begin()
            if self._body is not None:
                self._body.feed(text)
        except _NoCallError:
            return False
        return True

    def _begin(self) -> str:
        """The text behind the opener, if that is whole."""
        found = _opening(self._opener.pattern).match(self._start)
        if found is None and len(self._start) <= MAX_FRAME_CHARS and _begun(self._opener.pattern).match(self._start):
            return ""
        if found is None or len(found[0].rstrip("{")) > MAX_FRAME_CHARS:
            raise _NoCallError
        self._body = (_TaggedCalls if self._opener.tagged else _Object)(
            self._opener, found, self._registry, tells=self._tells
        )
        return self._start[found.end() :]

    def end(self, raw: str) -> list[ParserEvent] | None:
        """The events of an answer that is nothing but calls."""
        try:
            return self._body.end(raw) if self._body else None
        except _NoCallError:
            return None


# The way to a value: a comma unless it is the first, the key, the colon, and the sight of what follows.
_WHITE = f"[{BLANKS}]*+"
MEMBER = re.compile(rf'{_WHITE}(,?){_WHITE}"({STRING_RUN.pattern})"{_WHITE}:{_WHITE}(?=[^{BLANKS}])')
_MEMBER_BEGUN = re.compile(beginnings(MEMBER.pattern))
_OBJECT_END = re.compile(rf"{_WHITE}}}")


class _Object:
    """A strict JSON object behind its brace, with none but members that it may have, and after it only its fence."""

    def __init__(self, opener: Opener, found: re.Match[str], registry: ToolRegistry, *, tells: bool) -> None:
        self._opener = opener
        self._groups = found.groupdict("")
        self._registry = registry
        self._tells = tells
        self._text = ["{"]
        self._first = True
        self._held = ""
        self._key = ""
        self._value: list[str] = []
        self._scanner: ValueScanner | None = None
        self._after: str | None = None  # what follows the object

    def feed(self, text: str) -> None:
        """Raises _NoCallError."""
        while text:
            if self._after is not None:
                self._after += text
                _check_fence_end(self._after, self._groups.get("fence", ""))
                return
            text = self._in_value(self._scanner, text) if self._scanner else self._in_object(self._held + text)

    def _in_value(self, scanner: ValueScanner, text: str) -> str:
        piece = scanner.feed(text)
        self._text.append(piece)
        self._value.append(piece)
        if scanner.broken:
            raise _NoCallError
        if not scanner.done:
            return ""
        self._check_member("".join(self._value))
        self._scanner = None
        self._value.clear()
        return scanner.rest

    def _in_object(self, text: str) -> str:
        self._held = ""
        # A member is there with its colon: without it, do not look for one.
        if (found := ":" in text and MEMBER.match(text)) and found.end() <= MAX_HELD:
            if bool(found[1]) is self._first:
                raise _NoCallError
            self._key = folded_key(decode_string(found[2]))
            self._check_member(text[found.end()])
            self._first, self._scanner = False, ValueScanner()
        elif (found := _OBJECT_END.match(text)) and found.end() <= MAX_HELD:
            self._after = ""
        # What is so long that waiting for the rest would cost more with each delta is none any more.
        elif not found and len(text) <= MAX_HELD and _MEMBER_BEGUN.match(text):
            self._held = text
            return ""
        else:
            raise _NoCallError
        self._text.append(found[0])
        return text[found.end() :]

    def _check_member(self, value: str) -> None:
        if not self._opener.has(self._key, value, self._registry):
            raise _NoCallError

    def end(self, raw: str) -> list[ParserEvent]:
        """The events of the calls that the object is. Raises _NoCallError."""
        if self._after is None and self._opener.sure:
            return [CallMalformed("the JSON is cut off", raw)]
        # A fence that does not end may be of an answer that was cut: what would have followed is not known.
        if self._after is None or len(self._after.strip(BLANKS)) < len(self._groups.get("fence", "")):
            raise _NoCallError
        try:
            calls = self._opener.read("".join(self._text), self._groups.get("named", ""), self._registry)
            for call in calls:
                check_arguments(call)
        except UnreadableError:
            raise _NoCallError from None
        if not calls or not all(self._registry.match(call.name) for call in calls):
            raise _NoCallError
        events: list[ParserEvent] = []
        for index, call in enumerate(call.after(self._opener.rules) for call in calls):
            events.append(CallStarted(index, call.name, call.id, call.extra, bare=True))
            if self._tells:
                events.append(call.arguments)
            repairs = tuple(rule.value for rule in call.rules)
            events.append(
                CallCompleted(index, call.name, call.arguments, call.id, raw, self._opener.tier, repairs, call.extra)
            )
            raw = ""  # the first carries the whole answer
        return events


class _TaggedCalls:
    """Tagged calls behind the line that opened a fence, and after them only what closes it."""

    def __init__(self, opener: Opener, found: re.Match[str], registry: ToolRegistry, *, tells: bool) -> None:
        self._opener = opener
        self._opening = found[0]
        self._fence = found["fence"]
        self._registry = registry
        self._parser = SentinelParser(arguments=tells)
        self._events: list[ParserEvent] = []
        self._in_call = False
        self._after = ""

    def feed(self, text: str) -> None:
        """Raises _NoCallError."""
        self._take(self._parser.receive_text(text))

    def _take(self, events: list[ParserEvent]) -> None:
        for event in events:
            told = event
            match event:
                case str() if self._in_call:
                    pass
                case str(text):
                    # Before the calls or behind them, a word makes the fence an example of how a call looks.
                    self._after += text
                    _check_fence_end(self._after, self._fence)
                    continue
                # Nothing of a call may stand behind what closes the fence: that would be a second thing in the answer.
                case CallStarted() if not self._after:
                    self._in_call, told = True, replace(event, bare=True)
                case CallCompleted(name=name, before=before, raw=raw) if not self._after and self._registry.match(name):
                    # The fence is part of the spelling of the calls, not of the text: its beginning is of the first.
                    raw, self._in_call, self._opening = self._opening + before + raw, False, ""
                    repairs = (*self._opener.rules, *event.repairs)
                    told = replace(event, raw=raw, before="", tier=self._opener.tier, repairs=repairs)
                case StrayCloser() if not self._after:
                    pass
                case _:
                    raise _NoCallError
            self._events.append(told)

    def end(self, _: str) -> list[ParserEvent]:
        """The events of the calls that are the whole answer. Raises _NoCallError."""
        self._take(self._parser.receive_eof())
        if self._opening or len(self._after.strip(BLANKS)) < len(self._fence):
            raise _NoCallError
        return [*self._events, StrayCloser(self._after)]


def _check_fence_end(text: str, fence: str) -> None:
    """Nothing but the end of the fence may stand there, or nothing at all. Raises _NoCallError."""
    if len(text) > MAX_FRAME_CHARS or text.strip(BLANKS).strip(fence[:1]):
        raise _NoCallError
