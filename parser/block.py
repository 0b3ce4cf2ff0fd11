"""A block: from its open tag to where prose goes on.

A call may have been reported in part while it was written. The reading of its whole block must continue that part, or
the block is malformed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from .body import (
    MAX_OPENING_CHARS,
    MAX_TAIL_CHARS,
    OPEN_OBJECT,
    BlockOpening,
    Body,
    Collected,
    NoCall,
    opening_of,
)
from .call_shape import Call
from .events import CallCompleted, CallMalformed, CallStarted, ParserEvent, ReadingEnded, StrayCloser, Tier
from .grammar import CLOSE_BEHIND, CLOSE_BEHIND_BEGUN, CLOSE_TAG, OPEN, OPEN_TAG
from .json_scan import BLANKS
from .json_text import ambiguity
from .live_call import BROKEN, LiveCall
from .prose import CALL, RESULT, Prose
from .read_block import Calls, read_block
from .relaxed_json import UnreadableError
from .rules import Rule

# Characters between the tags of a block. A model that never ends a string must not fill the memory.
MAX_CALL_CHARS = 1024 * 1024
# How often an answer is read again from a close tag that seemed to stand in a string. Each time costs
# another pass over what follows, so this bounds the work.
MAX_RESUMES = 8
# Looking it up in its class is a Python call on 3.11.
_UNCLOSED, _VALID = Rule.UNCLOSED, Tier.VALID


# What is being read:
#
# PROSE ---- a made-up result --> ENDED
#  |  ^
#  |  +----------------------------------------------+
#  | open tag                                        |
#  v                                                 |
# OPENED --- what follows is no call --------------->|
#  | "{"                                             |
#  v                                                 |
# LIVE                                               |
#  | the call and its close tag, as they are taught  |
#  v                                                 |
# CLOSED --- a second close tag, anything else ----->|
#  ^                                                 |
#  | close tag                                       |
# BODY ----- another open tag, too long, no call --->+
#  ^
#  | anything else, from OPENED or LIVE
#
# Plain numbers, since members of an Enum are slow to look up on 3.11.
PROSE, OPENED, LIVE, BODY, CLOSED, ENDED = range(6)


class Frame(Struct, frozen=True):
    """What stands before the body of a block: `head`, the open tag or two, and where."""

    head: str = ""
    in_sentence: bool = False  # words stand before it on its line

    def spelling(self, close_tag: str = CLOSE_TAG) -> tuple[Rule, ...]:
        """The rules that it took unless both tags are as taught, and there is one of each."""
        doubled = (Rule.DOUBLED_OPENER,) if len(OPEN.findall(self.head)) > 1 else ()
        taught = close_tag == CLOSE_TAG and self.head.startswith(OPEN_TAG)
        return doubled if taught else (*doubled, Rule.TAG_SPELLING)


class Past(Struct):
    """What earlier blocks of the answer mean for the next one."""

    index: int = 0  # its number
    unclosed: bool = False  # the call before has no close tag
    resumes: int = 0
    wary: bool = False  # it may stand inside of a string: strict calls only


class Block:
    """Reads the blocks of one answer, one after the other, and tells `prose` what became of each.

    `tells`: arguments are told piece by piece. `state` says which of `READERS` takes the text.
    """

    def __init__(self, prose: Prose, max_chars: int, *, tells: bool = True) -> None:
        self._prose = prose
        self.max_chars = max_chars
        self.state = PROSE
        self._past = Past()
        self._held = ""  # what may be the beginning of a tag
        self._frame = Frame()
        # What follows: in the taught form, and in any other.
        self.call = LiveCall(0, tells=tells)
        self._pieces: list[str] = []  # of its text
        self._body = Body(max_chars)

    def add_told(self, text: str) -> None:
        """Add more characters of a string of the arguments, which were told."""
        self._pieces.append(text)
        self.call.size += len(text)
        self.call.told_to += len(text)

    def read_prose(self, text: str, events: list[ParserEvent]) -> str:
        kind, rest = self._prose.read(text, events)
        if kind == CALL:
            self.state = OPENED
        elif kind == RESULT:
            self.state = ENDED
            events.append(ReadingEnded("the answer goes on with a result of its own call", self._prose.take_blank()))
        return rest

    def read_ended(self, text: str, events: list[ParserEvent]) -> str:
        # Of the delta that ended it nothing is lost. The next one is not read.
        if events and isinstance(last := events[-1], ReadingEnded):
            events[-1] = replace(last, rest=last.rest + text)
        return ""

    def read_opened(self, text: str, events: list[ParserEvent]) -> str:
        if self._held:
            text, self._held = self._held + text, ""
        found = OPEN_OBJECT.match(text)
        if found and (start := found.end()) <= MAX_OPENING_CHARS:
            self._begin(LIVE, text[:start])
            self._pieces.append("{")
            return text[start + 1 :]
        match opening_of(text, first_on_line=self._prose.first_on_line):
            case None:
                self._held = text
                return ""
            case NoCall() as block:
                return self._end_without_call(block, text, events)
            case BlockOpening(start, markup):
                self._begin(BODY, text[:start])
                self._body = Body(self.max_chars, markup=markup)
                return text[start:]

    def _begin(self, state: int, head: str) -> None:
        self.state = state
        self._frame = Frame(head, self._prose.in_sentence)
        self._past.unclosed = False
        self._pieces = []
        self.call = LiveCall(self._past.index, tells=self.call.tells)

    def _end_without_call(self, block: NoCall, text: str, events: list[ParserEvent]) -> str:
        if block.reason:
            self._begin(CLOSED, text[: block.end])
            self._malformed(block.reason, text[: block.end], events)
            self.state = CLOSED
            return text[block.end :]
        # The tag is text, or in place of the close tag of the call before.
        self.state = PROSE
        if not (self._past.unclosed and self._prose.blank):
            self._prose.say(text[: block.end], events)
        else:
            self._past.unclosed = False
            events.append(StrayCloser(self._prose.take_blank() + text[: block.end]))
        return text[block.end :]

    def read_live(self, text: str, events: list[ParserEvent]) -> str:
        # Cut where the limit is and not where the delta ends, so that how the text was cut does not show.
        call, pieces, over = self.call, self._pieces, ""
        if len(text) > (room := self.max_chars - call.size):
            text, over = text[:room], text[room:]
        pieces.append(text)
        rest = call.feed(text, events)
        if rest is None and not over:
            return ""
        if rest is not None and call.part is not BROKEN:
            pieces[-1] = text[: len(text) - len(rest)]
            head, body, started = self._frame.head, "".join(pieces), call.started
            arguments = body[call.begins : call.told_to]
            # What was told of arguments with two readings stays told; `read_block` refuses the block.
            if started and head.startswith(OPEN_TAG) and not ambiguity(arguments):
                index, raw, before = call.index, head + body, self._prose.end_with_call()
                name, own_id, extra = started.name, started.id, started.extra
                events.append(CallCompleted(index, name, arguments, own_id, raw, _VALID, (), extra, before))
                self._past.index = index + 1
                self.state = CLOSED
                return rest + over
        return self._collect() + (rest or "") + over

    def _collect(self) -> str:
        """Go on with the block as a whole, from the start of its body. Returns what there is of it."""
        # What was told stays told: `_check` refuses a reading that would be another call.
        self._body = Body(self.max_chars)
        self.state = BODY
        return "".join(self._pieces)

    def read_body(self, text: str, events: list[ParserEvent]) -> str:
        collected = self._body.feed(text)
        return self._end_body(collected, events) if collected else ""

    def _end_body(self, collected: Collected, events: list[ParserEvent]) -> str:
        """Read the block as a whole. Returns the text that is still to be read."""
        body, tag, rest, closed = collected.text, collected.tag, collected.rest, collected.closed
        frame = self._frame
        if collected.too_long:
            # What is left begins in the middle of the block, perhaps in one of its strings.
            self._past.wary = True
            self._malformed(f"more than {self.max_chars} characters", frame.head + body, events)
            return rest
        try:
            found = read_block(body, closed=closed, tag=frame.head, in_sentence=frame.in_sentence)
            self._check(found, body)
        except UnreadableError as error:
            return self._end_unread(error, collected, events)
        rules = frame.spelling(tag) if closed else (*frame.spelling(), _UNCLOSED)
        remark = body[found.end :]
        raw = frame.head + body[: found.end] + ("" if remark else tag)
        self._complete([call.after(rules) for call in found.calls], raw, events)
        if not closed:
            return remark + tag + rest if remark else rest
        if remark:
            self._prose.say(remark, events)
            events.append(StrayCloser(tag))
        self.state = CLOSED
        return rest

    def _check(self, found: Calls, body: str) -> None:
        """Raises UnreadableError if the calls take back something that was told, or if they would be a guess."""
        first, started = found.calls[0], self.call.started
        told = "".join(self._pieces)[self.call.begins : self.call.told_to]
        if started and not (first.name == started.name and first.arguments.startswith(told)):
            raise UnreadableError("the repaired call is not the one that was begun")
        # Where a block broke, what follows may stand inside of one of its strings: a note's text, say. Well-formed
        # calls are read there, as a lost quote must not cost all calls behind it; to repair one would be a guess upon a
        # guess.
        rules = (*self._frame.spelling(), *(rule for call in found.calls for rule in call.rules))
        if self._past.wary and ({*rules} - {Rule.TAG_SPELLING} or body[found.end :].strip(BLANKS)):
            raise UnreadableError("a repair after a broken block would be a guess")

    def _end_unread(self, error: UnreadableError, collected: Collected, events: list[ParserEvent]) -> str:
        past, whole, cut = self._past, collected.text + collected.tag + collected.rest, error.end
        if cut is None:
            # If a close tag stood in what looked like a string, the string may not have been meant as one (its quote
            # got lost), and the block ended there: so the answer is read on from that tag.
            cut = collected.in_string if past.resumes < MAX_RESUMES else None
            past.resumes += cut is not None
            # An open tag that ended it may stand in a string, too.
            past.wary = past.wary or cut is not None or not collected.closed
        if cut is None:
            cut = len(whole) - len(collected.rest)
        self._malformed(str(error), self._frame.head + whole[:cut], events, meant=error.meant)
        return whole[cut:]

    def _complete(self, calls: Sequence[Call], raw: str, events: list[ParserEvent]) -> None:
        """Tell what is left to tell of the calls of a block, of which the first carries the text."""
        before, started = self._prose.end_with_call(), self.call.started
        told = self.call.told_to - self.call.begins
        for index, call in enumerate(calls, self.call.index):
            if started is None:
                events.append(CallStarted(index, call.name, call.id, call.extra))
            if self.call.tells and told < len(call.arguments):
                events.append(call.arguments[told:])
            events.append(call.completed(index, raw, before=before))
            raw, before, told, started = "", "", 0, None
        self._past.index = self.call.index + len(calls)
        self._past.unclosed = _UNCLOSED in calls[-1].rules
        self.state = PROSE

    def read_closed(self, text: str, events: list[ParserEvent]) -> str:
        if self._held:
            text, self._held = self._held + text, ""
        # Some models close a block twice, or double both tags. The second close tag belongs to the call, a third to
        # nobody.
        tag = text.lstrip(BLANKS)
        end = 0
        if tag[:2] in ("", "<", "</", "<\\") and len(text) - len(tag) <= MAX_TAIL_CHARS:
            if not tag or CLOSE_BEHIND_BEGUN.match(tag):
                self._held = text
                return ""
            if close := CLOSE_BEHIND.match(tag):
                end = len(text) - len(tag) + close.end()
                events.append(StrayCloser(text[:end]))
        self.state = PROSE
        return text[end:]

    def _malformed(self, reason: str, raw: str, events: list[ParserEvent], *, meant: bool = True) -> None:
        before = self._prose.pass_text_block()
        index = None
        # Its start was told, so this call has used its number up: the next one must not be taken for it.
        if self.call.started is not None:
            index = self.call.index
            self._past.index = index + 1
        events.append(CallMalformed(reason, raw, index, meant, before))
        self.state = PROSE

    def end(self, events: list[ParserEvent]) -> str:
        """The answer ends here. Returns text that is still to be read, but not what ends it again."""
        held, self._held = self._held, ""
        if self.state == OPENED:
            return self._end_held_opening(held, events)
        if self.state == LIVE:
            # Only its close tag is missing or cut in half: that is no reason to lose it.
            if self.call.held.lstrip(BLANKS).startswith("}"):
                return self._collect()
            # Never completed, even if only brackets seem to be missing: more members may have been on their way.
            self._malformed("the call is cut off", self._frame.head + "".join(self._pieces), events)
        elif self.state == CLOSED:
            self.state = PROSE
            if held.strip():
                events.append(StrayCloser(held))
                return ""
        elif self.state == BODY:
            return self._end_body(self._body.end(), events)
        return held

    def _end_held_opening(self, text: str, events: list[ParserEvent]) -> str:
        first_on_line = self._prose.first_on_line
        # As if a line ended here: what may go on behind an empty block goes on no more.
        block = opening_of(f"{text}\n", first_on_line=first_on_line)
        if not (isinstance(block, NoCall) and block.end <= len(text)):
            tag = OPEN.match(text)
            end = tag.end() if tag else 0
            block = NoCall(end, "")
            if not text[end:].strip(BLANKS):
                alone = first_on_line and not (self._past.unclosed and self._prose.blank)
                block = NoCall(len(text), "nothing follows its tag" if alone else "")
        return self._end_without_call(block, text, events)


# By state. Each reads some of the text, and gives what is left of it.
READERS: tuple[Callable[[Block, str, list[ParserEvent]], str], ...] = (
    Block.read_prose,
    Block.read_opened,
    Block.read_live,
    Block.read_body,
    Block.read_closed,
    Block.read_ended,
)
