"""Tiers C and D: how an answer begins if it is nothing but calls without the tags.

    {"name": "read_note", "arguments": {"path": "a.md"}}                       also in a fence
    [tool_call] {"name": "read_note", "arguments": {"path": "a.md"}}           also behind `[tool:call_2]`
    [tool:read_note] {"path": "a.md"}
    {"calls": [{"name": "read_note", "arguments": {"path": "a.md"}}, ...]}     also {"call": {...}}

Small models make the headers from the two notations that they are shown. Decoders are held to the last form.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from .beginnings import growing
from .call_shape import Call, calls_of, check_arguments
from .events import CallMalformed, CallStarted, ParserEvent, Tier
from .json_scan import BLANKS, ValueScanner
from .json_text import members_of
from .members import ARGUMENTS_ALIASES, NAME_ALIASES, NESTINGS, NEUTRAL, folded_key
from .registry import Tool, ToolRegistry
from .relaxed_json import UnreadableError
from .rules import Rule

# Strategy: without tags nothing but its own strictness makes a call of JSON, so none of the repairs is used here, and
# all of the answer has to be the call. Until that is certain the text is held back and the user sees nothing; so its
# first member and each fault in the JSON let everything go as soon as they are there.

# Characters. What stands in front of a call and behind it, with the white space round them.
MAX_FRAME_CHARS = 1024
# What may differ from the taught form: other words for the same members. Without arguments an object with a name is
# anything, and a fault in JSON that is only shown must not be repaired into a call.
HARMLESS = frozenset({Rule.ALIAS_KEYS, Rule.NESTED_CALL})
# What the form that decoders are held to takes to be read: it is no tolerance, for it was asked for.
_ASKED_FOR = frozenset({Rule.WRAPPER_OBJECT, Rule.ARRAY_OF_CALLS, Rule.NESTED_CALL})
# What the object of a call has, and nothing else; its key is folded.
_MEMBERS = NAME_ALIASES | ARGUMENTS_ALIASES | NESTINGS | NEUTRAL
# The one member of its object: several calls, or the only one.
CALLS, CALL = "calls", "call"


class _NoCallError(Exception):
    """The answer is no such call, whatever follows."""


class _AnswerEndedError(Exception):
    """No more text comes; `raw` is all of it."""

    def __init__(self, raw: str) -> None:
        super().__init__()
        self.raw = raw


def _one_call(value: str, named: str, registry: ToolRegistry) -> Sequence[Call]:
    calls = calls_of(value)
    # Strict JSON may take a rule all the same: a wrapper round the calls, arguments that are missing or encoded twice.
    harmless = len(calls) == 1 and HARMLESS.issuperset(calls[0].rules)
    return calls if harmless and all(folded_key(key) in _MEMBERS for key, _ in members_of(value)) else []


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


class Opener(Struct, frozen=True, kw_only=True):
    """What stands in front of a call, and what has to follow for the whole answer to be one.

    `pattern` ends in front of an object. Its group `fence` has to come again behind it, its group `named` may be the
    name of the tool, and `key` and `value` are the first member of the object; `called` is a value in quotes.
    `read` finds the calls in the object. `sure`: nothing else begins so, and one that is cut off is malformed.
    """

    pattern: str
    rules: tuple[Rule, ...] = ()
    tier: Tier = Tier.BARE
    read: Callable[[str, str, ToolRegistry], Sequence[Call]] = _one_call
    sure: bool = False


_WS = f"[{BLANKS}]*"
_FENCE = rf"{_WS}(?P<fence>`{{3,}}|~{{3,}})[\w-]*[ \t]*\r?\n{_WS}"
_GAP = f"[{BLANKS}]{{0,64}}"
_FIRST = rf'"(?:(?P<called>[^"\\]{{0,128}})"|[^"\\]{{0,128}}\\)|[^"{BLANKS}]'
_CALL = rf'(?=\{{{_GAP}"(?P<key>[\w-]{{1,64}})"{_GAP}:{_GAP}(?P<value>{_FIRST}))'
_BEHIND_HEADER = r"[ \t]{0,4}(?:\r?\n)?[ \t]{0,4}"
_ID = r"[^\]\n]{1,100}"
_HEADED = (Rule.HEADED_ANSWER,)

HEADED_ANSWERS = (
    Opener(pattern=rf"{_WS}\[tool_call\]{_BEHIND_HEADER}(?=\{{)", rules=_HEADED, sure=True),
    Opener(pattern=rf"{_WS}\[tool:{_ID}\]{_BEHIND_HEADER}{_CALL}", rules=_HEADED),
)
BARE_ANSWERS = (
    Opener(pattern=f"{_WS}{_CALL}", rules=(Rule.BARE_ANSWER,)),
    Opener(pattern=f"{_FENCE}{_CALL}", rules=(Rule.BARE_ANSWER, Rule.FENCED_ANSWER)),
    *HEADED_ANSWERS,
    Opener(pattern=rf"{_WS}\[tool:(?P<named>{_ID})\]{_BEHIND_HEADER}(?=\{{)", rules=_HEADED, read=_arguments),
)
HELD_ANSWERS = (
    Opener(pattern=rf'{_WS}(?=\{{{_GAP}"(?:{CALLS}|{CALL})")', tier=Tier.HELD, read=_held_calls, sure=True),
    *BARE_ANSWERS,
)


# Waits for more text, and gets that or `_AnswerEndedError`.
_Reading = Generator[None, str, list[ParserEvent]]


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

    def _read(self) -> _Reading:
        opener, text = self._opener, (yield)
        whole, begun = growing(opener.pattern)
        while (found := whole.match(text)) is None:
            if len(text) > 2 * MAX_FRAME_CHARS or not begun.match(text):
                raise _NoCallError
            text += yield
        groups = found.groupdict("")
        if found.end() > MAX_FRAME_CHARS or not self._may_be_call(groups):
            raise _NoCallError
        scanner = ValueScanner()
        value = [scanner.feed(text[found.end() :])]
        try:
            while not (scanner.done or scanner.broken):
                value.append(scanner.feed((yield)))
        except _AnswerEndedError as answer:
            if opener.sure:
                return [CallMalformed("the JSON is cut off", answer.raw)]
            raise
        if scanner.broken:
            raise _NoCallError
        text, fence = scanner.rest, groups.get("fence", "")
        try:
            # Nothing but the end of the fence may stand there, or nothing at all.
            while len(text) <= MAX_FRAME_CHARS and not text.strip(BLANKS).strip(fence[:1]):
                text += yield
        except _AnswerEndedError as answer:
            # A fence that does not end may be of an answer that was cut: what would have followed is not known.
            if len(text.strip(BLANKS)) >= len(fence):
                return self._events("".join(value), groups.get("named", ""), answer.raw)
        raise _NoCallError

    def _may_be_call(self, groups: Mapping[str, str]) -> bool:
        """Whether the object may be one that begins with this member."""
        key, value = folded_key(groups.get("key", "")), groups.get("value", "")
        # An object with a name of something else, as a person's: it need not be held to its end to know that.
        if groups.get("called") and key in NAME_ALIASES:
            return self._registry.match(groups["called"]) is not None
        return not key or key in (_MEMBERS if value[0] == '"' else _MEMBERS - NAME_ALIASES | NESTINGS)

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
            events.append(call.completed(index, raw, self._opener.tier))
            raw = ""  # the first carries the whole answer
        return events
