"""`run_turn`: one turn from request to answer, with the one more answer that some faults are worth.

    first answer --- good -------------------------------------------> finished
         |---------- unusable markup, required call missing, a strict call that does not fit,
         |           text that is not the JSON it should be, a call that already has its result
         |                \\--- second answer, same prompt + one line -> finished | failed
         '---------- nothing but calls of undeclared tools
                          \\--- plain answer, without the tool block --> finished

The second answer is a fresh one: the failed answer is not in its prompt, models copy it. The client
sees nothing of this but the usage. `max_output_tokens` is for all answers together. A prompt that the
backend refuses before it answers may be asked again (`asking`).
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing

from prompts import (
    ChoiceMode,
    arguments_misfit,
    call_missing,
    call_repeated,
    named_call_missing,
    offered_tools,
    output_misfit,
    unusable_markup,
)

from ..contracts import (
    AnswerMessageEnded,
    AnswerText,
    TextBackend,
    TurnEvent,
    TurnFailed,
    TurnFinished,
    TurnRequest,
    Usage,
)
from ..errors import BackendError, ModelError, RequestError
from ..ids import MintId, mint_id
from .answer import Answer, Hold, names_of_calls
from .calls import CallGate, Misfit
from .json_output import JsonOutput, Unfit
from .options import TurnOptions
from .prompting import Prompts, estimated_usage
from .report import TurnReport
from .strictness import StrictTools
from .tokens import TokenMeter


class Turn:
    """The state that outlives one answer: what was used, what was shown, what was held back.

    Raises `RequestError` when the request has a schema that nothing can be held against.
    """

    def __init__(
        self, request: TurnRequest, backend: TextBackend, options: TurnOptions, report: TurnReport, mint: MintId
    ) -> None:
        self._request = request
        self._backend = backend
        self._options = options
        self._report = report
        self._registry = offered_tools(request.registry, request.choice)
        self._key = secrets.token_hex(8) if options.require_nonce and len(self._registry) else None
        strict = StrictTools(self._registry, report)
        offered = len(self._registry) > 0
        self._gate = CallGate(request, self._registry, mint=mint, strict=strict, key=self._key) if offered else None
        self._demanded = self._gate is not None and request.choice.mode is ChoiceMode.REQUIRED
        self._output = JsonOutput(request.output_format, report) if request.output_format else None
        self._prompts = Prompts(request, self._registry, options.profile, self._key, report)
        self._usage = Usage()
        report.tools = tuple(tool.name for tool in self._registry)

    async def run(self) -> AsyncGenerator[list[TurnEvent], None]:
        hold = Hold.REQUIRED if self._demanded else Hold.FORMAT if self._output else None
        # Whoever demands a call gets the one there is, asked before or not.
        first = answer = self._answer(hold, may_repeat=self._demanded)
        async with aclosing(self._read(first)) as batches:
            async for events in batches:
                yield events
        if fault := self._fault(first):
            answer = self._answer(hold or (Hold.SHOWN if first.shown else None), may_repeat=True)
            async with aclosing(self._read(answer, fault=fault)) as batches:
                async for events in batches:
                    yield events
            self._settle(first, answer)
        if self._nothing_left(first, answer):
            self._report.again.append("undeclared")
            answer = self._answer(hold, may_repeat=True, plain=True)
            async with aclosing(self._read(answer, plain=True)) as batches:
                async for events in batches:
                    yield events
        end = self._end(answer)
        held = [] if isinstance(end, TurnFailed) and self._refuses_whole(answer) else answer.held
        self._report.calls += names_of_calls(held)
        yield [*held, end]

    def _answer(self, hold: Hold | None, *, may_repeat: bool, plain: bool = False) -> Answer:
        left = self._tokens_left()
        return Answer(
            None if plain else self._gate,
            self._report,
            hold=hold,
            release=self._options.release,
            parallel=self._request.parallel,
            may_repeat=may_repeat,
            # Where JSON is asked for, an answer that looks like a call may be that.
            bare_calls=self._demanded or (self._options.profile.bare_calls and self._output is None),
            stop_strings=self._request.stop,
            meter=None if left is None else TokenMeter(left),
        )

    def _tokens_left(self) -> int | None:
        limit = self._request.max_output_tokens
        return None if limit is None else max(0, limit - self._usage.output_tokens)

    # Asking

    async def _read(
        self, answer: Answer, *, fault: str | None = None, plain: bool = False
    ) -> AsyncGenerator[list[TurnEvent], None]:
        """Asks the backend and reads its stream into `answer`; leaving early ends the backend's turn."""
        answered = False
        prompt = self._prompts.prompt(fault, plain=plain)
        while not answer.error:
            try:
                async with self._backend.stream(prompt) as batches:
                    async for batch in batches:
                        answered = True
                        if events := answer.receive(batch):
                            yield events
                        if answer.stop:
                            break
                break
            except BackendError as error:
                if not answered and self._prompts.ease(prompt, error):
                    prompt = self._prompts.prompt(fault, plain=plain)
                else:
                    answer.error = error
        if events := answer.finish():
            yield events
        self._usage += answer.usage or estimated_usage(prompt, answer.estimated_tokens)

    # Judging

    def _fault(self, answer: Answer) -> str | None:
        """The line that asks for one more answer, or None when this one stands."""
        if answer.incomplete or answer.broken or answer.error or self._tokens_left() == 0:
            return None
        if answer.misfit:
            self._report.again.append("arguments_misfit")
            return arguments_misfit(answer.misfit.name, answer.misfit.problem)
        if answer.calls:
            return None
        unfit = self._fit(answer)
        names = self._request.choice.names
        if self._demanded and not answer.malformed:
            self._report.again.append("call_missing")
            return named_call_missing(names) if names else call_missing()
        if answer.malformed:
            self._report.again.append("malformed")
            return unusable_markup(answer.malformed)
        if answer.repeated:
            self._report.again.append("repeated")
            return call_repeated(answer.repeated)
        if unfit and not (answer.empty and answer.undeclared):
            self._report.again.append("output_invalid")
            return output_misfit(unfit.problem)
        return None

    def _fit(self, answer: Answer) -> Unfit | None:
        """Leaves of an answer in text the JSON that it should be, or says why it is not. Cuts are the client's wish."""
        if self._output is None or answer.hold is not Hold.FORMAT or answer.incomplete or answer.ended_at_stop_string:
            return None
        if names_of_calls(answer.held):
            return None
        fitted = self._output.fit("".join(answer.written))
        if isinstance(fitted, Unfit):
            return fitted
        answer.hold, answer.held = None, [AnswerText(fitted)]
        # A tag in one of its strings.
        answer.malformed = None
        return None

    def _settle(self, first: Answer, second: Answer) -> None:
        """Decides what of two answers the client gets; the second one carries it."""
        refused = first.misfit or first.hold is Hold.FORMAT
        if first.misfit:
            first.held.clear()
        if first.misfit and not (second.calls or second.error) and (second.empty or second.malformed):
            second.misfit = first.misfit
        elif second.error and not (self._demanded or second.shown or second.calls or refused):
            second.error = None
            second.held = first.held
        elif second.empty or (first.shown and second.malformed and not second.calls):
            # It is no better, and what came before was shown already.
            second.held = first.held
        elif second.hold is Hold.SHOWN and second.held:
            second.held.insert(0, AnswerMessageEnded())

    def _nothing_left(self, first: Answer, last: Answer) -> bool:
        """Whether only calls of undeclared tools were written, so that taking them out leaves nothing."""
        settled = last.error or last.incomplete or last.broken or last.misfit or self._demanded
        left = not last.empty or first.shown
        return bool(first.undeclared + last.undeclared) and not (left or settled or self._tokens_left() == 0)

    def _refuses_whole(self, answer: Answer) -> bool:
        """Whether of a failed answer nothing is shown that is still held."""
        return bool(self._demanded or self._output or answer.misfit) or answer.hold is Hold.STRICT

    def _end(self, answer: Answer) -> TurnFinished | TurnFailed:
        if answer.error:
            return TurnFailed(answer.error)
        if answer.broken:
            return TurnFailed(_broken(answer.broken))
        if answer.misfit:
            return TurnFailed(_misfit(answer.misfit))
        if self._demanded and not answer.calls and not answer.incomplete:
            return TurnFailed(self._call_missing())
        if unfit := self._fit(answer):
            return TurnFailed(_unfit(unfit))
        return TurnFinished(self._usage, answer.incomplete)

    def _call_missing(self) -> ModelError:
        names = self._request.choice.names
        wanted = f"the tool '{names[0]}'" if names and len(names) == 1 else "a tool"
        return ModelError(
            f"The model did not call {wanted} although 'tool_choice' demands it, also when asked again.",
            code="tool_call_missing",
            param="tool_choice",
        )


def _broken(reason: str) -> BackendError:
    return BackendError(
        f"The model broke off a tool call that had already begun to leave: {reason}.", code="tool_call_broken"
    )


def _misfit(call: Misfit) -> ModelError:
    return ModelError(
        f"The model called the strict tool '{call.name}' with arguments that do not fit its schema: {call.problem}.",
        code="tool_arguments_invalid",
    )


def _unfit(unfit: Unfit) -> ModelError:
    return ModelError(
        f"The model's answer is not the JSON that the request asks for: {unfit.problem}.",
        code="output_invalid",
    )


def run_turn(
    request: TurnRequest,
    backend: TextBackend,
    options: TurnOptions,
    report: TurnReport,
    *,
    mint: MintId = mint_id,
) -> AsyncGenerator[list[TurnEvent], None]:
    """The events of one turn, in batches that arrived together; the last is `TurnFinished` or `TurnFailed`.

    Close it (`contextlib.aclosing`) to end the turn early: the backend is interrupted.
    """
    try:
        return Turn(request, backend, options, report, mint).run()
    except RequestError as error:
        return _refused(error)


async def _refused(error: RequestError) -> AsyncGenerator[list[TurnEvent], None]:
    yield [TurnFailed(error)]
