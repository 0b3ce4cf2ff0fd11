"""Tier C: a call with a header in place of its tags, at the start of a line.

    [tool_call] {"name": "read_note", "arguments": {"path": "a.md"}}
    [tool:call_2] {"name": "read_note", "arguments": {"path": "a.md"}}
    [tool:read_note] {"path": "a.md"}

Small models make these of the two notations that they are shown. Off unless `HeadedCallParser` is used: a line that
tells a result begins like this, too.
"""

from __future__ import annotations

import re
from dataclasses import replace
from enum import Enum

from .bare_answer import HARMLESS, BareAnswerParser
from .beginnings import beginnings
from .block import MAX_CALL_CHARS
from .call_shape import Call, calls_of
from .coercion import read_parameter_types
from .events import CallCompleted, CallMalformed, CallStarted, ParserEvent, Tier
from .grammar import THINK_TAGS
from .headers import CALL_HEADER, RESULT_OPENER
from .json_scan import ValueScanner
from .json_text import members_of
from .markdown import CodeState
from .registry import ToolRegistry
from .relaxed_json import UnreadableError
from .rules import Rule

# Strategy: as with bare JSON strictness makes a call of it. The JSON is well-formed and stands alone behind its header;
# it is a call as it is asked for, or the arguments of the tool that the header names and no others. What is anything
# else is said unchanged, as soon as that is certain.

_HEADER = rf"{CALL_HEADER}\{{"
_BEGUN = re.compile(beginnings(_HEADER))
_WHOLE = re.compile(_HEADER)
_BEHIND = r"[ \t]{0,16}(?:\[/tool_call\])?[ \t]{0,16}\r?\n"
_BEHIND_WHOLE = re.compile(_BEHIND)
_BEHIND_BEGUN = re.compile(beginnings(_BEHIND))
_THINK = re.compile("|".join(THINK_TAGS))


class _Place(Enum):
    """Where in the text it is.

    START --a header and a brace--> JSON --its closing brace--> BEHIND --the end of the line--> START, with a call
      |                               '--- no such call ----------'
      v
    LINE --the end of the line--> START
    """

    START = "the start of a line, or what may be a header there"
    LINE = "a line that is text"
    JSON = "behind a header"
    BEHIND = "behind its JSON"


