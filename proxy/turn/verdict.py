"""What an answer was, and what follows from that: pure functions from values to values.

first --held_to_format--> the same, as the JSON that it should be, or with why it is none
      --fault_of-------> why one more answer is asked for, or None
first, second --settled--> what of both the client gets
last --end_of--> its last events
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from prompts import (
    Transcript,
    arguments_misfit,
    call_in_output,
    call_missing,
    call_without_key,
    named_call_missing,
    newest_results,
    output_misfit,
    result_repeated,
    unusable_markup,
)

from ..contracts import (
    AnswerMessageEnded,
    AnswerText,
    ToolCallStarted,
    TurnEvent,
    TurnFailed,
    TurnFinished,
    Usage,
)
from ..errors import BackendError, ModelError
from .calls import Doubted
from .json_output import JsonOutput, Unfit
from .key_rule import Doubt
from .release import Hold, text_of
from .report import Again
from .strictness import Misfit

# Characters of a result: what is longer may be just what was asked for.
LONGEST_ECHO = 200

# The code of a failure that says no more than that.
FAILED_CODE = "backend_error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer of the model, once it is over.

    `hold` is what became of it, and `held` what has not left because of that; `shown` says that text of it has left, of
    which `told` is what was the beginning of its message, and `preface` that it is no more than some `words`, by
    lines, in front of calls. `calls` counts the good ones, `undeclared` those of tools that nobody offered, and
    `lost` says of each other block what became of it: these are taken out. `written` is the text as the model wrote
    it where it has to be JSON, and `unfit` why it is not. It is an `echo` if text that is held is nothing but a
    result; it `repeats_line`s of ours. `refused`: a call was
    refused. `malformed` is why a block could not be read, `doubtful` a call that may not be meant, `repeated` the
    tool of a call that the conversation goes round in; it `adds_nothing` if a call behind results does not.
    `misfits` are calls that do not fit their schemas, of which `calls` counts those that may leave all the same,
    `broken` is why a call broke that was leaving live. It was cut as `incomplete` says, ended by a stop string, or
    its stream failed with `error`; `constrained`: in an answer that is held to calls.
    """

    hold: Hold = Hold.FREE
    held: tuple[TurnEvent, ...] = ()
    shown: bool = False
    told: str = ""
    calls: int = 0
    undeclared: int = 0
    words: tuple[str, ...] = ()
    preface: bool = False
    lost: tuple[str, ...] = ()
    written: str = ""
    echo: bool = False
    repeats_line: bool = False
    refused: bool = False
    unfit: Unfit | None = None
    malformed: str | None = None
    doubtful: Doubted | None = None
    repeated: str | None = None
    adds_nothing: bool = False
    misfits: tuple[Misfit, ...] = ()
    broken: str | None = None
    incomplete: str | None = None
    ended_by_stop_string: bool = False
    error: BackendError | None = None
    constrained: bool = False

    @property
    def empty(self) -> bool:
        """Nothing was shown, nothing is held: the client would get an empty answer."""
        return not (self.shown or self.held or self.calls)

    @property
    def misfit(self) -> Misfit | None:
        """The first; where it is strict nothing more was read."""
        return self.refusal or next(iter(self.misfits), None)

    @property
    def refusal(self) -> Misfit | None:
        """The strict call that does not fit."""
        return next((misfit for misfit in self.misfits if misfit.strict), None)

    @property
    def answers(self) -> bool:
        """The client gets more of it than the words in front of a call that it does not get."""
        return bool(self.held or self.calls or (self.shown and not self.preface))

    @property
    def settled(self) -> bool:
        """Its end is decided by something that no other answer of the model would change."""
        return bool(self.error or self.incomplete or self.broken)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """What a request asks of every answer: a call (of one of `names`, if there are any), or JSON; `key` in calls.

    `tools`: calls are possible. `doubts`: an answer behind results that adds nothing to them is asked for once more.
    `transcript` is the conversation behind which it stands.
    """

    key: str | None = None
    tools: bool = True
    doubts: bool = False
    call: bool = False
    names: Sequence[str] | None = None
    output: JsonOutput | None = None
    transcript: Transcript = Transcript(())  # noqa: RUF009 -- frozen


@dataclass(frozen=True, slots=True)
class Fault:
    """Why one more answer is worth asking for, and the line that asks for it.

    `plain`: one without tools; `unless_open`: one from the results, unless a call is due; `to_call`: one that calls.
    """

    reason: Again
    line: str | None = None
    plain: bool = False
    unless_open: bool = False
    to_call: bool = False


