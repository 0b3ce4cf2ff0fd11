"""`run_turn`: one turn from request to answer, with the one more answer that some faults are worth.

    first answer --- good -------------------------------------------> finished
         |---------- unusable markup, required call missing,
         |           a call that already has its result
         |                \\--- second answer, same prompt + one line -> finished | failed
         '---------- nothing but calls of undeclared tools
                          \\--- plain answer, without the tool block --> finished

The second answer is a fresh one: the failed answer is not in its prompt, models copy it. The client
sees nothing of this but the usage.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing

from parser import ToolRegistry
from prompts import (
    ChoiceMode,
    Image,
    Part,
    Text,
    ToolChoice,
    call_missing,
    call_repeated,
    named_call_missing,
    nothing_said,
    offered_tools,
    render_turn,
    unusable_markup,
)

from ..contracts import (
    AnswerMessageEnded,
    Prompt,
    TextBackend,
    TurnEvent,
    TurnFailed,
    TurnFinished,
    TurnRequest,
    Usage,
)
from ..errors import BackendError
from ..wire.ids import MintId, mint_id
from .answer import Answer, Hold
from .calls import CallGate
from .options import TurnOptions
from .report import TurnReport

# Characters a token stands for, where the backend did not live to count them.
CHARACTERS_PER_TOKEN = 4

# What an image weighs in such an estimate, in tokens.
IMAGE_TOKENS = 1_000


class Turn:
    """The state that outlives one answer: what was used, what was shown, what was held back."""

    def __init__(
        self, request: TurnRequest, backend: TextBackend, options: TurnOptions, report: TurnReport, mint: MintId
    ) -> None:
        self._request = request
        self._backend = backend
        self._options = options
        self._report = report
        self._registry = offered_tools(request.registry, request.choice)
        self._key = secrets.token_hex(8) if options.require_nonce and len(self._registry) else None
        self._gate = CallGate(request, self._registry, mint=mint, key=self._key) if len(self._registry) else None
        self._demanded = self._gate is not None and request.choice.mode is ChoiceMode.REQUIRED
        self._usage = Usage()
        report.tools = tuple(tool.name for tool in self._registry)

    async def run(self) -> AsyncGenerator[list[TurnEvent], None]:
        first = answer = self._answer(
            Hold.REQUIRED if self._demanded else None,
            # Whoever demands a call gets the one there is, asked before or not.
            may_repeat=self._demanded,
        )
        async with aclosing(self._read(first)) as batches:
            async for events in batches:
                yield events
        if fault := self._fault(first):
            hold = Hold.REQUIRED if self._demanded else Hold.SHOWN if first.shown else None
            answer = self._answer(hold, may_repeat=True)
            async with aclosing(self._read(answer, fault=fault)) as batches:
                async for events in batches:
                    yield events
            self._settle(first, answer)
        if self._nothing_left(first, answer):
            self._report.again.append("undeclared")
            answer = Answer(None, self._report)
            async with aclosing(self._read(answer, plain=True)) as batches:
                async for events in batches:
                    yield events
        end = self._end(answer)
        # Of an answer that is refused as a whole nothing is shown.
        held = [] if self._demanded and isinstance(end, TurnFailed) else answer.held
        yield [*held, end]

    def _answer(self, hold: Hold | None, *, may_repeat: bool) -> Answer:
        return Answer(
            self._gate,
            self._report,
            hold=hold,
            release=self._options.release,
            parallel=self._request.parallel,
            may_repeat=may_repeat,
        )

    async def _read(
        self, answer: Answer, *, fault: str | None = None, plain: bool = False
    ) -> AsyncGenerator[list[TurnEvent], None]:
        """Asks the backend and reads its stream into `answer`; leaving early ends the backend's turn."""
        prompt = self._prompt(fault, plain=plain)
        try:
            async with self._backend.stream(prompt) as batches:
                async for batch in batches:
                    if events := answer.receive(batch):
                        yield events
                    if answer.stop:
                        break
        except BackendError as error:
            answer.error = error
        if events := answer.finish():
            yield events
        self._usage += answer.usage or _estimated(prompt, answer.characters)

    def _prompt(self, fault: str | None, *, plain: bool) -> Prompt:
        request = self._request
        rendered = render_turn(
            request.transcript,
            ToolRegistry() if plain else self._registry,
            ToolChoice(ChoiceMode.NONE) if plain else request.choice,
            parallel=request.parallel,
            profile=self._options.profile,
            key=None if plain else self._key,
            fault=fault,
        )
        parts = rendered.parts if any(map(_shows, rendered.parts)) else (Text(nothing_said()),)
        return Prompt(request.model, rendered.developer, parts, request.effort, request.summary)

    def _fault(self, answer: Answer) -> str | None:
        """The line that asks for one more answer, or None when this one stands."""
        if answer.calls or answer.incomplete or answer.broken or answer.error:
            return None
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
        return None

    def _settle(self, first: Answer, second: Answer) -> None:
        """Decides what of two answers the client gets; the second one carries it."""
        if second.error and not (self._demanded or second.shown or second.calls):
            second.error = None
            second.held = first.held
        elif second.empty or (first.shown and second.malformed and not second.calls):
            # It is no better, and what came before was shown already.
            second.held = first.held
        elif second.hold is Hold.SHOWN and second.held:
            second.held.insert(0, AnswerMessageEnded())

    def _nothing_left(self, first: Answer, last: Answer) -> bool:
        """Whether only calls of undeclared tools were written, so that taking them out leaves nothing."""
        settled = last.error or last.incomplete or last.broken or self._demanded
        return bool(first.undeclared + last.undeclared) and last.empty and not first.shown and not settled

    def _end(self, answer: Answer) -> TurnFinished | TurnFailed:
        if answer.error:
            return TurnFailed(answer.error)
        if answer.broken:
            return TurnFailed(_broken(answer.broken))
        if self._demanded and not answer.calls and not answer.incomplete:
            return TurnFailed(self._call_missing())
        return TurnFinished(self._usage, answer.incomplete)

    def _call_missing(self) -> BackendError:
        names = self._request.choice.names
        wanted = f"the tool '{names[0]}'" if names and len(names) == 1 else "a tool"
        return BackendError(
            f"The model did not call {wanted} although 'tool_choice' demands it, also when asked again.",
            code="tool_call_missing",
            param="tool_choice",
            retryable=False,
        )


def _shows(part: Part) -> bool:
    return isinstance(part, Image) or bool(part.text.strip())


def _broken(reason: str) -> BackendError:
    return BackendError(
        f"The model broke off a tool call that had already begun to leave: {reason}.", code="tool_call_broken"
    )


def _weight(part: Part) -> int:
    return IMAGE_TOKENS if isinstance(part, Image) else len(part.text) // CHARACTERS_PER_TOKEN


def _estimated(prompt: Prompt, answered: int) -> Usage:
    """Usage of a turn that was ended before the backend counted it."""
    asked = len(prompt.developer or "") // CHARACTERS_PER_TOKEN + sum(map(_weight, prompt.parts))
    return Usage(input_tokens=asked, output_tokens=answered // CHARACTERS_PER_TOKEN)


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
    return Turn(request, backend, options, report, mint).run()
