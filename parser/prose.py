"""The text outside of blocks: what is quoted, what is reasoning, where a call or a made-up result starts.

Strategy: whether a place is quoted matters only where a tag stands. So text without one is said unread and
only remembered; `CodeState` reads it in one go when there is a tag, or when there is much of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .events import ParserEvent
from .grammar import OPEN, OPEN_TAG, THINK_TAGS
from .json_scan import BLANKS
from .markdown import CodeState
from .segment import Segment
from .tags import KINDS, Kind, after_calls, before_calls

# Characters. About so much text that was said is remembered before it is read: less costs a tenth of the speed.
MAX_UNREAD = 16384
# Pieces. The same for text that has to be looked at anyway.
_MOST_UNREAD = 16

# Looking a member up in its class is a Python call on 3.11.
_TEXT, _CALL, _THINK, _BEGUN, _RESULT, _RESULT_BEGUN = Kind
_ALL_READ = (_TEXT, "")
# What ends a thought, and nothing else, counts in it.
_LESS_THAN = re.compile("<")


class Prose:
    """Says text as soon as it cannot be the beginning of a tag.

    While it is `passing`, nothing is held back. Then text in which `search` finds nothing may be said without
    asking here, and is added to `unread`, up to `MAX_UNREAD` characters before the next `read`. There is
    nothing to find without a `<` or, `after_call`, a `[`.
    """

    __slots__ = (
        "_code",
        "_result_openers",
        "_segment",
        "_tags",
        "_think_close",
        "_think_seen",
        "after_call",
        "held",
        "passing",
        "search",
        "unread",
    )

    def __init__(self, result_openers: Sequence[str]) -> None:
        self.passing = False
        self.unread: list[str] = []
        self.held = ""  # may be the beginning of a tag
        self._think_close = ""  # inside of think tags: what ends them
        self._think_seen = ""  # and the end of what was said, where that may have begun
        self._result_openers = tuple(result_openers)
        after_calls(self._result_openers)  # refuses what it cannot find, now rather than after a call
        self._tags = before_calls()
        self.search = self._tags.search
        self._segment = Segment()
        self._code = CodeState()
        self.after_call = False

    def read(self, text: str, events: list[ParserEvent]) -> tuple[Kind, str]:
        """Say what is text. Gives CALL or RESULT with the text from that tag on, or TEXT when all was read."""
        if self.held:
            text, self.held = self.held + text, ""
        if self._segment.blank:
            # Nothing can be quoted yet, and a call is what is likely here.
            tag = text.lstrip(BLANKS)
            is_call = tag.startswith(OPEN_TAG)
            if is_call or (tag and OPEN_TAG.startswith(tag)):
                if len(tag) < len(text):
                    self._segment.say(text[: len(text) - len(tag)], events)
                if is_call:
                    return _CALL, tag
                self.held = tag
                return _ALL_READ
        kind = _TEXT
        while text:
            if self._think_close:
                text = self._think(text, events)
                continue
            kind, text = self._prose(text, events)
            if kind is not _THINK:
                break
        if text:
            self.passing = False
            return kind, text
        self.passing = not (self.held or self._think_seen or self._segment.blank)
        return _ALL_READ

    def _prose(self, text: str, events: list[ParserEvent]) -> tuple[Kind, str]:
        unread = pos = 0
        while found := self.search(text, pos):
            kind = KINDS[found.lastgroup or ""]
            pos = found.start()
            self._pass(text[unread:pos])
            if kind is _BEGUN:
                return self._hold(text, pos, events)
            unread = pos
            self._catch_up()
            code = self._code
            code.end_run()
            if not code.quoted and (code.blank or (kind is not _RESULT and kind is not _RESULT_BEGUN)):
                return self._tag(kind, found, text, events)
            pos += 1
        self._pass(text[unread:])
        self._segment.say(text, events)
        return _ALL_READ

    def _pass(self, text: str) -> None:
        self.unread.append(text)
        if len(self.unread) > _MOST_UNREAD:
            self._catch_up()

    def _catch_up(self) -> None:
        """Read what was said unread."""
        text = "".join(self.unread)
        self.unread.clear()
        self._code.feed(text)

    def _hold(self, text: str, at: int, events: list[ParserEvent]) -> tuple[Kind, str]:
        self._segment.say(text[:at], events)
        self.held = text[at:]
        return _ALL_READ

    def _tag(self, kind: Kind, found: re.Match[str], text: str, events: list[ParserEvent]) -> tuple[Kind, str]:
        if kind is _RESULT_BEGUN:
            return self._hold(text, found.start(), events)
        at = found.start()
        if kind is _THINK:
            self._think_close = THINK_TAGS[found.group()]
            self.search = _LESS_THAN.search
            at = found.end()
        self._segment.say(text[:at], events)
        return kind, text[at:]

    def _think(self, text: str, events: list[ParserEvent]) -> str:
        self.unread.clear()  # code does not matter in here
        close = self._think_close
        seen = self._think_seen + text
        at = seen.find(close)
        if at < 0:
            tail = seen[-len(close) + 1 :]
            self._think_seen = tail if "<" in tail else ""
            self._segment.say(text, events)
            return ""
        end = at + len(close) - len(self._think_seen)
        self._segment.say(text[:end], events)
        self._think_close = self._think_seen = ""
        self.search = self._tags.search
        self._code = CodeState()
        return text[end:]

    def say_open_tag(self, text: str, events: list[ParserEvent]) -> str:
        """Say the open tag at the start of `text`; what follows it is still to be read."""
        match = OPEN.match(text)
        end = 0 if match is None else match.end()
        self._segment.say(text[:end], events)
        self._pass(text[:end])
        return text[end:]

    def say_remark(self, text: str, events: list[ParserEvent]) -> None:
        """Say text without any tag that stood between a call and its close tag."""
        self._segment.say(text, events)
        self._pass(text)

    @property
    def blank(self) -> bool:
        """Whether nothing but white space was read since the last call."""
        return self._segment.blank

    def take_blank(self) -> str:
        """The white space that is held at the start of this stretch of text and will not be said."""
        return self._segment.take()

    def end_with_call(self) -> str:
        """A call stood here, and a new stretch of text starts. Gives the white space before it."""
        if not self.after_call:
            self.after_call = True
            self._tags = after_calls(self._result_openers)
            self.search = self._tags.search
        if not self._segment.blank:
            self.unread.clear()
            self._code = CodeState()
        self.passing = False
        return self._segment.end_with_call()

    def pass_text_block(self) -> str:
        """A block stood here that is text after all. Gives the white space before it, which is text, too."""
        self.unread.clear()
        self._code = CodeState()
        self._code.blank = False
        return self._segment.pass_text()

    def end(self, events: list[ParserEvent]) -> None:
        self._segment.say(self.held, events)
        self._segment.end(events)
