"""The text outside of blocks: what is quoted, what is reasoning, where a call or a made-up result starts. All of
it is reported, except white space that only separates.

Strategy: whether a place is quoted matters only where a tag stands. So text without a tag is reported unread and
only remembered. `CodeState` reads it in one go when a tag comes, or when there is much of it.
"""

from __future__ import annotations

import re
from functools import cache

from .beginnings import beginnings
from .events import ParserEvent
from .grammar import OPEN, OPEN_TAG, RESULT_OPENERS, THINK_TAGS
from .json_scan import BLANKS
from .markdown import CodeState

_END = r"\Z"
_TAGS = (
    f"(?P<call>(?i:{OPEN.pattern[1:]}))"
    f"|(?P<think>{'|'.join(tag[1:] for tag in THINK_TAGS)})"
    f"|(?P<begun>(?i:{beginnings(OPEN.pattern[1:])})|{'|'.join(beginnings(tag[1:]) for tag in THINK_TAGS)})"
)
# Characters. White space is held back until it is known to separate calls only, or until there is this much of it.
MAX_HELD_BLANK = 4096
# Characters. About so much text that was said is remembered before it is read: less costs a tenth of the speed.
MAX_UNREAD = 32768
# Pieces. The same for text that has to be looked at anyway.
_MOST_UNREAD = 16
# What ends a thought, and nothing else, counts in it.
_THOUGHT = {
    tag: re.compile(f"<(?:(?P<think_end>{close[1:]})|(?P<begun>{beginnings(close[1:])}))")
    for tag, close in THINK_TAGS.items()
}


# What stands there, which are also the groups of the pattern. BEGUN: the text ends in the middle of it.
TEXT, CALL, THINK, THINK_END = "text", "call", "think", "think_end"
BEGUN, RESULT, RESULT_BEGUN = "begun", "result", "result_begun"


# Strategy: the pattern starts with the characters that the search can skip to, and with what tells nearly every `<` of
# a text from the first tag.


@cache
def tags(*, after_call: bool = False) -> re.Pattern[str]:
    """Finds call and think tags, and made-up results after a call; `lastgroup` says which."""
    if not after_call:
        return re.compile(rf"<(?=(?i:t(?:[oh]|{_END})|{_END}))(?:{_TAGS})")
    results = [(rf"(?<=\{opener[0]})", re.escape(opener[1:])) for opener in RESULT_OPENERS]
    whole = "|".join(behind + rest for behind, rest in results)
    begun = "|".join(behind + beginnings(rest) for behind, rest in results)
    first = "".join(sorted({opener[1] for opener in (OPEN_TAG, *RESULT_OPENERS)}))
    return re.compile(
        rf"[<\[](?=(?i:[{first}]|{_END}))(?:(?P<result>(?i:{whole}))|(?<=<)(?:{_TAGS})|(?P<result_begun>(?i:{begun})))"
    )