class HeadedCallParser:
    """Reads one answer as `BareAnswerParser` does, and calls of `registry` with a header in place of their tags."""

    def __init__(self, registry: ToolRegistry, *, arguments: bool = True) -> None:
        self._registry = registry
        self._tells = arguments
        self._inner = BareAnswerParser(registry, arguments=arguments)
        # Calls that the inner parser began, and those that it does not count, which were read here.
        self._begun = self._found = 0
        self._in_call = False
        self._place = _Place.START
        self._code = CodeState()
        # Inside of think tags: what ends them, and the end of what was said, where that may have begun.
        self._thought = self._seen = ""
        self._held = ""
        # White space at the start of a stretch of text: in front of a call it only separates.
        self._blank = ""
        self._nothing_said = True
        self._after_call = False
        # What may be a call.
        self._header = ""
        self._scanner = ValueScanner()
        self._json: list[str] = []
        self._size = 0
        self._behind = ""

    def receive_text(self, text: str) -> list[ParserEvent]:
        """The events that this piece of the answer brings."""
        return self._pass(self._inner.receive_text(text))

    def receive_eof(self) -> list[ParserEvent]:
        """The events that the end of the answer brings. To be called once."""
        events = self._pass(self._inner.receive_eof())
        self._end_text(events, last=True)
        if self._blank and not self._after_call:
            events.append(self._blank)
        return events

    def _pass(self, heard: list[ParserEvent]) -> list[ParserEvent]:
        events: list[ParserEvent] = []
        for event in heard:
            if isinstance(event, str) and not self._in_call:
                self._read(event, events)
                continue
            if not (isinstance(event, str) or self._in_call):
                self._end_text(events)
            match event:
                case CallStarted(index):
                    self._in_call, self._begun = True, index + 1
                    events.append(replace(event, index=index + self._found))
                case CallCompleted(index, before=before):
                    self._in_call = False
                    events.append(replace(event, index=index + self._found, before=self._take_blank() + before))
                    self._begin_text()
                case CallMalformed(index=index, before=before):
                    self._in_call = False
                    number = None if index is None else index + self._found
                    events.append(replace(event, index=number, before=self._take_blank() + before))
                    self._place, self._nothing_said = _Place.LINE, False
                case _:
                    events.append(event)
        return events

    def _begin_text(self) -> None:
        """A call stood here, and a stretch of text begins."""
        self._place, self._nothing_said, self._after_call = _Place.START, True, True
        self._code = CodeState()

    def _take_blank(self) -> str:
        blank, self._blank = self._blank, ""
        return blank

    def _say(self, text: str, events: list[ParserEvent]) -> None:
        self._follow(text)
        if self._nothing_said and text.isspace():
            self._blank += text
        else:
            events.append(self._take_blank() + text)
            self._nothing_said = False

    def _follow(self, text: str) -> None:
        """Go on to the end of `text`, as to whether code or a thought is open there."""
        while text:
            if self._thought:
                # What closes it may come in pieces. Code does not matter in here, nor is any open behind it.
                text = self._seen + text
                end = text.find(self._thought)
                if end < 0:
                    self._seen = text[-len(self._thought) + 1 :]
                    return
                text = text[end + len(self._thought) :]
                self._thought, self._seen, self._code = "", "", CodeState()
            # An open tag comes whole, since the inner parser waits for it.
            tag = _THINK.search(text)
            before = text[: tag.start()] if tag else text
            self._code.feed(before)
            if tag is None:
                return
            self._code.end_run()
            if self._code.quoted:
                self._code.feed(tag[0])
            else:
                self._thought = THINK_TAGS[tag[0]]
            text = text[tag.end() :]

    def _read(self, text: str, events: list[ParserEvent]) -> None:
        while text:
            match self._place:
                case _Place.LINE:
                    end = text.find("\n") + 1
                    line = text[: end or len(text)]
                    self._say(line, events)
                    text = text[len(line) :]
                    if end:
                        self._place = _Place.START
                case _Place.START:
                    text = self._start(self._held + text, events)
                case _Place.JSON:
                    text = self._read_json(text, events)
                case _Place.BEHIND:
                    text = self._read_behind(text, events)

    def _start(self, text: str, events: list[ParserEvent]) -> str:
        self._held = ""
        if text[0] == "\n":
            self._say("\n", events)
            return text[1:]
        self._code.end_run()
        if not (self._code.quoted or self._thought):
            if header := _WHOLE.match(text):
                self._place, self._header = _Place.JSON, text[: header.end() - 1]
                self._scanner, self._json, self._behind = ValueScanner(), [], ""
                self._size = 0
                return text[header.end() - 1 :]
            if _BEGUN.fullmatch(text):
                self._held = text
                return ""
        self._place = _Place.LINE
        return text

    def _read_json(self, text: str, events: list[ParserEvent]) -> str:
        self._json.append(text)
        self._scanner.feed(text)
        if self._scanner.done:
            rest = self._scanner.rest
            self._json[-1] = text[: len(text) - len(rest)]
            self._place = _Place.BEHIND
            return rest
        self._size += len(text)
        if self._scanner.broken or self._size > MAX_CALL_CHARS:
            return self._release(events)
        return ""

    def _read_behind(self, text: str, events: list[ParserEvent]) -> str:
        self._behind += text
        if behind := _BEHIND_WHOLE.match(self._behind):
            rest, self._behind = self._behind[behind.end() :], behind[0]
            if self._complete(events):
                return rest
            return self._release(events) + rest
        return "" if _BEHIND_BEGUN.fullmatch(self._behind) else self._release(events)

    def _end_text(self, events: list[ParserEvent], *, last: bool = False) -> None:
        """What was held is decided here: a block follows, or nothing."""
        while self._place in (_Place.JSON, _Place.BEHIND):
            # Where the text ends its last line does, too.
            ended = self._place is _Place.BEHIND and _BEHIND_WHOLE.fullmatch(self._behind + "\n")
            if ended and self._complete(events):
                break
            if last and self._place is _Place.JSON and not self._header.startswith(RESULT_OPENER):
                # Nothing but a call begins like this.
                raw, self._place = self._header + "".join(self._json), _Place.LINE
                events.append(CallMalformed("the JSON is cut off", raw, before=self._take_blank()))
                break
            self._read(self._release(events), events)
        held, self._held = self._held, ""
        if held:
            self._say(held, events)

    def _release(self, events: list[ParserEvent]) -> str:
        """It is no call. Says its first character and returns the rest: another line of it may be one."""
        text = "".join((self._header, *self._json, self._behind))
        self._place = _Place.LINE
        self._say(text[:1], events)
        return text[1:]

    def _complete(self, events: list[ParserEvent]) -> bool:
        """Report the call that is held, if it is one."""
        value = "".join(self._json)
        call = _call_of(self._header, value, self._registry)
        if call is None:
            return False
        before = self._take_blank()
        index, self._found = self._begun + self._found, self._found + 1
        repairs = tuple(rule.value for rule in call.rules)
        raw = self._header + value + self._behind
        events.append(CallStarted(index, call.name, call.id, call.extra, bare=True))
        if self._tells:
            events.append(call.arguments)
        events.append(
            CallCompleted(index, call.name, call.arguments, call.id, raw, Tier.BARE, repairs, call.extra, before)
        )
        self._begin_text()
        return True


def _call_of(header: str, value: str, registry: ToolRegistry) -> Call | None:
    """The call of a tool of `registry` that stands behind this header, if it is one."""
    try:
        [call] = calls_of(value)
    except (UnreadableError, ValueError):
        pass
    else:
        if HARMLESS.issuperset(call.rules) and registry.match(call.name):
            return call.after([Rule.HEADED_ANSWER])
    named = header[len(RESULT_OPENER) : header.index("]")] if header.startswith(RESULT_OPENER) else ""
    tool = registry.match(named)
    if tool is None:
        return None
    # A result begins like this, too. So it has to be arguments of that tool: all that it requires, and nothing else.
    types, written = read_parameter_types(tool.parameters or ""), {key for key, _ in members_of(value)}
    if not (written and types.required <= written <= types.members.keys()):
        return None
    return Call(tool.name, value, None, (), (Rule.HEADED_ANSWER,))
