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
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

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


class _AnswerEndedError(Exception):
    """No more text comes; `raw` is all of it."""

    def __init__(self, raw: str) -> None:
        super().__init__()
        self.raw = raw


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


# The way to a value: a comma unless it is the first, the key, the colon, and the sight of what follows.
_WHITE = f"[{BLANKS}]*+"
MEMBER = re.compile(rf'{_WHITE}(,?){_WHITE}"({STRING_RUN.pattern})"{_WHITE}:{_WHITE}(?=[^{BLANKS}])')
_MEMBER_BEGUN = re.compile(beginnings(MEMBER.pattern))
_OBJECT_END = re.compile(rf"{_WHITE}}}")


_T = TypeVar("_T")
# Waits for more text, and gets that or `_AnswerEndedError`.
_Reading = Generator[None, str, _T]


class Candidate:
    """An answer as far as it is what one opener begins."""

    def __init__(self, opener: Opener, registry: ToolRegistry, *, tells: bool) -> None:
        self._opener = opener
        self._registry = registry
        self._tells = tells
        self._reading = self._read()
        next(self._reading)

    def feed(self, text: str) -> bool:
        """Whether the answer may still be that."""
        try:
            self._reading.send(text)
        except _NoCallError:
            return False
        return True

    def end(self, raw: str) -> list[ParserEvent] | None:
        """The events of an answer that is nothing but calls."""
        try:
            self._reading.throw(_AnswerEndedError(raw))
        except StopIteration as whole:
            return list(whole.value)
        except (_NoCallError, _AnswerEndedError):
            return None
        raise AssertionError("it waits for more than all of the answer")

    # Each raises _NoCallError.

    def _read(self) -> _Reading[list[ParserEvent]]:
        text = yield
        while (found := _opening(self._opener.pattern).match(text)) is None:
            if len(text) > MAX_FRAME_CHARS or not _begun(self._opener.pattern).match(text):
                raise _NoCallError
            text += yield
        if len(found[0].rstrip("{")) > MAX_FRAME_CHARS:
            raise _NoCallError
        read = self._tagged_calls if self._opener.tagged else self._object
        return (yield from read(found, text[found.end() :]))

    def _object(self, opened: re.Match[str], text: str) -> _Reading[list[ParserEvent]]:
        """A strict JSON object behind its brace, with none but members that it may have; behind it only its fence."""
        written = ["{"]
        try:
            while not (end := _OBJECT_END.match(text)):
                if member := ":" in text and MEMBER.match(text):
                    text = yield from self._member(member, written)
                # What is so long that waiting for the rest would cost more with each delta is none any more.
                elif len(text) <= MAX_HELD and _MEMBER_BEGUN.match(text):
                    text += yield
                else:
                    raise _NoCallError
        except _AnswerEndedError as answer:
            if self._opener.sure:
                return [CallMalformed("the JSON is cut off", answer.raw)]
            raise
        if end.end() > MAX_HELD:
            raise _NoCallError
        groups = opened.groupdict("")
        raw = yield from _fence_end(text[end.end() :], groups.get("fence", ""))
        return self._events("".join(written) + end[0], groups.get("named", ""), raw)

    def _member(self, found: re.Match[str], written: list[str]) -> _Reading[str]:
        """Add what `found` begins to the object. Returns what follows it."""
        # A comma stands in front of all but the first.
        if found.end() > MAX_HELD or bool(found[1]) is (len(written) == 1):
            raise _NoCallError
        key, text = folded_key(decode_string(found[2])), found.string[found.end() :]
        self._check_member(key, text[0])
        scanner, value = ValueScanner(), list[str]()
        while True:
            value.append(scanner.feed(text))
            if scanner.broken:
                raise _NoCallError
            if scanner.done:
                break
            text = yield
        self._check_member(key, "".join(value))
        written += found[0], *value
        return scanner.rest

    def _check_member(self, key: str, value: str) -> None:
        if not self._opener.has(key, value, self._registry):
            raise _NoCallError

    def _events(self, value: str, named: str, raw: str) -> list[ParserEvent]:
        """The events of the calls that the object is."""
        try:
            calls = self._opener.read(value, named, self._registry)
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

    def _tagged_calls(self, opened: re.Match[str], text: str) -> _Reading[list[ParserEvent]]:
        """Tagged calls behind the line that opened a fence, and after them only what closes it."""
        opener, opening, fence, after = self._opener, opened[0], opened["fence"], ""
        parser, told, in_call, ended = SentinelParser(arguments=self._tells), list[ParserEvent](), False, False
        while not ended:
            events = parser.receive_text(text)
            try:
                text = "" if events else (yield)
            except _AnswerEndedError:
                events, ended = parser.receive_eof(), True
            for event in events:
                match event:
                    case str() if in_call:
                        told.append(event)
                    case str():
                        # Before the calls or behind them, a word makes the fence an example of how a call looks.
                        after += event
                        _check_fence_end(after, fence)
                    # Nothing of a call may stand behind what closes the fence: that would be a second thing in the
                    # answer.
                    case CallStarted() if not after:
                        in_call = True
                        told.append(replace(event, bare=True))
                    case CallCompleted() if not after and self._registry.match(event.name):
                        # The fence is part of the spelling of the calls, not of the text.
                        raw, in_call, opening = opening + event.before + event.raw, False, ""
                        repairs = (*opener.rules, *event.repairs)
                        told.append(replace(event, raw=raw, before="", tier=opener.tier, repairs=repairs))
                    case StrayCloser() if not after:
                        told.append(event)
                    case _:
                        raise _NoCallError
        if opening or len(after.strip(BLANKS)) < len(fence):
            raise _NoCallError
        return [*told, StrayCloser(after)]


def _fence_end(text: str, fence: str) -> _Reading[str]:
    """The text of the answer, of which `text` and what comes has to be the end of that fence. Raises _NoCallError."""
    try:
        while True:
            _check_fence_end(text, fence)
            text += yield
    except _AnswerEndedError as answer:
        # A fence that does not end may be of an answer that was cut: what would have followed is not known.
        if len(text.strip(BLANKS)) < len(fence):
            raise _NoCallError from None
        return answer.raw


def _check_fence_end(text: str, fence: str) -> None:
    """Nothing but the end of the fence may stand there, or nothing at all. Raises _NoCallError."""
    if len(text) > MAX_FRAME_CHARS or text.strip(BLANKS).strip(fence[:1]):
        raise _NoCallError