def names_of_calls(events: Sequence[TurnEvent]) -> list[str]:
    return [event.name for event in events if isinstance(event, ToolCallStarted)]


def held_to_format(answer: Answer, output: JsonOutput | None) -> Answer:
    """`answer` with nothing but the JSON that it should be, or with why it is `unfit`.

    One that was cut, by a limit or by a stop string, is as its client wished: half a value was asked for then. And
    one with a call is no answer in text.
    """
    excused = answer.settled or answer.misfit or answer.ended_by_stop_string or names_of_calls(answer.held)
    if output is None or answer.hold is not Hold.FORMAT or excused:
        return answer
    match output.read(answer.written, alone=answer.shown):
        case Unfit() as unfit:
            return replace(answer, unfit=unfit)
        # What looked like a block that cannot be read is a tag in one of its strings.
        case _ if answer.shown:
            return replace(answer, hold=Hold.FREE, malformed=None)
        case text:
            phase = next((event.phase for event in reversed(answer.held) if isinstance(event, AnswerText)), None)
            return replace(answer, hold=Hold.FREE, held=(AnswerText(text, phase),), malformed=None, lost=())


def echoes_of(transcript: Transcript) -> list[str]:
    """What an answer right behind results may only repeat: one of them."""
    return [text for text in newest_results(transcript) if len(text) <= LONGEST_ECHO]


def fault_of(answer: Answer, demands: Demands) -> Fault | None:
    """Why this answer does not stand, None when it does.

    The order matters: the line names one fault, and the model mends what it is told. A block that cannot be read
    goes before the call that is missing because of it.
    """
    if answer.constrained and not answer.calls and answer.error and answer.error.code == FAILED_CODE:
        # llama.cpp gives up on some held answers of its own (its issue 27279), and nothing has left.
        return Fault(Again.HELD_FAILED)
    if answer.settled or (answer.hold is Hold.FORMAT and answer.shown):
        # A second answer would be cut just so; and what broke live, or is half a JSON text, has been seen.
        return None
    if answer.misfit:
        told = arguments_misfit(answer.misfit.name, answer.misfit.problem)
        return Fault(Again.ARGUMENTS_MISFIT, told, to_call=answer.refusal is not None)
    if answer.calls:
        # Whatever else is wrong with it: the client runs these calls, and asked anew they would come twice.
        return None
    if answer.malformed and demands.tools:
        return Fault(Again.MALFORMED, unusable_markup(answer.malformed))
    if answer.doubtful:
        return _doubted(answer.doubtful, demands)
    if demands.call:
        return Fault(Again.CALL_MISSING, named_call_missing(demands.names) if demands.names else call_missing())
    if answer.repeated:
        return Fault(Again.REPEATED, plain=True)
    if idle := _idle(answer, demands):
        return idle
    # An answer that held nothing but calls of undeclared tools gets another chance below, in plain words.
    if answer.unfit and not (answer.empty and answer.undeclared):
        return Fault(Again.OUTPUT_INVALID, output_misfit(answer.unfit.problem))
    return None


def _idle(answer: Answer, demands: Demands) -> Fault | None:
    """What a small model writes where it has nothing to say: the call that is due, or the answer, is asked for."""
    if answer.adds_nothing or (answer.repeats_line and answer.empty and demands.doubts):
        return Fault(Again.NOTHING_NEW if answer.adds_nothing else Again.ECHO_OF_LINE, unless_open=True)
    if answer.echo and not answer.ended_by_stop_string:
        return Fault(Again.ECHO, result_repeated())
    return None


def _doubted(call: Doubted, demands: Demands) -> Fault:
    key = demands.key or ""
    match call.doubt:
        case Doubt.NO_KEY:
            return Fault(Again.NO_KEY, call_without_key(call.name, key))
        case Doubt.WRONG_KEY:
            return Fault(Again.WRONG_KEY, call_without_key(call.name, key))
        case Doubt.IN_OUTPUT:
            return Fault(Again.IN_OUTPUT, call_in_output(call.name, demands.transcript))


