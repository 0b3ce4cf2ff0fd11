"""When what the model wrote leaves for the client: at once, or held back until it is known whether it stands.

What has left cannot be taken back, and an answer may turn out to be one that is asked for anew. So from the point
on where that is possible its events are held, and released or dropped when it is decided:

    FREE ------- a block that may not be a call -------> DOUBTFUL
    FREE ------- a call that its results make idle ----> REPEATED
    ECHO ------- text that is no echo, or a block -----> FREE: what was held leaves
    any hold --- a good call --------------------------> ANSWERED: what was held leaves before it
    any --------- a good call, some tool is strict ----> STRICT
    STRICT ------ the answer is over, all calls fit ---> ANSWERED
    any hold --- a call that does not fit its schema --> MISFIT

and an answer begins as REQUIRED (the request demands a call), as FORMAT (its text must be JSON), as SHOWN (it was
asked for anew, and the client has seen text of the first one), as ECHO (it may be a result) or FREE.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from ..contracts import AnswerMessageEnded, AnswerText, TurnEvent


class CallRelease(Enum):
    """When a call leaves: once it is whole and checked, or as it is being written."""

    WHOLE = "whole"
    LIVE = "live"


class Hold(Enum):
    """What became of an answer so far, and why its events are held back, if they are."""

    FREE = "free"
    """No call yet, and no reason to doubt the answer."""
    ANSWERED = "answered"
    """A good call has left. Whatever follows, this answer stands: a second one would repeat the call."""
    REQUIRED = "required"
    """Text alone would be refused, so none of it leaves before a call does."""
    FORMAT = "format"
    """JSON is worth nothing in part, and what a backend held its model to need not be what the client asked for."""
    DOUBTFUL = "doubtful"
    """A block that cannot be read, or a call that may not be meant, is text only if the second answer is no better."""
    REPEATED = "repeated"
    """The loop guard: a call whose result is there already, or that adds nothing to those that are, leaves if the model
    insists, or goes on with another."""
    ECHO = "echo"
    """So far it is how a result begins. One that is no more leaves if the second answer is no better."""
    SHOWN = "shown"
    """The client has text of the first answer: of this one it gets no text beside a call, which would say it twice."""
    STRICT = "strict"
    """The calls of an answer leave together or not at all, so that a second answer, asked for because one of them
    does not fit its schema, repeats none that has left."""
    MISFIT = "misfit"
    """A call of a tool that is not strict does not fit: from there on the answer is held, and leaves if no second one
    is better."""


class Cue(Enum):
    """What may change how an answer's events are treated. Text does where it may be a result, reasoning never."""

    CALL = "a good call"
    JOINT_CALL = "a good call where some tool is strict"
    REPEAT = "a call that already has its result, or adds nothing"
    MISFIT = "a call that does not fit the schema of a tool that is not strict"
    DOUBT = "a block that cannot be read, or a call that may not be meant"
    OWN_WORDS = "text that is no echo, or a block"
    END = "the answer is over, and nothing was wrong with its calls"


class Move(Enum):
    """What becomes of the events that come with a cue, and of those that are held."""

    LEAVE = "they leave"
    RELEASE = "what was held leaves, then they do"
    REPLACE = "what was held is dropped, and they leave"
    KEEP = "they are held as well"
    KEEP_ALONE = "what was held is dropped, and they are held"


# What each cue does in each state: the next state, and the move. What is not listed changes nothing, and its events
# go the way of text. `REPEAT` is no cue once a call has left or is about to: one more repeats nothing any worse.
TRANSITIONS: Mapping[tuple[Hold, Cue], tuple[Hold, Move]] = {
    (Hold.FREE, Cue.CALL): (Hold.ANSWERED, Move.LEAVE),
    (Hold.FREE, Cue.JOINT_CALL): (Hold.STRICT, Move.KEEP),
    (Hold.FREE, Cue.REPEAT): (Hold.REPEATED, Move.KEEP),
    (Hold.FREE, Cue.DOUBT): (Hold.DOUBTFUL, Move.KEEP),
    (Hold.REQUIRED, Cue.CALL): (Hold.ANSWERED, Move.RELEASE),
    (Hold.REQUIRED, Cue.JOINT_CALL): (Hold.STRICT, Move.KEEP),
    (Hold.FORMAT, Cue.CALL): (Hold.ANSWERED, Move.RELEASE),
    (Hold.FORMAT, Cue.JOINT_CALL): (Hold.STRICT, Move.KEEP),
    (Hold.DOUBTFUL, Cue.CALL): (Hold.ANSWERED, Move.RELEASE),
    (Hold.DOUBTFUL, Cue.JOINT_CALL): (Hold.STRICT, Move.KEEP),
    (Hold.REPEATED, Cue.CALL): (Hold.ANSWERED, Move.RELEASE),
    (Hold.REPEATED, Cue.JOINT_CALL): (Hold.STRICT, Move.KEEP),
    (Hold.SHOWN, Cue.CALL): (Hold.ANSWERED, Move.REPLACE),
    (Hold.SHOWN, Cue.JOINT_CALL): (Hold.STRICT, Move.KEEP_ALONE),
    (Hold.STRICT, Cue.END): (Hold.ANSWERED, Move.RELEASE),
    (Hold.ECHO, Cue.OWN_WORDS): (Hold.FREE, Move.RELEASE),
    **{(hold, Cue.MISFIT): (Hold.MISFIT, Move.KEEP) for hold in Hold if hold not in {Hold.ANSWERED, Hold.SHOWN}},
}

# The states in which nothing is held back.
NOT_HOLDING = frozenset({Hold.FREE, Hold.ANSWERED})
# The moves that drop what was held, and those that hold what has come.
DROPPING = frozenset({Move.REPLACE, Move.KEEP_ALONE})
KEEPING = frozenset({Move.KEEP, Move.KEEP_ALONE})


def text_of(events: Iterable[TurnEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, AnswerText))


class Release:
    """What is held of one answer. `holds`: what comes does not leave now, it is to be kept here."""

    __slots__ = ("_held", "hold", "holds")

    def __init__(self, hold: Hold = Hold.FREE) -> None:
        self.hold = hold
        # Asked for each delta, so it is not looked up each time.
        self.holds = hold not in NOT_HOLDING
        self._held: list[TurnEvent] = []

    @property
    def held(self) -> tuple[TurnEvent, ...]:
        return tuple(self._held)

    @property
    def held_text(self) -> str:
        return text_of(self._held)

    def keep(self, event: AnswerText | AnswerMessageEnded) -> None:
        """Holds `event`, unless it ends a message of which nothing is here."""
        if self._held or isinstance(event, AnswerText):
            self._held.append(event)

    def meet(self, cue: Cue, events: Sequence[TurnEvent] = ()) -> list[TurnEvent]:
        """What leaves now that `cue` has come with its `events`."""
        self.hold, move = TRANSITIONS.get((self.hold, cue), (self.hold, Move.KEEP if self.holds else Move.LEAVE))
        self.holds = self.hold not in NOT_HOLDING
        if move in DROPPING:
            self._held.clear()
        if move in KEEPING:
            self._held += events
            return []
        leaving = [*self._held, *events]
        self._held.clear()
        return leaving
