"""What a `SentinelParser` reports, in the order of the text it was given.

A piece of text is a bare `str`: nearly every delta is one, and an object round it would cost more than all of the
parser's work on it. It continues whatever is open, which is

- a call, from its `CallStarted` to its `CallCompleted` or `CallMalformed`: then it is the next piece of the JSON text
  of its arguments, as the model wrote it and as soon as it was seen;
- the answer everywhere else: then it is text that is not part of a call, verbatim.

Nothing here is ever taken back. Joining, in order, the text of the answer, `before` and `raw` of `CallCompleted` and
`CallMalformed`, `StrayCloser.raw` and `ReadingEnded.rest` gives the text that was received, less the white space
between the last call and the end of the answer and less what came after a `ReadingEnded`.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class Tier(Enum):
    """How much a call had to be helped (docs/reference/sentinel.md)."""

    VALID = "A"
    REPAIRED = "B"
    BARE = "C"
    HELD = "D"


class CallStarted(Struct, frozen=True):
    """A call's name is known; its arguments may still be on their way.

    `index` counts the calls of one answer from 0 and ties the events of a call together.
    `id` is what the model wrote as `id` or `call_id` so far, if it did, and `extra` the other members that stood
    before the name, as in `CallCompleted`. `bare`: it is one without tags, which are told when they are whole.
    """

    index: int
    name: str
    id: str | None
    extra: tuple[tuple[str, str], ...] = ()
    bare: bool = False


class CallCompleted(Struct, frozen=True):
    """A whole call.

    `arguments` is the raw JSON text of an object: the model's own characters when they were
    well-formed. It equals the pieces told of this call, joined. `raw` is what stood in the
    answer for it, tags included (of several calls in one block, the first carries the whole block and
    the others the empty string). `before` is the white space that stood before `raw` and is no text,
    because it only separates: whoever shows `raw` as text shows it too. `extra` holds members that are
    neither name, arguments nor id, each as its raw JSON text. `repairs` names the rules that helped, in
    the order they were used.
    """

    index: int
    name: str
    arguments: str
    id: str | None
    raw: str
    tier: Tier = Tier.VALID
    repairs: tuple[str, ...] = ()
    extra: tuple[tuple[str, str], ...] = ()
    before: str = ""


class StrayCloser(Struct, frozen=True):
    """A second close tag right behind a call's own, half of one where the answer ends, an open tag in place of a close
    tag, or the end of a fence round the whole answer. It is nobody's text.

    `raw` has the white space before it too. Whoever refuses the call before it shows it with that call.
    """

    raw: str


class CallMalformed(Struct, frozen=True):
    """A block that cannot be read as a call. `raw` is its text, verbatim, and `before` the white space that was held
    back in front of it: both belong to the answer.

    `index` is set when `CallStarted` was already reported for it: that call must not look finished. It is not
    `meant` where it is rather a mention of a call in a sentence: then there is nothing to ask the model for.
    """

    reason: str
    raw: str
    index: int | None = None
    meant: bool = True
    before: str = ""


class ReadingEnded(Struct, frozen=True):
    """The model began to invent the result of its own call: nothing after this point is read.

    `reason` names what was seen. `rest` is the text from there on as far as it was received, with the
    white space that was held back before it. If no call was passed on after all, `rest` and what comes
    later can be read by a new parser; otherwise it is dropped, and the turn may be interrupted.
    """

    reason: str
    rest: str


ParserEvent = str | CallStarted | CallCompleted | StrayCloser | CallMalformed | ReadingEnded
