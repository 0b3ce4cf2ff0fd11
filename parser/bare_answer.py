"""Tier C: the whole answer is one call, but without the tags, or in a code fence.

    {"name": "read_note", "arguments": {"path": "a.md"}}         also in a fence
    ```
    <tool_call>{...}</tool_call>
    ```
    [tool:call_2] {"name": "read_note", "arguments": {"path": "a.md"}}

Off unless `BareAnswerParser` is used in place of `SentinelParser`: an answer that shows JSON looks the same.
A fence with a tagged call in it belongs here because only the end of the answer tells that nothing
follows which would make it an example.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from .beginnings import beginnings
from .block import MAX_CALL_CHARS
from .call_shape import calls_of, check_arguments
from .events import CallCompleted, CallStarted, ParserEvent, StrayCloser, Tier
from .grammar import OPEN, OPEN_BEGUN
from .headers import CALL_HEADER
from .json_scan import BLANKS, ValueScanner
from .json_text import decode_string
from .live_call import Header, read_header
from .members import ARGUMENTS_ALIASES, NAME_ALIASES, NESTINGS, NEUTRAL, folded_key
from .registry import ToolRegistry
from .relaxed_json import UnreadableError
from .rules import Rule
from .sentinel import SentinelParser

# Strategy: without tags nothing but its own strictness makes a call of JSON, so none of the repairs is used here, and
# all of the answer has to be the call. Until that is certain the text is held back and the user sees nothing; so each
# member is judged when its first character is there, and the first that a call does not have lets everything go,
# unchanged, to the ordinary parser.

# Characters. The line that opens a fence, and what closes it, with the white space round them.
MAX_FRAME_CHARS = 1024

_START = re.compile(r"[ \t\r\n]*(?:(`{3,}|~{3,})[\w-]*[ \t]*\r?\n[ \t\r\n]*)?")
_START_BEGUN = re.compile(beginnings(_START.pattern))
# Its group is the fence, as above, of which it has none.
_HEADED_START = re.compile(rf"[ \t\r\n]*{CALL_HEADER}()")
_HEADED_START_BEGUN = re.compile(beginnings(_HEADED_START.pattern))
# What may differ from the taught form: other words for the same members. Without arguments an object with a name is
# anything, and a fault in JSON that is only shown must not be repaired into a call.
HARMLESS = frozenset({Rule.ALIAS_KEYS, Rule.NESTED_CALL})


class _NoCallError(Exception):
    """The answer is no such call, whatever follows."""


class BareAnswerParser:
    """Reads one answer as `SentinelParser` does, and as a call of `registry` when it is nothing else.

    Text is held back only while the answer can still be such a call: at most until a key that no call has
    or a name that no tool has. A tagged call outside of a fence is read as ever. `headed`: only a call behind a header
    of ours is one.
    """

    receive_text: Callable[[str], list[ParserEvent]]
    """The events that this piece of the answer brings."""

    def __init__(
        self,
        registry: ToolRegistry,
        *,
        arguments: bool = True,
        headed: bool = False,
        max_chars: int = MAX_CALL_CHARS,
    ) -> None:
        self._registry = registry
        self._headed = headed
        self._tells = arguments
        self._parser = SentinelParser(arguments=arguments)
        self._max_chars = max_chars
        self._held: list[str] = []
        self._size = 0
        self._start = ""
        self._candidate: _BareCall | _FencedCalls | None = None
        self.receive_text = self._hold

    def _hold(self, text: str) -> list[ParserEvent]:
        self._held.append(text)
        self._size += len(text)
        try:
            self._consider(text)
        except _NoCallError:
            return self._release()
        return []

    def _consider(self, text: str) -> None:
        # Held text is memory, and a user who waits: a call that is longer than a block may be is none.
        if self._size > self._max_chars:
            raise _NoCallError
        if self._candidate:
            self._candidate.feed(text)
            return
        self._start += text
        found = _begin(self._start, self._registry, tells=self._tells, headed=self._headed)
        if found:
            self._candidate, rest = found
            self._candidate.feed(rest)

    def _release(self) -> list[ParserEvent]:
        self.receive_text = self._parser.receive_text
        # From the start, as if it had never been held: the ordinary parser must see the answer as it is.
        text = "".join(self._held)
        self._held.clear()
        return self.receive_text(text) if text else []

    def receive_eof(self) -> list[ParserEvent]:
        """The events that the end of the answer brings. To be called once."""
        events = self._whole()
        if events is None:
            events = self._release() + self._parser.receive_eof()
        else:
            self._held.clear()
            self._parser.receive_eof()
        self.receive_text = self._parser.receive_text
        return events

    def _whole(self) -> list[ParserEvent] | None:
        """The events of the call that the answer is, if it is one."""
        if not self._held or self._candidate is None:
            return None
        try:
            return self._candidate.end("".join(self._held))
        except _NoCallError:
            return None


def _begin(
    text: str, registry: ToolRegistry, *, tells: bool, headed: bool
) -> tuple[_BareCall | _FencedCalls, str] | None:
    """The call that begins with `text`, and what of the text is behind its beginning. None: too early to tell."""
    start = _HEADED_START.match(text) if headed else _START.match(text)
    begun = _HEADED_START_BEGUN.match(text) if headed else _START_BEGUN.match(text)
    if (begun and len(text) > MAX_FRAME_CHARS) or not (start or begun):
        raise _NoCallError
    if start is None:
        return None
    pos, fence = start.end(), start[1] or ""
    if pos > MAX_FRAME_CHARS:
        raise _NoCallError
    if text.startswith("{", pos):
        frame = [Rule.HEADED_ANSWER if headed else Rule.BARE_ANSWER, *([Rule.FENCED_ANSWER] if fence else [])]
        return _BareCall(registry, fence, frame, tells=tells), text[pos + 1 :]
    if fence and OPEN.match(text, pos):
        return _FencedCalls(registry, fence, text[:pos], tells=tells), text[pos:]
    # Prose, most of all: nearly every answer is let go with its first character.
    if pos < len(text) and not (begun or (fence and OPEN_BEGUN.match(text, pos))):
        raise _NoCallError
    return None


class _BareCall:
    """An object behind its brace: strict JSON, none but the members of a call, and after it only its fence."""

    def __init__(self, registry: ToolRegistry, fence: str, frame: Sequence[Rule], *, tells: bool) -> None:
        """`frame` is what stands in place of its tags."""
        self._registry = registry
        self._tells = tells
        self._fence = fence
        self._frame = frame
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
                _check_fence_end(self._after, self._fence)
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
        value = "".join(self._value)
        # An object with a name of something else, as a person's: it need not be held to its end to know that.
        if self._key in NAME_ALIASES and value[0] == '"' and not self._registry.match(decode_string(value[1:-1])):
            raise _NoCallError
        self._scanner = None
        self._value.clear()
        return scanner.rest

    def _in_object(self, text: str) -> str:
        self._held = ""
        match read_header(text, first=self._first):
            case Header(None, end):
                self._after = ""
            case Header(str(key), end):
                self._key = folded_key(key)
                if not _may_begin(self._key, text[end]):
                    raise _NoCallError
                self._first, self._scanner = False, ValueScanner()
            case None:
                self._held = text
                return ""
            case _:
                raise _NoCallError
        self._text.append(text[:end])
        return text[end:]

    def end(self, raw: str) -> list[ParserEvent]:
        """The events of the call that is the whole answer. Raises _NoCallError."""
        # A fence that does not end may be of an answer that was cut: what would have followed is not known.
        if self._after is None or len(self._after.strip(BLANKS)) < len(self._fence):
            raise _NoCallError
        try:
            calls = calls_of("".join(self._text))
            for call in calls:
                check_arguments(call)
        except UnreadableError:
            raise _NoCallError from None
        # Strict JSON may take a rule all the same: a wrapper round the calls, arguments that are missing or encoded
        # twice.
        if len(calls) != 1 or not HARMLESS.issuperset(calls[0].rules) or not self._registry.match(calls[0].name):
            raise _NoCallError
        call = calls[0].after(self._frame)
        repairs = tuple(rule.value for rule in call.rules)
        return [
            CallStarted(0, call.name, call.id, call.extra, bare=True),
            *([call.arguments] if self._tells else []),
            CallCompleted(0, call.name, call.arguments, call.id, raw, Tier.BARE, repairs, call.extra),
        ]


class _FencedCalls:
    """Tagged calls behind the line that opened a fence, and after them only what closes it."""

    def __init__(self, registry: ToolRegistry, fence: str, opening: str, *, tells: bool) -> None:
        self._registry = registry
        self._fence = fence
        self._opening = opening
        self._parser = SentinelParser(arguments=tells)
        self._events: list[ParserEvent] = []
        self._in_call = False
        self._after = ""

    def feed(self, text: str) -> None:
        """Raises _NoCallError."""
        self._take(self._parser.receive_text(text))

    def _take(self, events: list[ParserEvent]) -> None:
        for event in events:
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
                    self._in_call = True
                case CallCompleted(name=name) if not self._after and self._registry.match(name):
                    self._in_call = False
                case StrayCloser() if not self._after:
                    pass
                case _:
                    raise _NoCallError
            self._events.append(event)

    def end(self, _: str) -> list[ParserEvent]:
        """The events of the calls that are the whole answer. Raises _NoCallError."""
        self._take(self._parser.receive_eof())
        if len(self._after.strip(BLANKS)) < len(self._fence):
            raise _NoCallError
        events: list[ParserEvent] = []
        opening = self._opening
        for event in self._events:
            if isinstance(event, CallCompleted):
                repairs = (Rule.FENCED_ANSWER.value, *event.repairs)
                raw, opening = opening + event.before + event.raw, ""
                events.append(replace(event, raw=raw, before="", tier=Tier.BARE, repairs=repairs))
            elif isinstance(event, CallStarted):
                events.append(replace(event, bare=True))
            else:
                events.append(event)
        if not any(isinstance(event, CallCompleted) for event in events):
            raise _NoCallError
        # The fence is part of the spelling of the calls, not of the text: its beginning went into the first `raw`.
        return [*events, StrayCloser(self._after)]


def _may_begin(key: str, first: str) -> bool:
    """Whether a call has such a member with a value that begins like this."""
    match first:
        case '"':
            return key in NAME_ALIASES | ARGUMENTS_ALIASES | NEUTRAL
        case "{":
            return key in NESTINGS | ARGUMENTS_ALIASES | NEUTRAL
        case _:
            return key in NEUTRAL


def _check_fence_end(text: str, fence: str) -> None:
    """Nothing but the end of the fence may stand there, or nothing at all."""
    if len(text) > MAX_FRAME_CHARS or text.strip(BLANKS).strip(fence[:1]):
        raise _NoCallError
