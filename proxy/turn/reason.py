"""Why something of an answer does not leave as the model wrote it, and what becomes of a block."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum


class Reason(StrEnum):
    """Why a part of an answer is kept back, shown as text, taken out or asked for once more, as logs name it."""

    # of a block
    GOOD = "good"
    """Nothing is wrong with it: it is a call that is meant, and fits."""
    ARGUMENTS_MISFIT = "arguments_misfit"
    """A call's arguments do not fit the schema of its tool."""
    BROKEN = "broken"
    """A call that was leaving while it was written turned out to be none."""
    CUT = "cut"
    """The answer was cut in it, or failed."""
    IN_OUTPUT = "in_output"
    """A call with the key has its words from the new output of a tool."""
    MALFORMED = "malformed"
    """A block cannot be read as a call."""
    MENTION = "mention"
    """A block is spoken of, and no call was meant."""
    NO_KEY = "no_key"
    QUOTED = "quoted"
    """A call is shown, or a block stands so in the request."""
    UNDECLARED = "undeclared"
    """A call of a tool that is not on offer."""
    UNTAGGED = "untagged"
    """JSON of a call without its tags, in an answer in which that is text."""
    WRONG_KEY = "wrong_key"

    # of a call that is right, and may not be wanted yet
    JOINED = "joined"
    """The calls of an answer leave together or not at all: what is asked for once more would come twice."""
    NOTHING_NEW = "nothing_new"
    """A call right behind results adds nothing to them."""
    REPEATED = "repeated"
    """The conversation goes round in this call."""

    # of a whole answer
    CALL_MISSING = "call_missing"
    """The request demands a call, and none came."""
    ECHO = "echo"
    """It is a result, and nothing else."""
    ECHO_OF_LINE = "echo_of_line"
    """It is a line of ours, and nothing else."""
    HELD_FAILED = "held_failed"
    """The server gave up on an answer that it held to the schema of calls."""
    OUTPUT_INVALID = "output_invalid"
    """It is not the JSON that was asked for."""
    SAID = "said"
    """It is a second one, and the client has text of the first."""

    # of text that no person is to see
    BESIDE_CALLS = "beside_calls"
    """It stands beside a call, and is not the JSON that was asked for."""
    HEADER = "header"
    """A header of ours."""
    INVENTED_RESULT = "invented_result"
    """It tells what a call of the same answer returned, which nobody knows yet."""
    OWN_LINE = "own_line"
    """A line of ours, from the prompt."""


class Fate(Enum):
    """What becomes of a block."""

    CALL = "it leaves as a call"
    TEXT = "it is shown as the text that it is"
    GONE = "it is taken out"
    AGAIN = "its answer is asked for once more"
    REFUSE = "it never leaves, and no other call of its answer does"


@dataclass(frozen=True, slots=True)
class Ruling:
    """What becomes of a block, and why; of a call that leaves all the same, what is wrong with it.

    `name` is that of its tool, `problem` says what is wrong, for the model's eyes. `then`: what becomes of one that is
    asked for once more, if no better answer comes.
    """

    fate: Fate
    reason: Reason = Reason.GOOD
    name: str = ""
    problem: str = ""
    then: Fate | None = None

    def is_again(self, *reasons: Reason) -> bool:
        """Whether the answer is asked for once more, because of one of these."""
        return self.fate is Fate.AGAIN and self.reason in reasons

    @property
    def is_good(self) -> bool:
        """Whether it is a whole call that a client may run, better or not."""
        passes = self.fate is Fate.CALL and self.reason is not Reason.CUT
        return passes or self.is_again(Reason.ARGUMENTS_MISFIT)


# Why a call that came may not be meant, so that it is asked for once more.
DOUBTS = (Reason.NO_KEY, Reason.WRONG_KEY, Reason.IN_OUTPUT)
