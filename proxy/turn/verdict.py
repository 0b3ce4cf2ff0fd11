"""What an answer was, and what follows from that: pure functions from values to values.

first --held_to_format--> the same, as the JSON that it should be, or with why it is none
      --fault_of-------> why one more answer is asked for, or None
first, second --settled--> what the client gets of both
last --end_of--> its last events
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from prompts import (
    ModelRule,
    arguments_misfit,
    call_forbidden,
    call_in_output,
    call_missing,
    call_without_key,
    named_call_missing,
    output_misfit,
    result_repeated,
    tool_unfound,
    unusable_markup,
)

from ..contracts import AnswerMessageEnded, AnswerText, TurnEvent, TurnFailed, TurnFinished, Usage
from ..errors import BackendError, ModelError
from .json_output import JsonOutput, Unfit
from .outlet import Said, names_of_calls, text_of
from .plan import Again, Attempt, Plan, Try
from .reason import DOUBTS, Fate, Reason, Ruling

# The code of a failure that says no more than that.
FAILED_CODE = "backend_error"


class Ending(Struct, frozen=True, kw_only=True):
    """How an answer ended: it was cut as `incomplete` says, by the string `stop`, or its stream failed with `error`.

    `constrained`: that was in an answer that is held to calls.
    """

    incomplete: str | None = None
    stop: str | None = None
    error: BackendError | None = None
    constrained: bool = False


class Answer(Struct, frozen=True, kw_only=True):
    """One answer of the model, once it is over.

    `kept` has not left, because of `kept_for`. `rulings` say what became of its blocks, in order, and `lost` what the
    client is told of those that were taken out. `written` is the text as the model wrote it where it has to be JSON,
    and `unfit` why it is not. `repeats_line`: a line of ours was in it.
    """

    kept_for: Reason | None = None
    kept: tuple[TurnEvent, ...] = ()
    said: Said = Said()
    rulings: tuple[Ruling, ...] = ()
    lost: tuple[str, ...] = ()
    written: str = ""
    unfit: Unfit | None = None
    repeats_line: bool = False
    ending: Ending = Ending()

    @property
    def empty(self) -> bool:
        """Nothing was shown, nothing is kept: the client would get an empty answer."""
        return not (self.said.shown or self.kept or self.calls)

    @property
    def calls(self) -> int:
        """The good ones, which leave or may leave."""
        return sum(ruling.is_good for ruling in self.rulings)

    def ruled(self, *reasons: Reason, fates: Container[Fate] = tuple(Fate)) -> Ruling | None:
        """The first block of which that was said."""
        return next((each for each in self.rulings if each.reason in reasons and each.fate in fates), None)

    @property
    def undeclared(self) -> bool:
        """A call of a tool that is not on offer was taken out."""
        return self.ruled(Reason.UNDECLARED) is not None

    @property
    def malformed(self) -> Ruling | None:
        """The last block that cannot be read."""
        return next((each for each in reversed(self.rulings) if each.reason is Reason.MALFORMED), None)

    @property
    def doubtful(self) -> Ruling | None:
        """The call that may not be meant, and is asked for once more."""
        return self.ruled(*DOUBTS, fates=(Fate.AGAIN,))

    @property
    def misfit(self) -> Ruling | None:
        """The first call that does not fit, or the strict one behind which nothing more was read."""
        return self.refusal or self.ruled(Reason.ARGUMENTS_MISFIT, fates=(Fate.AGAIN,))

    @property
    def refusal(self) -> Ruling | None:
        """The strict call that does not fit."""
        return self.ruled(Reason.ARGUMENTS_MISFIT, fates=(Fate.REFUSE,))

    @property
    def refused(self) -> bool:
        """A call may not leave, and is not asked for once more."""
        reasons = (Reason.QUOTED, *DOUBTS)
        # What cannot be read has a problem.
        return any(each.reason in reasons and each.fate is not Fate.AGAIN and not each.problem for each in self.rulings)

    @property
    def let_misfits(self) -> list[str]:
        """The tools of the calls that do not fit and leave all the same."""
        if self.kept_for is not Reason.ARGUMENTS_MISFIT or self.ending.error or self.refusal:
            return []
        return [ruling.name for ruling in self.rulings if ruling.is_again(Reason.ARGUMENTS_MISFIT)]

    @property
    def answers(self) -> bool:
        """The client gets more of it than the words in front of a call that it does not get."""
        return bool(self.kept or self.calls or (self.said.shown and not self.said.preface))

    @property
    def is_final(self) -> bool:
        """Its end is decided by something that no other answer of the model would change."""
        return bool(self.ending.error or self.ending.incomplete or self.ruled(Reason.BROKEN))


def held_to_format(answer: Answer, output: JsonOutput | None) -> Answer:
    """`answer` with nothing but the JSON that it should be, or with why it is `unfit`.

    One that was cut, by a limit or by a stop string, is as its client wished: half a value was asked for then. And
    one with a call is no answer in text.
    """
    excused = answer.is_final or answer.misfit or answer.ending.stop or names_of_calls(answer.kept)
    if output is None or answer.kept_for is not Reason.OUTPUT_INVALID or excused:
        return answer
    shown = answer.said.shown
    match output.read(answer.written, alone=shown):
        case Unfit() as unfit:
            return replace(answer, unfit=unfit)
        case text:
            # What looked like a block that cannot be read is a tag in one of its strings.
            rulings = tuple(ruling for ruling in answer.rulings if ruling.reason is not Reason.MALFORMED)
            answer = replace(answer, kept_for=None, rulings=rulings)
            phase = next((event.phase for event in reversed(answer.kept) if isinstance(event, AnswerText)), None)
            return answer if shown else replace(answer, kept=(AnswerText(text, phase),), lost=())


def fault_of(answer: Answer, plan: Plan) -> Again | None:
    """Why this answer does not stand, None when it does.

    The order matters: the line names one fault, and the model mends what it is told. A block that cannot be read
    goes before the call that is missing because of it.
    """
    error = answer.ending.error
    if answer.ending.constrained and not answer.calls and error and error.code == FAILED_CODE:
        # llama.cpp gives up on some held answers of its own (its issue 27279), and nothing has left.
        return Again(Reason.HELD_FAILED)
    if answer.is_final or (answer.kept_for is Reason.OUTPUT_INVALID and answer.said.shown):
        # A second answer would be cut just so; and what broke live, or is half a JSON text, has been seen.
        return None
    if misfit := answer.misfit:
        line = arguments_misfit(misfit.name, misfit.problem)
        return Again(Reason.ARGUMENTS_MISFIT, line, to_call=answer.refusal is not None)
    if answer.calls:
        # Whatever else is wrong with it: the client runs these calls, and asked anew they would come twice.
        return None
    if (broken := answer.malformed) and plan.offers:
        return Again(Reason.MALFORMED, unusable_markup(broken.problem))
    if doubtful := answer.doubtful:
        name, shown = doubtful.name, doubtful.reason is Reason.IN_OUTPUT
        line = call_in_output(name, plan.request.transcript) if shown else call_without_key(name, plan.key.key or "")
        return Again(doubtful.reason, line)
    if plan.demands:
        names = plan.request.choice.names
        return Again(Reason.CALL_MISSING, named_call_missing(names) if names else call_missing())
    if plan.request.searchable and (unfound := answer.ruled(Reason.UNDECLARED)):
        return Again(Reason.UNDECLARED, tool_unfound(unfound.name))
    if answer.ruled(Reason.REPEATED):
        return Again(Reason.REPEATED, plain=True)
    for rule, (is_broken, again) in ANSWER_RULES.items():
        if plan.doubts(rule) and is_broken(answer):
            return again
    # An answer of nothing but calls of undeclared tools gets another chance below, in plain words.
    if answer.unfit and not (answer.empty and answer.undeclared):
        return Again(Reason.OUTPUT_INVALID, output_misfit(answer.unfit.problem))
    return None


# What small models need: an answer that gets nobody any further is asked for once more. The first one that is broken
# counts, of those that the profile has. Each rule has the figure that it earned.
ANSWER_RULES: Mapping[ModelRule, tuple[Callable[[Answer], bool], Again]] = {
    ModelRule.NOTHING_NEW: (
        lambda answer: answer.ruled(Reason.NOTHING_NEW) is not None,
        Again(Reason.NOTHING_NEW, unless_open=True),
    ),
    ModelRule.ECHO_OF_LINE: (
        lambda answer: answer.repeats_line and answer.empty,
        Again(Reason.ECHO_OF_LINE, unless_open=True),
    ),
    ModelRule.ECHO: (
        lambda answer: answer.kept_for is Reason.ECHO and not answer.ending.stop,
        Again(Reason.ECHO, result_repeated()),
    ),
}


def settled(first: Answer, second: Answer, plan: Plan) -> Answer:
    """What the client gets of two answers, as the second one.

    What is kept of the first is worth something only where it is text that anybody may see: never the calls of an
    answer with a misfit in it, never text that should have been JSON.
    """
    if first.kept_for is Reason.ARGUMENTS_MISFIT and not first.refusal and _no_better(second, plan):
        # The call that there is: its tool says itself what it cannot use.
        return first
    if first.kept_for is Reason.ECHO and second.kept_for in {Reason.REPEATED, Reason.NOTHING_NEW}:
        # Nothing is open then: the result is the answer.
        return first
    # Of an answer with a strict misfit not even the good calls: they were to go together with it.
    fallback = () if first.misfit else first.kept
    # Of blocks that came in neither answer the client hears once.
    second = replace(second, lost=second.lost or (() if second.answers else first.lost))
    worthless = bool(first.misfit) or first.kept_for is Reason.OUTPUT_INVALID or plan.demands
    error = second.ending.error
    if first.refusal and not (second.calls or error) and (second.empty or second.malformed):
        # It gave up: the client is told why, instead of being shown nothing or a broken block.
        return replace(second, rulings=(first.refusal, *second.rulings))
    if error and (first.said.shown or fallback) and not (second.said.shown or second.calls or worthless):
        # The first answer was whole. That the second one failed is no reason to lose it.
        return replace(second, ending=replace(second.ending, error=None), kept=fallback)
    if second.empty or (first.said.shown and second.malformed and not second.calls):
        # It is no better, and what came before was shown already.
        return replace(second, kept=fallback)
    if second.kept_for is Reason.SAID and second.kept:
        return replace(second, kept=_behind(first.said.beginning, second.kept))
    return second


def _behind(seen: str, kept: Sequence[TurnEvent]) -> tuple[TurnEvent, ...]:
    """`kept` behind the text that the client has `seen` already: what goes on with it, or else another message."""
    texts = list(takewhile(lambda event: isinstance(event, AnswerText), kept))
    text = text_of(texts)
    if not (seen and text.startswith(seen)):
        # Or the two would run into each other.
        return (AnswerMessageEnded(), *kept)
    phase = next((event.phase for event in texts if isinstance(event, AnswerText)), None)
    rest = [AnswerText(text[len(seen) :], phase)] if len(text) > len(seen) else []
    return (*rest, *kept[len(texts) :])


def _no_better(second: Answer, plan: Plan) -> bool:
    """Whether the client gets less of it than a call that does not fit."""
    if second.calls or second.refusal:
        return False
    if second.ending.error:
        return not second.said.shown
    return bool(second.empty or second.malformed or second.unfit or plan.demands)


def next_attempt(attempt: Attempt, first: Answer, answer: Answer, plan: Plan) -> Attempt | None:
    """What is asked for behind this attempt, if anything: `answer` is what the client gets so far."""
    if attempt.is_first and (again := fault_of(first, plan)):
        # What demands keep anyway is not seen before it is judged, so there is nothing that it could repeat.
        keep_for = Reason.SAID if first.said.shown else plan.keep_for
        # A model that repeats its call although it was told means it; one that echoed a result was told of no call.
        return Attempt(Try.SECOND, again, keep_for, may_repeat=again.reason is not Reason.ECHO)
    if attempt.again and attempt.again.plain:
        return None
    if (reason := nothing_left(first, answer, plan)) is None:
        return None
    again = Again(reason, None if plan.offers else call_forbidden(), plain=True)
    return Attempt(Try.PLAIN, again, plan.keep_for, may_repeat=True, seen=first.said.words)


def nothing_left(first: Answer, last: Answer, plan: Plan) -> Reason | None:
    """Why nothing is left of an answer whose calls were taken out, not asked for again or in vain; None if some is."""
    # Where a call is demanded, plain words would be refused as well.
    if last.is_final or last.misfit or plan.demands or first.answers or last.answers:
        return None
    if first.doubtful and not last.undeclared:
        return first.doubtful.reason
    if first.undeclared or last.undeclared:
        return Reason.UNDECLARED
    return Reason.MALFORMED if first.lost and first is last else None


def end_of(answer: Answer, plan: Plan, usage: Usage) -> tuple[TurnEvent, ...]:
    """What is still kept of it, as far as the client may have it, and the turn's last event."""
    error = _error_of(answer, plan)
    if error is None:
        return (*answer.kept, TurnFinished(usage, answer.ending.incomplete, answer.ending.stop))
    # Where more than text was asked for, text that goes before its refusal would look like an answer.
    refused = plan.demands or plan.output or answer.misfit or answer.kept_for is Reason.JOINED
    return (*(() if refused else answer.kept), TurnFailed(error, None if usage == Usage() else usage))


def _error_of(answer: Answer, plan: Plan) -> BackendError | None:
    if answer.ending.error:
        return answer.ending.error
    if broken := answer.ruled(Reason.BROKEN):
        return BackendError(
            f"The model broke off a tool call that had already begun to leave: {broken.problem}.",
            code="tool_call_broken",
        )
    if refused := answer.refusal:
        return ModelError(
            f"The model called the strict tool '{refused.name}' with arguments that do not fit its schema: "
            f"{refused.problem}.",
            code="tool_arguments_invalid",
        )
    if plan.demands and not (answer.calls or answer.ending.incomplete):
        names = plan.request.choice.names
        wanted = f"the tool '{names[0]}'" if names and len(names) == 1 else "a tool"
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
