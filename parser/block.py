"""A block: from its open tag on, up to where prose goes on.

What was told of a call while it was written binds the reading of its block as a whole: that goes on from it, or there
is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .body import (
    MAX_OPENING_CHARS,
    MAX_TAIL_CHARS,
    OPEN_OBJECT,
    BlockOpening,
    Body,
    Collected,
    NoCall,
    NoOpening,
    TooLong,
    opening_of,
)
from .call_shape import Call
from .events import CallCompleted, CallMalformed, CallStarted, ParserEvent, StrayCloser, Tier
from .grammar import CLOSE_BEHIND, CLOSE_BEHIND_BEGUN, CLOSE_TAG, OPEN, OPEN_TAG
from .json_scan import BLANKS
from .live_call import LiveCall
from .prose import Prose
from .read_block import Calls, Malformed, read_block
from .rules import Rule

# Characters between the tags of a block. A model that never ends a string must not fill the memory.
MAX_CALL_CHARS = 1024 * 1024
# How often an answer is read again from a close tag that seemed to stand in a string. Each time costs
# another pass over what follows, so this bounds the work.
MAX_RESUMES = 8
_VALID = Tier.VALID  # looking it up in its class is a Python call on 3.11


def continuing(live: LiveCall, reading: Calls | Malformed) -> Calls | Malformed:
    """The reading, if it takes back nothing of what `live` told."""
    if live.started is None or isinstance(reading, Malformed):
        return reading
    first = reading.calls[0]
    if first.name == live.started.name and first.arguments.startswith("".join(live.arguments)):
        return reading
    return Malformed("the repaired call is not the one that was begun")


def events_left(live: LiveCall, calls: Sequence[Call], raw: str, before: str) -> list[ParserEvent]:
    """The events that are left to tell of `calls`, which go on from `live`; the first carries the text."""
    events: list[ParserEvent] = []
    for index, call in enumerate(calls, live.index):
        begun = index == live.index and live.started is not None
        told = sum(map(len, live.arguments)) if begun else 0
        if not begun:
            events.append(CallStarted(index, call.name, call.id, call.extra))
        if live.tells and told < len(call.arguments):
            events.append(call.arguments[told:])
        tier, repairs = Tier.REPAIRED if call.rules else Tier.VALID, tuple(rule.value for rule in call.rules)
        events.append(CallCompleted(index, call.name, call.arguments, call.id, raw, tier, repairs, call.extra, before))
        raw = before = ""
    return events


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
#  | "}" of the call                                 |
#  v                                                 |
# WHOLE ---- another open tag ---------------------->|
#  | close tag                                       |
#  v                                                 |
# CLOSED --- a second close tag, anything else ----->|
#  ^                                                 |
#  | close tag                                       |
# BODY ----- another open tag, too long, no call --->+
#  ^
#  | what is not well-formed, from OPENED, LIVE or WHOLE
#
# Plain numbers, since members of an Enum are slow to look up on 3.11.
PROSE, OPENED, LIVE, WHOLE, BODY, CLOSED, ENDED = range(7)


class Frame(NamedTuple):
    """What stands before the body of a block: the open tag, or two, and what else `head` is made of."""

    head: str = ""
    openers: int = 1
    in_sentence: bool = False  # words stand before it on its line

    def spelling(self, close_tag: str = CLOSE_TAG) -> tuple[Rule, ...]:
        """The rules that it took unless both tags are as taught, and there is one of each."""
        doubled = (Rule.DOUBLED_OPENER,) if self.openers > 1 else ()
        taught = close_tag == CLOSE_TAG and self.head.startswith(OPEN_TAG)
        return doubled if taught else (*doubled, Rule.TAG_SPELLING)


@dataclass(slots=True)
class Written:
    """The text of a block in the taught form, behind its open tag. `room`: for so many more characters.

    More characters of a string may be added to `told`, as long as there is room; then comes `join_told`.
    """

    room: int
    pieces: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    header: str = ""  # what the call holds, and what follows it
    begun: str = ""  # the beginning of an escape that follows there

    def join_told(self, call: LiveCall) -> None:
        """Add what was `told` to the call, in one piece: many short strings take many times the memory."""
        if self.told:
            text = "".join(self.told)
            self.told.clear()
            self.pieces.append(text)
            self.room -= len(text)
            call.arguments.append(text)


@dataclass(slots=True)
class Past:
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
        self._max_chars = max_chars
        self.state = PROSE
        self._past = Past()
        self._held = ""  # what may be the beginning of a tag
        self._frame = Frame()
        # What follows: in the taught form, and in any other.
        self.call = LiveCall(0, tells=tells)
        self.written = Written(max_chars)
        self._body = Body(max_chars)
        # Read, but a second close tag may still belong to them: the calls, and their text.
        self._read: tuple[tuple[Call, ...], str] = ((), "")

    def take_header(self) -> str:
        """What was read into `header` alone."""
        header, self.written.header = self.written.header, ""
        return header[len(self.call.held) :]

    def read_opened(self, text: str, events: list[ParserEvent]) -> str:
        if self._held:
            text, self._held = self._held + text, ""
        found = OPEN_OBJECT.match(text)
        if found and (start := found.end()) <= MAX_OPENING_CHARS:
            self._begin(LIVE, text[:start])
            # All else in it is empty again.
            self.written.pieces, self.written.room = ["{"], self._max_chars - 1
            return text[start + 1 :]
        match opening_of(text, first_on_line=self._prose.first_on_line):
            case None:
                self._held = text
                return ""
            case NoCall() as block:
                return self._end_without_call(block, text, events)
            case NoOpening(end):
                return self._end_opened(text, end, events)
            case BlockOpening(start, openers, markup):
                self._begin(BODY, text[:start], openers)
                self._body = Body(self._max_chars, markup=markup)
                return text[start:]

    def _begin(self, state: int, head: str, openers: int = 1) -> None:
        self.state = state
        self._frame = Frame(head, openers, self._prose.in_sentence)
        self._past.unclosed = False
        self.call = LiveCall(self._past.index, tells=self.call.tells, in_sentence=self._frame.in_sentence)

    def _end_opened(self, text: str, end: int, events: list[ParserEvent]) -> str:
        """No block begins there: the tag up to `end` is text, or in place of the close tag of the call before."""
        self.state = PROSE
        if not (self._past.unclosed and self._prose.blank):
            return self._prose.say_open_tag(text, events)
        self._past.unclosed = False
        events.append(StrayCloser(self._prose.take_blank() + text[:end]))
        return text[end:]

    def _end_without_call(self, block: NoCall, text: str, events: list[ParserEvent]) -> str:
        self._begin(CLOSED, text[: block.end])
        self._malformed(block.reason, text[: block.end], events)
        self.state = CLOSED
        return text[block.end :]

    def read_live(self, text: str, events: list[ParserEvent]) -> str:
        # Cut where the limit is and not where the delta ends, so that how the text was cut does not show.
        written, call = self.written, self.call
        over = ""
        written.room -= len(text)
        if written.room < 0:
            text, over, written.room = text[: written.room], text[written.room :], 0
        written.pieces.append(text)
        rest = call.feed(text, events)
        if rest is None:
            if call.broken:
                # Again from the start of the block, for the tolerant reader. What was told stays told: `continuing`
                # refuses a reading that would be another call.
                return self._collect() + over
            return self._too_long("".join(written.pieces), over, events) if over else ""
        self.state = WHOLE
        if not (behind := rest + over):
            return ""
        written.pieces[-1] = text[: len(text) - len(rest)]
        return self.read_whole(behind, events)

    def _collect(self) -> str:
        """Go on with the block as a whole, from the start of its body. Returns what there is of it."""
        self._body = Body(self._max_chars)
        self.state = BODY
        return "".join(self.written.pieces)

    def read_whole(self, text: str, events: list[ParserEvent]) -> str:
        if self._held:
            text, self._held = self._held + text, ""
        # The end of nearly every call, a few characters at a time: while the tag is only begun, nothing else is tried.
        if len(text) < len(CLOSE_TAG) and CLOSE_TAG.startswith(text):
            self._held = text
            return ""
        at = len(text) - len(text.lstrip(BLANKS))
        if at <= MAX_TAIL_CHARS and self._frame.head.startswith(OPEN_TAG) and (call := self.call.started):
            if text.startswith(CLOSE_TAG, at):
                self._complete_live(call, text[: at + len(CLOSE_TAG)], events)
                return text[at + len(CLOSE_TAG) :]
            if CLOSE_TAG.startswith(text[at:]):
                self._held = text
                return ""
        # A whole call, and something else behind it: the block goes on with a fence, a bracket, another object or a
        # remark, it has tags in another spelling, or none in the end. What follows tells, for `MAX_TAIL_CHARS` at most.
        return self._collect() + text

    def _complete_live(self, call: CallStarted, tail: str, events: list[ParserEvent]) -> None:
        """The call was told as it came, and its block ends with `tail`."""
        raw = self._frame.head + "".join(self.written.pieces) + tail
        before, arguments = self._prose.end_with_call(), "".join(self.call.arguments)
        events.append(CallCompleted(call.index, call.name, arguments, call.id, raw, _VALID, (), call.extra, before))
        self._past.index = call.index + 1
        self._leave(CLOSED)

    def read_body(self, text: str, events: list[ParserEvent]) -> str:
        match self._body.feed(text):
            case None:
                return ""
            case TooLong(body, rest):
                return self._too_long(body, rest, events)
            case Collected() as collected:
                return self._end_body(collected, events)

    def _end_body(self, collected: Collected, events: list[ParserEvent]) -> str:
        """Read the block as a whole. Returns the text that is still to be read."""
        body, tag, rest, closed = collected.text, collected.tag, collected.rest, collected.closed
        frame, past = self._frame, self._past
        found = read_block(body, closed=closed, tag=frame.head, in_sentence=frame.in_sentence)
        reading = continuing(self.call, found)
        # Where a block broke, what follows may stand inside of one of its strings: a note's text, say. Well-formed
        # calls are read there, as a lost quote must not cost all calls behind it; to repair one would be a guess upon a
        # guess.
        if past.wary and isinstance(reading, Calls) and self._is_guess(reading, body):
            reading = Malformed("a repair after a broken block would be a guess")
        if isinstance(reading, Calls):
            rules = frame.spelling(tag) if closed else (*frame.spelling(), Rule.UNCLOSED)
            remark = body[reading.end :]
            raw = frame.head + body[: reading.end] + ("" if remark else tag)
            self._read = tuple(call.after(rules) for call in reading.calls), raw
            # Two open tags explain a second close tag: then the block may go on to there.
            if remark or not closed or frame.openers == 1:
                self._complete(events)
            if not closed:
                return remark + tag + rest if remark else rest
            if remark:
                self._prose.say_remark(remark, events)
                events.append(StrayCloser(tag))
            self.state = CLOSED
            return rest
        if reading.end is not None:
            self._malformed(reading.reason, frame.head + body[: reading.end], events, meant=reading.meant)
            return body[reading.end :] + tag + rest
        whole, cut = body + tag + rest, collected.in_string
        # No reading. If a close tag stood in what looked like a string, the string may not have been meant as one (its
        # quote got lost), and the block ended there: so the answer is read on from that tag.
        if cut is None or past.resumes == MAX_RESUMES:
            cut = len(body + tag)
            # An open tag that ended it may stand in a string, too.
            past.wary = past.wary or not closed
        else:
            past.resumes += 1
            past.wary = True
        self._malformed(reading.reason, frame.head + whole[:cut], events, meant=reading.meant)
        return whole[cut:]

    def _is_guess(self, reading: Calls, body: str) -> bool:
        """Whether the block is anything else than well-formed calls between its tags."""
        more = body[reading.end :].strip(BLANKS)
        return self._frame.openers > 1 or bool(more) or any(call.rules for call in reading.calls)

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
        self._close_again(text[:end], events)
        return text[end:]

    def _close_again(self, tail: str, events: list[ParserEvent]) -> None:
        """`tail` is a second close tag, or nothing."""
        self.state = PROSE
        calls, raw = self._read
        if calls:
            self._read = calls, raw + tail
            self._complete(events)
        elif tail:
            events.append(StrayCloser(tail))

    def _complete(self, events: list[ParserEvent]) -> None:
        calls, raw = self._read
        events += events_left(self.call, calls, raw, self._prose.end_with_call())
        self._past.index = self.call.index + len(calls)
        self._past.unclosed = Rule.UNCLOSED in calls[-1].rules
        self._leave()

    def _too_long(self, body: str, rest: str, events: list[ParserEvent]) -> str:
        # What is left begins in the middle of the block, perhaps in one of its strings.
        self._past.wary = True
        self._malformed(f"more than {self._max_chars} characters", self._frame.head + body, events)
        return rest

    def _malformed(self, reason: str, raw: str, events: list[ParserEvent], *, meant: bool = True) -> None:
        before = self._prose.pass_text_block()
        index = None
        # Its start was told, so this call has used its number up: the next one must not be taken for it.
        if self.call.started is not None:
            index = self.call.index
            self._past.index = index + 1
        self.call.in_string = False
        events.append(CallMalformed(reason, raw, index, meant, before))
        self._leave()

    def _leave(self, state: int = PROSE) -> None:
        self.state = state
        self.written.pieces, self._read = [], ((), "")

    def end(self, events: list[ParserEvent]) -> str:
        """The answer ends here. Returns text that is still to be read, but not what ends it again."""
        self.written.join_told(self.call)
        self.written.pieces.append(self.written.begun)
        held, self._held = self._held, ""
        if self.state == OPENED:
            return self._end_held_opening(held, events)
        if self.state == LIVE:
            self.call.end(events)
            if self.call.broken:
                return self._collect()
            # Never completed, even if only brackets seem to be missing: more members may have been on their way.
            self._malformed("the call is cut off", self._frame.head + "".join(self.written.pieces), events)
        elif self.state == WHOLE:
            # Only its close tag is missing or cut in half: that is no reason to lose it.
            return self._collect() + held
        elif self.state == CLOSED:
            half = held if held.strip() else ""
            self._close_again(half, events)
            return held[len(half) :]
        elif self.state == BODY:
            return self._end_body(self._body.end(), events)
        return ""

    def _end_held_opening(self, text: str, events: list[ParserEvent]) -> str:
        tag, first_on_line = OPEN.match(text), self._prose.first_on_line
        end = tag.end() if tag else 0
        # As if a line ended here: what may go on behind an empty block goes on no more.
        block = opening_of(f"{text}\n", first_on_line=first_on_line)
        if isinstance(block, NoCall) and block.end <= len(text):
            return self._end_without_call(block, text, events)
        if text[end:].strip(BLANKS):
            return self._end_opened(text, end, events)
        if first_on_line and not (self._past.unclosed and self._prose.blank):
            return self._end_without_call(NoCall(len(text), "nothing follows its tag"), text, events)
        return self._end_opened(text, len(text), events)

    def read_nothing(self, text: str, events: list[ParserEvent]) -> str:
        return ""


# By state. Each reads some of the text, and gives what is left of it; prose is not read here.
READERS: tuple[Callable[[Block, str, list[ParserEvent]], str], ...] = (
    Block.read_nothing,
    Block.read_opened,
    Block.read_live,
    Block.read_whole,
    Block.read_body,
    Block.read_closed,
    Block.read_nothing,
)
