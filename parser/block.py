"""A block: from its open tag on, up to where prose goes on.

What was told of a call while it was written binds the reading of its block as a whole: that goes on from it, or there
is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum

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
_VALID = Tier.VALID


def continuing(live: LiveCall, reading: Calls | Malformed) -> Calls | Malformed:
    """The reading, if it takes back nothing of what `live` told."""
    if live.name is None or isinstance(reading, Malformed):
        return reading
    first = reading.calls[0]
    if first.name == live.name and first.arguments.startswith("".join(live.arguments)):
        return reading
    return Malformed("the repaired call is not the one that was begun")


def events_left(live: LiveCall, calls: Sequence[Call], raw: str, before: str) -> list[ParserEvent]:
    """The events that are left to tell of `calls`, which go on from `live`; the first carries the text."""
    events: list[ParserEvent] = []
    for index, call in enumerate(calls, live.index):
        begun = index == live.index and live.name is not None
        told = sum(map(len, live.arguments)) if begun else 0
        if not begun:
            events.append(CallStarted(index, call.name, call.id, call.extra))
        if live.tells and told < len(call.arguments):
            events.append(call.arguments[told:])
        events.append(_completed(index, call, raw, before))
        raw = before = ""
    return events


def _completed(index: int, call: Call, raw: str, before: str) -> CallCompleted:
    tier = Tier.REPAIRED if call.rules else Tier.VALID
    repairs = tuple([rule.value for rule in call.rules]) if call.rules else ()
    return CallCompleted(index, call.name, call.arguments, call.id, raw, tier, repairs, call.extra, before)


class State(IntEnum):
    """What is being read.

    PROSE ---- a made-up result --> ENDED
     |  ^
     |  +----------------------------------------------+
     | open tag                                        |
     v                                                 |
    OPENED --- what follows is no call --------------->|
     | "{"                                             |
     v                                                 |
    LIVE                                               |
     | "}" of the call                                 |
     v                                                 |
    WHOLE ---- another open tag ---------------------->|
     | close tag                                       |
     v                                                 |
    CLOSED --- a second close tag, anything else ----->|
     ^                                                 |
     | close tag                                       |
    BODY ----- another open tag, too long, no call --->+
     ^
     | what is not well-formed, from OPENED, LIVE or WHOLE
    """

    PROSE = 0
    OPENED = 1
    LIVE = 2
    WHOLE = 3
    BODY = 4
    CLOSED = 5
    ENDED = 6


# As plain numbers, since members of 3.11 are slow to look up and slow as an index.
PROSE, OPENED, LIVE, WHOLE, BODY, CLOSED, ENDED = map(int, State)


class Block:
    """Reads the blocks of one answer, one after the other, and tells `prose` what became of each.

    `tells`: arguments are told piece by piece.

    `state` says which of `READERS` takes the text. While `call.in_string`, more characters of that string may
    be told at once and added to `told`, as long as `size` stays within `max_chars`; then comes `join_told`.
    """

    def __init__(self, prose: Prose, max_chars: int, *, tells: bool = True) -> None:
        self._prose = prose
        self.tells = tells
        self.max_chars = max_chars
        self.state: int = PROSE
        self.call = LiveCall(0, tells=tells)
        self.told: list[str] = []
        self.header = ""  # what the call holds, and what follows it
        self.begun = ""  # the beginning of an escape that follows there
        self.size = 0  # of what stands between the tags so far
        self._held = ""  # what may be the beginning of a tag
        self._next_index = 0
        self._resumes = 0
        self._wary = False  # read on from a point that may be inside of a string: strict calls only
        self._head = ""  # the open tag and what else stands before the JSON
        self._openers = 1
        self._unclosed = False  # the call before has no close tag
        self._in_sentence = False  # words stand before the block on its line
        self._pieces: list[str] = []  # what follows, in a well-formed block
        self._body = Body(0)  # what follows, in any other
        # Read, but a second close tag may still belong to them.
        self._calls: tuple[Call, ...] = ()
        self._raw = ""

    def join_told(self) -> None:
        """Add what was `told` to the call, in one piece: many short strings take many times the memory."""
        if self.told:
            text = "".join(self.told)
            self.told.clear()
            self._pieces.append(text)
            self.size += len(text)
            self.call.arguments.append(text)

    def take_header(self) -> str:
        """What was read into `header` alone."""
        header, self.header = self.header, ""
        return header[len(self.call.held) :]

    def read_opened(self, text: str, events: list[ParserEvent]) -> str:
        if self._held:
            text, self._held = self._held + text, ""
        found = OPEN_OBJECT.match(text)
        if found and (start := found.end()) <= MAX_OPENING_CHARS:
            self._head, self._openers, self._unclosed = text[:start], 1, False
            self._begin_call()
            self._pieces, self.size = ["{"], 1
            self.state = LIVE
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
                self._head, self._openers, self._unclosed = text[:start], openers, False
                self._begin_call()
                self._body = Body(self.max_chars, markup=markup)
                self.state = BODY
                return text[start:]

    def _begin_call(self) -> None:
        self._in_sentence = self._prose.in_sentence
        self.call = LiveCall(self._next_index, tells=self.tells, in_sentence=self._in_sentence)

    def _end_opened(self, text: str, end: int, events: list[ParserEvent]) -> str:
        """No block begins there: the tag up to `end` is text, or in place of the close tag of the call before."""
        self.state = PROSE
        if not (self._unclosed and self._prose.blank):
            return self._prose.say_open_tag(text, events)
        self._unclosed = False
        events.append(StrayCloser(self._prose.take_blank() + text[:end]))
        return text[end:]

    def _end_without_call(self, block: NoCall, text: str, events: list[ParserEvent]) -> str:
        self._begin_call()
        self._malformed(block.reason, text[: block.end], events)
        self.state = CLOSED
        return text[block.end :]

    def read_live(self, text: str, events: list[ParserEvent]) -> str:
        # Cut where the limit is and not where the delta ends, so that how the text was cut does not show.
        over = ""
        self.size += len(text)
        if self.size > self.max_chars:
            room = len(text) + self.max_chars - self.size
            text, over, self.size = text[:room], text[room:], self.max_chars
        self._pieces.append(text)
        call = self.call
        if call.feed(text, events):
            return self._too_long("".join(self._pieces), over, events) if over else ""
        if call.broken:
            # Again from the start of the block, for the tolerant reader. What was told stays told: `continuing` refuses
            # a reading that would be another call.
            return self._collect() + over
        self.state = WHOLE
        rest = call.rest + over
        if not rest:
            return ""
        self._pieces[-1] = text[: len(text) - len(call.rest)]
        self.size -= len(call.rest)
        return self.read_whole(rest, events)

    def _collect(self) -> str:
        """Go on with the block as a whole, from the start of its body. Returns what there is of it."""
        self._body = Body(self.max_chars)
        self.state = BODY
        return "".join(self._pieces)

    def read_whole(self, text: str, events: list[ParserEvent]) -> str:
        if self._held:
            text, self._held = self._held + text, ""
        # The end of nearly every call, a few characters at a time: while the tag is only begun, nothing else is tried.
        if len(text) < len(CLOSE_TAG) and CLOSE_TAG.startswith(text):
            self._held = text
            return ""
        at = len(text) - len(text.lstrip(BLANKS))
        if at <= MAX_TAIL_CHARS and self._head.startswith(OPEN_TAG) and (name := self.call.name):
            if text.startswith(CLOSE_TAG, at):
                self._complete_live(name, text[: at + len(CLOSE_TAG)], events)
                self.state = CLOSED
                return text[at + len(CLOSE_TAG) :]
            if CLOSE_TAG.startswith(text[at:]):
                self._held = text
                return ""
        # A whole call, and something else behind it: the block goes on with a fence, a bracket, another object or a
        # remark, it has tags in another spelling, or none in the end. What follows tells, for `MAX_TAIL_CHARS` at most.
        return self._collect() + text

    def _complete_live(self, name: str, tail: str, events: list[ParserEvent]) -> None:
        """The call was told as it came, and its block ends with `tail`."""
        call = self.call
        arguments, raw = "".join(call.arguments), self._head + "".join(self._pieces) + tail
        before = self._prose.end_with_call()
        events.append(CallCompleted(call.index, name, arguments, call.id, raw, _VALID, (), tuple(call.extra), before))
        self._next_index = call.index + 1
        self._leave()

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
        frame = _spelling(self._head, tag) if closed else (*_spelling(self._head), Rule.UNCLOSED)
        if self._openers > 1:
            frame = (Rule.DOUBLED_OPENER, *frame)
        found = read_block(body, closed=closed, tag=self._head, in_sentence=self._in_sentence)
        reading = continuing(self.call, found)
        # Where a block broke, what follows may stand inside of one of its strings: a note's text, say. Well-formed
        # calls are read there, as a lost quote must not cost all calls behind it; to repair one would be a guess upon a
        # guess.
        if self._wary and isinstance(reading, Calls) and self._is_guess(reading, body):
            reading = Malformed("a repair after a broken block would be a guess")
        if isinstance(reading, Calls):
            self._calls = tuple(call.after(frame) for call in reading.calls)
            remark = body[reading.end :]
            self._raw = self._head + body[: reading.end] + ("" if remark else tag)
            if not closed:
                self._complete(events)
                return remark + tag + rest if remark else rest
            # Two open tags explain a second close tag: then the block may go on to there.
            if remark or self._openers == 1:
                self._complete(events)
            if remark:
                self._prose.say_remark(remark, events)
                events.append(StrayCloser(tag))
            self.state = CLOSED
            return rest
        if reading.end is not None:
            self._malformed(reading.reason, self._head + body[: reading.end], events, meant=reading.meant)
            return body[reading.end :] + tag + rest
        cut = collected.in_string
        # No reading. If a close tag stood in what looked like a string, the string may not have been meant as one (its
        # quote got lost), and the block ended there: so the answer is read on from that tag.
        if cut is None or self._resumes == MAX_RESUMES:
            # An open tag that ended it may stand in a string, too.
            self._wary = self._wary or not closed
            self._malformed(reading.reason, self._head + body + tag, events, meant=reading.meant)
            return rest
        self._resumes += 1
        self._wary = True
        whole = body + tag + rest
        self._malformed(reading.reason, self._head + whole[:cut], events, meant=reading.meant)
        return whole[cut:]

    def _is_guess(self, reading: Calls, body: str) -> bool:
        """Whether the block is anything else than well-formed calls between its tags."""
        more = body[reading.end :].strip(BLANKS)
        return self._openers > 1 or bool(more) or any(call.rules for call in reading.calls)

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
        if self._calls:
            self._raw += tail
            self._complete(events)
        elif tail:
            events.append(StrayCloser(tail))
        self.state = PROSE

    def _complete(self, events: list[ParserEvent]) -> None:
        events += events_left(self.call, self._calls, self._raw, self._prose.end_with_call())
        self._next_index = self.call.index + len(self._calls)
        self._unclosed = Rule.UNCLOSED in self._calls[-1].rules
        self._leave()

    def _too_long(self, body: str, rest: str, events: list[ParserEvent]) -> str:
        # What is left begins in the middle of the block, perhaps in one of its strings.
        self._wary = True
        self._malformed(f"more than {self.max_chars} characters", self._head + body, events)
        return rest

    def _malformed(self, reason: str, raw: str, events: list[ParserEvent], *, meant: bool = True) -> None:
        before = self._prose.pass_text_block()
        index = None
        # Its start was told, so this call has used its number up: the next one must not be taken for it.
        if self.call.name is not None:
            index = self.call.index
            self._next_index = index + 1
        self.call.in_string = False
        events.append(CallMalformed(reason, raw, index, meant, before))
        self._leave()

    def _leave(self) -> None:
        self.state = PROSE
        self._pieces, self._calls, self._raw = [], (), ""

    def end(self, events: list[ParserEvent]) -> str:
        """The answer ends here. Returns text that is still to be read, but not what ends it again."""
        self.join_told()
        self._pieces.append(self.begun)
        held, self._held = self._held, ""
        match State(self.state):
            case State.PROSE | State.ENDED:
                return ""
            case State.OPENED:
                tag, first_on_line = OPEN.match(held), self._prose.first_on_line
                end = tag.end() if tag else 0
                # As if a line ended here: what may go on behind an empty block goes on no more.
                match opening_of(f"{held}\n", first_on_line=first_on_line):
                    case NoCall(block_end) as block if block_end <= len(held):
                        return self._end_without_call(block, held, events)
                    case _ if held[end:].strip(BLANKS):
                        return self._end_opened(held, end, events)
                    case _ if first_on_line and not (self._unclosed and self._prose.blank):
                        return self._end_without_call(NoCall(len(held), "nothing follows its tag"), held, events)
                    case _:
                        return self._end_opened(held, len(held), events)
            case State.LIVE:
                self.call.end(events)
                if self.call.broken:
                    return self._collect()
                # Never completed, even if only brackets seem to be missing: more members may have been on their way.
                self._malformed("the call is cut off", self._head + "".join(self._pieces), events)
                return ""
            case State.WHOLE:
                # Only its close tag is missing or cut in half: that is no reason to lose it.
                return self._collect() + held
            case State.CLOSED:
                half = held if held.strip() else ""
                self._close_again(half, events)
                return held[len(half) :]
            case State.BODY:
                return self._end_body(self._body.end(), events)


def _spelling(head: str, close_tag: str = CLOSE_TAG) -> tuple[Rule, ...]:
    """The rule that was needed unless both tags, the open one at the start of `head`, are as taught."""
    return () if close_tag == CLOSE_TAG and head.startswith(OPEN_TAG) else (Rule.TAG_SPELLING,)


def _read_prose(block: Block, text: str, events: list[ParserEvent]) -> str:
    raise AssertionError("no block is open")


def _read_nothing(block: Block, text: str, events: list[ParserEvent]) -> str:
    return ""


# By state. Each reads some of the text, and gives what is left of it.
READERS: tuple[Callable[[Block, str, list[ParserEvent]], str], ...] = (
    _read_prose,
    Block.read_opened,
    Block.read_live,
    Block.read_whole,
    Block.read_body,
    Block.read_closed,
    _read_nothing,
)
