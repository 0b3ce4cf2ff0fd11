"""Tier D: the answer is what its decoder was held to, one JSON object that holds the calls and nothing else.

    {"calls": [{"name": "read_note", "arguments": {"path": "a.md"}}, ...]}
    {"call": {"name": "read_note", "arguments": {"path": "a.md"}}}           where one call is asked for

For answers to a request that a schema went out with. A server may pass over it: what is not of that form is read as
`HeadedCallParser` reads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .beginnings import beginnings
from .block import MAX_CALL_CHARS
from .call_shape import Call, calls_of, check_arguments
from .events import CallCompleted, CallMalformed, CallStarted, ParserEvent, Tier
from .headed_call import HeadedCallParser
from .json_scan import BLANKS, ValueScanner
from .registry import ToolRegistry
from .relaxed_json import UnreadableError
from .rules import Rule

# The one member of the object: several calls, or the only one.
CALLS, CALL = "calls", "call"

_START = re.compile(rf'[ \t\r\n]*\{{[ \t\r\n]*"(?:{CALLS}|{CALL})"')
_BEGUN = re.compile(beginnings(_START.pattern))
# What the form takes to be read: it is no tolerance, for it was asked for.
_ASKED_FOR = frozenset({Rule.WRAPPER_OBJECT, Rule.ARRAY_OF_CALLS, Rule.NESTED_CALL})


class HeldAnswerParser:
    """Reads one answer as `HeadedCallParser` does, and as calls of `registry` where it is their JSON and no more.

    Such an answer is told when it is over. One that is cut off is a `CallMalformed`.
    """

    receive_text: Callable[[str], list[ParserEvent]]
    """The events that this piece of the answer brings."""

    def __init__(self, registry: ToolRegistry, *, arguments: bool = True, max_chars: int = MAX_CALL_CHARS) -> None:
        self._registry = registry
        self._tells = arguments
        self._max_chars = max_chars
        self._other = HeadedCallParser(registry, arguments=arguments)
        self._held: list[str] = []
        self._size = 0
        self._start = ""
        self._scanner: ValueScanner | None = None
        self.receive_text = self._hold

    def _hold(self, text: str) -> list[ParserEvent]:
        self._held.append(text)
        self._size += len(text)
        if self._size > self._max_chars or not self._scan(text):
            return self._release()
        return []

    def _scan(self, text: str) -> bool:
        """Looks at the answer's newest piece. Returns whether the answer may still be of the form."""
        if self._scanner is None:
            self._start += text
            if not _START.match(self._start):
                return bool(_BEGUN.fullmatch(self._start))
            self._scanner, text = ValueScanner(), self._start.lstrip(BLANKS)
        if not self._scanner.done:
            self._scanner.feed(text)
            text = self._scanner.rest
        return not (self._scanner.broken or text.strip(BLANKS))

    def _release(self) -> list[ParserEvent]:
        self.receive_text = self._other.receive_text
        text = "".join(self._held)
        self._held.clear()
        return self.receive_text(text) if text else []

    def receive_eof(self) -> list[ParserEvent]:
        """The events that the end of the answer brings. To be called once."""
        raw = "".join(self._held)
        if self._scanner is not None and raw:
            if not self._scanner.done:
                return [CallMalformed("the JSON is cut off", raw)]
            if calls := self._calls(raw):
                return self._told(calls, raw)
        return self._release() + self._other.receive_eof()

    def _calls(self, raw: str) -> list[Call]:
        try:
            calls = calls_of(raw.strip(BLANKS))
            for call in calls:
                check_arguments(call)
        except UnreadableError:
            return []
        fit = all(_ASKED_FOR.issuperset(call.rules) and self._registry.match(call.name) for call in calls)
        return calls if fit else []

    def _told(self, calls: list[Call], raw: str) -> list[ParserEvent]:
        events: list[ParserEvent] = []
        for index, call in enumerate(calls):
            events.append(CallStarted(index, call.name, call.id, call.extra, bare=True))
            if self._tells:
                events.append(call.arguments)
            events.append(CallCompleted(index, call.name, call.arguments, call.id, raw, Tier.HELD, extra=call.extra))
            raw = ""  # the first carries the whole answer
        return events