class Prose:
    """Says text as soon as it cannot be the beginning of a tag.

    While it is `passing`, nothing is held back. Then text in which `search` finds nothing may be said without
    asking here, and is added to `unread`, up to `MAX_UNREAD` characters before the next `read`. There is
    nothing to find without a `<` or, `after_call`, a `[`. `in_code`: calls count in code, too.
    """

    __slots__ = (
        "_code",
        "_in_code",
        "_thinks",
        "_waiting",
        "after_call",
        "blank",
        "held",
        "passing",
        "search",
        "unread",
    )

    def __init__(self, *, in_code: bool = False) -> None:
        self.passing = False
        self.unread: list[str] = []
        self.held = ""  # may be the beginning of a tag
        tags(after_call=True)  # made now, rather than when a call has come
        self.search = tags().search
        self._code, self._in_code = CodeState(), in_code
        self._thinks = False
        self.blank = True  # nothing but white space was read since the last call
        self._waiting = ""  # white space at the start of this stretch: it may only separate calls
        self.after_call = False

    def read(self, text: str, events: list[ParserEvent]) -> tuple[str, str]:
        """Say what is text. Gives CALL or RESULT with the text from that tag on, or TEXT when all was read."""
        if self.held:
            text, self.held = self.held + text, ""
        if self.blank:
            # Nothing can be quoted yet, and a call is what is likely here.
            tag = text.lstrip(BLANKS)
            is_call = tag.startswith(OPEN_TAG)
            if is_call or (tag and OPEN_TAG.startswith(tag)):
                if len(tag) < len(text):
                    self._say(text[: len(text) - len(tag)], events)
                if is_call:
                    return CALL, tag
                self.held = tag
                return TEXT, ""
        kind, text = self._find(text, events)
        self.passing = not (text or self.held or self.blank)
        return kind, text

    def _find(self, text: str, events: list[ParserEvent]) -> tuple[str, str]:
        unread = pos = 0
        while found := self.search(text, pos):
            kind, pos = found.lastgroup or "", found.start()
            self._pass(text[unread:pos])
            unread = pos
            if kind == BEGUN:
                break
            self._catch_up()
            self._code.end_run()
            quoted = self._code.quoted and (kind == THINK or not self._in_code)
            if kind == THINK_END:
                self.search = tags(after_call=self.after_call).search
                self._code, self._thinks = CodeState(), False
                unread = pos = found.end()
            elif quoted or (kind in (RESULT, RESULT_BEGUN) and not self._code.blank):
                pos += 1
            elif kind == THINK:
                self.search, self._thinks = _THOUGHT[found.group()].search, True
                unread = pos = found.end()
            elif kind == RESULT_BEGUN:
                break
            else:
                self._say(text[:pos], events)
                return kind, text[pos:]
        if found:
            text, self.held = text[:pos], text[pos:]
        else:
            self._pass(text[unread:])
        self._say(text, events)
        return TEXT, ""

    def _pass(self, text: str) -> None:
        self.unread.append(text)
        if len(self.unread) > _MOST_UNREAD:
            self._catch_up()

    def _catch_up(self) -> None:
        """Read what was said unread. In a thought code does not matter."""
        if not self._thinks:
            self._code.feed("".join(self.unread))
        self.unread.clear()

    def say(self, text: str, events: list[ParserEvent]) -> None:
        """Say text in which nothing is to be found: a tag that is none, or a remark in front of a close tag."""
        self._say(text, events)
        self._pass(text)

    def _say(self, text: str, events: list[ParserEvent]) -> None:
        # Hold exactly as much as the limit allows, so that how the text was cut does not show.
        if self.blank and text.isspace() and len(self._waiting) + len(text) <= MAX_HELD_BLANK:
            self._waiting += text
        elif text:
            if self._waiting:
                events.append(self.take_blank())
            self.blank = False
            events.append(text)

    @property
    def first_on_line(self) -> bool:
        """Where a tag was found: whether nothing but white space stands before it on its line."""
        return self.blank or self._code.blank

    @property
    def in_sentence(self) -> bool:
        """Where a tag was found: whether words stand before it on its line."""
        return not self.blank and self._code.has_words

    def take_blank(self) -> str:
        """The white space that is held at the start of this stretch of text and will not be said."""
        held, self._waiting = self._waiting, ""
        return held

    def end_with_call(self) -> str:
        """A call stood here, and a new stretch of text starts. Gives the white space before it."""
        if not self.after_call:
            self.after_call = True
            self.search = tags(after_call=True).search
        # White space alone leaves nothing behind, but for one that is none to JSON: Markdown takes it for text.
        if self.unread or not (self.blank and self._code.blank):
            self.unread.clear()
            self._code = CodeState()
        self.passing, self.blank = False, True
        return self.take_blank()

    def pass_text_block(self) -> str:
        """A block stood here that is text after all. Gives the white space before it, which is text, too."""
        self.unread.clear()
        self._code = self._code.behind_block()
        self.blank = False
        return self.take_blank()

    def end(self, events: list[ParserEvent]) -> None:
        self._say(self.held, events)
        if self._waiting and not self.after_call:
            events.append(self.take_blank())
