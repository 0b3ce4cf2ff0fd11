"""The text outside of blocks: what is quoted, what is reasoning, where a call or a made-up result starts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .events import ParserEvent, TextDelta
from .grammar import OPEN, OPEN_TAG, THINK_TAGS
from .markdown import CodeState
from .segment import Segment
from .tags import KINDS, Kind, after_calls, before_calls, marks

_ALL_READ = (Kind.TEXT, "")


class Prose:
    """Says text as soon as it cannot be the beginning of a tag.

    `plain` says that a line goes on, nothing is held and nothing is quoted. Then text may be said without
    asking here if it holds no `marks` and no line end, or ends within a line and holds no `~` and `[`.
    """

    __slots__ = (
        "_after_call",
        "_calm",
        "_code",
        "_held",
        "_result_openers",
        "_segment",
        "_tags",
        "_think_close",
        "_think_seen",
        "marks",
        "plain",
    )

    def __init__(self, result_openers: Sequence[str]) -> None:
        self.plain = False
        self._calm = False  # not in a think tag, nothing is quoted, the segment is not blank
        self._held = ""  # may be the beginning of a tag
        self._think_close = ""  # inside of think tags: what ends them
        self._think_seen = ""  # and the end of what was said, where that may have begun
        self._result_openers = tuple(result_openers)
        after_calls(self._result_openers)  # refuses what it cannot find, now rather than after a call
        self._tags = before_calls()
        self.marks = marks(self._tags)
        self._segment = Segment(after_call=False)
        self._code = CodeState()
        self._after_call = False

    def read(self, text: str, events: list[ParserEvent]) -> tuple[Kind, str]:
        """Say what is text. Gives CALL or RESULT with the text from that tag on, or TEXT when all was read."""
        if self._held:
            text, self._held = self._held + text, ""
            # What is held stands where a tag may begin: look for the likely one first.
            if text.startswith(OPEN_TAG):
                self._calm = self.plain = False
                return Kind.CALL, text
            if OPEN_TAG.startswith(text):
                self._held = text
                return _ALL_READ
        if self._calm:
            mark = self.marks.search(text)
            if mark is None:
                self._say_calmly(text, events)
                return _ALL_READ
            at = mark.start()
            if mark.lastgroup == "begun":
                self._held = text[at:]
                self._say_calmly(text[:at], events)
                return _ALL_READ
            if mark.lastgroup == "call":
                self._say_calmly(text[:at], events)
                self._calm = self.plain = False
                return Kind.CALL, text[at:]
        kind = Kind.TEXT
        while text:
            if self._think_close:
                text = self._think(text, events)
                continue
            kind, text = self._prose(text, events)
            if kind is not Kind.THINK:
                break
        self._calm = not (text or self._think_close or self._segment.blank) and self._code.idle
        self.plain = self._calm and not (self._held or self._code.blank)
        return kind, text

    def _say_calmly(self, text: str, events: list[ParserEvent]) -> None:
        """The short way for text without marks, while nothing is quoted."""
        code = self._code
        if code.blank or "\n" in text:
            code.pass_plain(text)
        self.plain = not (code.blank or self._held)
        if text:
            events.append(TextDelta(text))

    def _prose(self, text: str, events: list[ParserEvent]) -> tuple[Kind, str]:
        code = self._code
        pos = 0
        while found := self._tags.search(text, pos):
            at = found.start()
            code.feed(text[pos:at])
            pos = at
            if not code.quoted:
                kind = KINDS[found.lastgroup or ""]
                if code.blank or (kind is not Kind.RESULT and kind is not Kind.RESULT_BEGUN):
                    return self._tag(kind, found, text, events)
            pos = at + 1
            code.feed(text[at:pos])
        code.feed(text[pos:])
        self._segment.say(text, events)
        return Kind.TEXT, ""

    def _tag(self, kind: Kind, found: re.Match[str], text: str, events: list[ParserEvent]) -> tuple[Kind, str]:
        at = found.start()
        if kind is Kind.THINK:
            self._think_close = THINK_TAGS[found.group()]
            at = found.end()
        self._segment.say(text[:at], events)
        if kind is Kind.BEGUN or kind is Kind.RESULT_BEGUN:
            self._held = text[at:]
            return _ALL_READ
        return kind, text[at:]

    def _think(self, text: str, events: list[ParserEvent]) -> str:
        seen = self._think_seen + text
        at = seen.find(self._think_close)
        if at < 0:
            self._think_seen = seen[-len(self._think_close) + 1 :]
            self._segment.say(text, events)
            return ""
        end = at + len(self._think_close) - len(self._think_seen)
        self._segment.say(text[:end], events)
        self._think_close = self._think_seen = ""
        self._code = CodeState()
        return text[end:]

    def open_tag_is_text(self, text: str, events: list[ParserEvent]) -> str:
        """Say the open tag at the start of `text`; what follows it is still to be read."""
        match = OPEN.match(text)
        end = 0 if match is None else match.end()
        self._segment.say(text[:end], events)
        self._code.feed(text[:end])
        return text[end:]

    def take_blank(self) -> str:
        """The white space that is held at the start of this stretch of text and will not be said."""
        return self._segment.take()

    def call_ends(self) -> None:
        """A call stood here: a new segment starts. White space that is still held vanishes."""
        self._segment = Segment(after_call=True)
        self._code = CodeState()
        self._calm = self.plain = False
        if not self._after_call:
            self._after_call = True
            self._tags = after_calls(self._result_openers)
            self.marks = marks(self._tags)

    def block_is_text(self, events: list[ParserEvent]) -> None:
        """What was held belongs before a block that is text after all."""
        self._segment.release(events)
        self._code = CodeState()
        self._code.blank = False
        self._calm = self.plain = False

    def end(self, events: list[ParserEvent]) -> None:
        self._segment.say(self._held, events)
        self._segment.end(events)
