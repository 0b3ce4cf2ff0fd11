"""Why part of an answer does not leave as the model wrote it, and what becomes of a block."""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Self

from msgspec import Struct


class Reason(StrEnum):
    """Why a part of an answer is kept back, shown as text, taken out or asked for once more: as logs name it.

    `words` say it to people. In them `{tool}` stands for the name of the call's tool, `{of}` for that behind "of",
    `{lacking}` for the argument that it lacks, and `{where}` for where its block stands.
    """

    words: str

    def __new__(cls, name: str, words: str) -> Self:
        reason = str.__new__(cls, name)
        reason._value_, reason.words = name, words
        return reason

    # of a block
    GOOD = "good", "a call{of} was as it should be"
    ARGUMENTS_MISFIT = "arguments_misfit", "the arguments did not fit {tool}{lacking}"
    BROKEN = "broken", "a call{of} broke off while it was leaving"
    CUT = "cut", "the answer was cut in the middle of a call{of}"
    IN_OUTPUT = "in_output", "the call{of} stands in the output of a tool"
    MALFORMED = "malformed", "a call{of} could not be read"
    MENTION = "mention", "the tag of a call was only mentioned, so it was shown"
    NO_KEY = "no_key", "a call{of} did not carry the key for calls"
    QUOTED = "quoted", "the block{of} {where}, so it was shown"
    UNDECLARED = "undeclared", "{tool} is not among the tools that were offered"
    UNTAGGED = "untagged", "JSON{of} without the tags of a call, so it was shown"
    WRONG_KEY = "wrong_key", "a call{of} carried another key for calls than its own"

    # of a call that is right, and may not be wanted yet
    JOINED = "joined", "a call{of} went the way of the others of its answer"
    NOTHING_NEW = "nothing_new", "a call{of} added nothing to the results"
    REPEATED = "repeated", "the conversation goes round in a call{of}"

    # of a whole answer
    CALL_MISSING = "call_missing", "a call was demanded, and none came"
    ECHO = "echo", "the answer only repeated a result"
    ECHO_OF_LINE = "echo_of_line", "the answer only repeated a line of tagcall's own"
    HELD_FAILED = "held_failed", "the server gave up on an answer that it held to the form of calls"
    OUTPUT_INVALID = "output_invalid", "the answer was not the JSON that was asked for"
    SAID = "said", "the answer began anew"

    # of text that no person is to see
    BESIDE_CALLS = "beside_calls", "text beside a call was left out"
    BLOCK = "block", "a block that is no call was left out"
    HEADER = "header", "a header of the conversation was repeated"
    INVENTED_RESULT = "invented_result", "the result of a tool was made up"
    OWN_LINE = "own_line", "a line of tagcall's own was repeated"


class Fate(Enum):
    """What becomes of a block."""

    CALL = "it leaves as a call"
    TEXT = "it is shown as the text that it is"
    GONE = "it is taken out"
    AGAIN = "its answer is asked for once more"
    REFUSE = "it never leaves, and no other call of its answer does"


class Ruling(Struct, frozen=True):
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