def settled(first: Answer, second: Answer, demands: Demands) -> Answer:
    """What the client gets of two answers, as the second one.

    What is held of the first is worth something only where it is text that anybody may see: never the calls of an
    answer with a misfit in it, never text that should have been JSON.
    """
    if first.hold is Hold.MISFIT and not first.refusal and _no_better(second, demands):
        # The call that there is: its tool says itself what it cannot use.
        return first
    if first.hold is Hold.ECHO and second.hold is Hold.REPEATED:
        # Nothing is open then: the result is the answer.
        return first
    # Of an answer with a strict misfit not even the good calls: they were held to go together with it.
    fallback = () if first.misfit else first.held
    # Of blocks that came in neither answer the client hears once.
    second = replace(second, lost=second.lost or (() if second.answers else first.lost))
    worthless = bool(first.misfit) or first.hold is Hold.FORMAT or demands.call
    if first.refusal and not (second.calls or second.error) and (second.empty or second.malformed):
        # It gave up: the client is told why, instead of being shown nothing or a broken block.
        return replace(second, misfits=(first.refusal,))
    if second.error and (first.shown or fallback) and not (second.shown or second.calls or worthless):
        # The first answer was whole. That the second one failed is no reason to lose it.
        return replace(second, error=None, held=fallback)
    if second.empty or (first.shown and second.malformed and not second.calls):
        # It is no better, and what came before was shown already.
        return replace(second, held=fallback)
    if second.hold is Hold.SHOWN and second.held:
        return replace(second, held=_behind(first.told, second.held))
    return second


def _behind(told: str, held: Sequence[TurnEvent]) -> tuple[TurnEvent, ...]:
    """`held` behind the text that was `told` already: what goes on with it, or else another message."""
    texts = list(takewhile(lambda event: isinstance(event, AnswerText), held))
    text = text_of(texts)
    if not (told and text.startswith(told)):
        # Or the two would run into each other.
        return (AnswerMessageEnded(), *held)
    phase = next((event.phase for event in texts if isinstance(event, AnswerText)), None)
    rest = [AnswerText(text[len(told) :], phase)] if len(text) > len(told) else []
    return (*rest, *held[len(texts) :])


def _no_better(second: Answer, demands: Demands) -> bool:
    """Whether the client gets less of it than a call that does not fit."""
    if second.calls or second.refusal:
        return False
    if second.error:
        return not second.shown
    return bool(second.empty or second.malformed or second.unfit or demands.call)


def nothing_left(first: Answer, last: Answer, demands: Demands) -> Again | None:
    """Why nothing is left of an answer whose calls were taken out, not asked for again or in vain; None if some is."""
    # Where a call is demanded, plain words would be refused as well.
    decided = last.settled or last.misfits or demands.call
    if decided or first.answers or last.answers:
        return None
    if first.doubtful and not last.undeclared:
        return Again(first.doubtful.doubt.value)
    if first.undeclared or last.undeclared:
        return Again.UNDECLARED
    return Again.MALFORMED if first.lost and first is last else None


def end_of(answer: Answer, demands: Demands, usage: Usage) -> tuple[TurnEvent, ...]:
    """What is still held of it, as far as the client may have it, and the turn's last event."""
    error = _error_of(answer, demands)
    if error is None:
        return (*answer.held, TurnFinished(usage, answer.incomplete))
    # Where more than text was asked for, text that goes before its refusal would look like an answer.
    refused = demands.call or demands.output or answer.misfits or answer.hold is Hold.STRICT
    return (*(() if refused else answer.held), TurnFailed(error))


def _error_of(answer: Answer, demands: Demands) -> BackendError | None:
    if answer.error:
        return answer.error
    if answer.broken:
        return BackendError(
            f"The model broke off a tool call that had already begun to leave: {answer.broken}.",
            code="tool_call_broken",
        )
    if refused := answer.refusal:
        return ModelError(
            f"The model called the strict tool '{refused.name}' with arguments that do not fit its schema: "
            f"{refused.problem}.",
            code="tool_arguments_invalid",
        )
    if demands.call and not (answer.calls or answer.incomplete):
        wanted = f"the tool '{demands.names[0]}'" if demands.names and len(demands.names) == 1 else "a tool"
        return ModelError(
            f"The model did not call {wanted} although 'tool_choice' demands it, also when asked again.",
            code="tool_call_missing",
            param="tool_choice",
        )
    if answer.unfit:
        return ModelError(
            f"The model's answer is not the JSON that the request asks for: {answer.unfit.problem}.",
            code="output_invalid",
        )
    return None
