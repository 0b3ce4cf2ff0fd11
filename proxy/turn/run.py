"""`run_turn`: one turn from request to answer, as a loop over at most three attempts.

    ASK --prompt--> READ --its end--> JUDGE --something is worth asking for--> ASK
                                        '-----else--------------------------> the turn's end

    first    always
    second   the same prompt and a line: after unusable markup, a required call that is missing, a call that does not
             fit its schema or may not be meant, text that should be JSON, or an answer that adds nothing to results
    plain    without the tool block: after nothing but calls that are taken out, and words that announce them

The second answer is a fresh one: the failed answer is not in its prompt, because models copy it. The client sees
nothing of this except the usage. `max_output_tokens` holds for all answers together. A prompt that the backend
refuses before it answers may be asked again (`prompting`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial

from msgspec.structs import replace

from prompts import characters_sent

from ..contracts import (
    AnswerMessageEnded,
    AnswerText,
    Prompt,
    TextBackend,
    TurnEvent,
    TurnFailed,
    TurnFinished,
    TurnRequest,
)
from ..errors import BackendError, RequestError
from ..ids import MintId, mint_id
from .calls import CallGate
from .filters import masked
from .json_output import BesideCalls
from .json_stream import StreamJson
from .lane_end import LaneEnd
from .offload import OffloadIfLong, is_long
from .outlet import names_of_calls, text_of
from .passed_calls import Stop
from .plan import Again, Attempt, EmptyAnswers, Plan, Try, TurnOptions
from .prompting import Prompts
from .reading import Reading
from .reason import Reason
from .report import Count, TurnReport
from .sentence import calls_left, empty_answer
from .spent import Spent
from .verdict import Answer, end_of, held_to_format, next_attempt, settled


class Turn:
    """The state that outlives one answer: what was used, and which calls were taken."""

    def __init__(self, plan: Plan, backend: TextBackend, report: TurnReport, *, mint: MintId, characters: int) -> None:
        self._plan = plan
        self._backend = backend
        self._report = report
        self._gate = CallGate(plan, mint)
        self._prompts = Prompts(plan, report, backend)
        self._offload = OffloadIfLong(
            plan.request, plan.options.offload,
            characters=characters, judges=plan.offers, takes_items=backend.takes_items,
        )  # fmt: skip
        self._spent = Spent(plan.request.max_output_tokens, plan.options.max_answer)
        self.lane_end = LaneEnd(report, plan.request.registry)
        self._beside = BesideCalls(plan.output, report) if plan.output else None
        self._reading: Reading
        # Whether the backend holds its model to the format of an answer that leaves while it is written.
        self._held: bool
        report.tools = plan.offered.names
        report.counts[Count.PAIRED].update(plan.request.repairs)
        report.conversation.results = plan.request.transcript.newest_results

    def _warn_of_ignored(self, known: Sequence[str] = ()) -> Sequence[str]:
        """Of the wishes that have no effect, but for those of which that is `known`. Returns what it warned of."""
        heeded = self._backend.heeds(self._plan.request.model) if self._plan.request.wishes else ()
        if ignored := [name for name in self._plan.request.wishes if name not in {*heeded, *known}]:
            self._report.warn(f"Without effect here: {', '.join(ignored)}.")
        return ignored

    def said(self) -> str | None:
        """The text between the blocks of the newest answer, as it came; None if more did."""
        return self._reading.said

    async def parsable(self, batch: list[TurnEvent]) -> list[TurnEvent]:
        """What of a batch clients can parse that asked for JSON."""
        if self._beside is None:
            return batch
        work = partial(self._beside.fitting, batch, streamed=self._reading.text.leaves_json)
        return await self._offload.done(work, len(text_of(batch)))

    async def run(self) -> AsyncGenerator[list[TurnEvent], None]:
        """The batches that are to leave."""
        plan, report = self._plan, self._report
        ignored = self._warn_of_ignored()
        # Whoever demands a call gets the one there is, asked before or not.
        keep_for = Reason.ECHO if plan.echoes else plan.keep_for
        attempt: Attempt | None = Attempt(keep_for=keep_for, may_repeat=plan.demands)
        first = answer = Answer()
        while attempt is not None:
            async with aclosing(self._read(attempt)) as batches:
                async for events in batches:
                    yield events
            read = await self._as_json(self._reading.answer)
            match attempt.number:
                case Try.FIRST:
                    first = answer = read
                    self._note_format(read)
                case Try.SECOND:
                    answer = await self._as_json(settled(first, read, plan))
                case Try.PLAIN:
                    answer = replace(read, lost=read.lost or answer.lost)
            # Nor one more where the second one failed, and what was shown of the first stands.
            failed = read.ending.error is not None and not attempt.is_first
            # One more answer would be cut before its first word.
            exhausted = self._spent.tokens_left == 0 or self._spent.full
            attempt = None if exhausted or failed else next_attempt(attempt, first, answer, plan)
            if attempt is not None and attempt.again is not None:
                report.again.append(attempt.again.reason)
            if attempt is not None and attempt.number is Try.PLAIN:
                if first.doubtful and not answer.refused:
                    report.count(Count.REFUSED, first.doubtful.reason)
                if plan.keep_for is None and (first.said.shown or answer.said.shown):
                    # Behind the words that announced a call, which are a message of their own.
                    yield [AnswerMessageEnded()]
        last = end_of(answer, plan, self._spent.usage)
        report.calls += names_of_calls(last)
        report.unfit = answer.unfit is not None
        self._warn_of(answer, ignored)
        if isinstance(end := last[-1], TurnFailed):
            # What is said of a failure may repeat what was asked, or written.
            end.error.message = masked(end.error.message, plan.key.key)
        yield self._instead_of_nothing([*last], answer)

    def _warn_of(self, answer: Answer, ignored: Sequence[str]) -> None:
        """Of what the client may miss, or would not expect."""
        for name in answer.let_misfits:
            self._report.let_misfit(name)
        for note in calls_left(self._report):
            if note.renamed:
                self._report.warn(f"A call of '{note.renamed}' left as one of '{note.name}', which was meant.")
        # By now the backend has met its models.
        self._warn_of_ignored(ignored)
        for sentence in answer.lost:
            self._report.warn(sentence)
        if self._spent.full:
            longest = self._plan.options.max_answer
            self._report.warn(f"The answer was cut: it is longer than --max-answer, {longest:,} bytes.")

    def _instead_of_nothing(self, last: list[TurnEvent], answer: Answer) -> list[TurnEvent]:
        """The turn's last events. Where it would end without any that a client shows, with a sentence before them."""
        whole = answer.ending.incomplete is None and answer.ending.stop is None
        if self.lane_end.shown or len(last) > 1 or not isinstance(last[-1], TurnFinished) or not whole:
            return last
        chosen = self._plan.options.empty_answers if self._plan.output is None else EmptyAnswers.EMPTY
        self._report.answered_nothing = chosen.value
        return [AnswerText(empty_answer(self._report)), *last] if chosen is EmptyAnswers.SENTENCE else last

    async def _as_json(self, answer: Answer) -> Answer:
        """`answer` as the JSON that it should be, if it should."""
        return await self._offload.done(partial(held_to_format, answer, self._plan.output), len(answer.written))

    def _note_format(self, first: Answer) -> None:
        """What the first answer shows of whether a model keeps to the format that its backend should hold it to."""
        formats, speaker = self._plan.options.formats, self._plan.key.speaker
        if not self._held:
            return
        if first.unfit or self._reading.text.is_no_json:
            formats.note_break(speaker)
        elif first.kept_for is None and not first.calls:
            formats.note_fit(speaker)

    async def _ask(self, again: Again | None) -> Prompt:
        prompt = await self._offload.made(partial(self._prompts.prompt, again, max_tokens=self._spent.tokens_left))
        self.lane_end.begin(prompt)
        return prompt

    def _new_reading(self, attempt: Attempt, prompt: Prompt) -> Reading:
        plan, schema = self._plan, prompt.output_schema
        # Stop strings are not looked for in what leaves so.
        early = attempt.is_first and plan.request.streamed and not plan.request.stop
        self._held = early and schema is not None and self._backend.holds(schema)
        trusted = self._held and not plan.options.formats.broken_by(plan.key.speaker)
        self._spent.begin()
        return Reading(
            plan,
            attempt,
            self._gate,
            self._report,
            spent=self._spent,
            lines=self._prompts.lines,
            held=prompt.calls_held,
            early=early and (trusted or plan.options.stream_json is StreamJson.EARLY),
        )

    def _let_end(self, stop: Stop, prompt: Prompt) -> bool:
        """Lets an answer of which no more is wanted end by itself, where it is about to: an interrupt costs its lane.

        Returns whether it does.
        """
        if not stop.winds_down or self._reading.end.goes_on or prompt.continuation.resume is None:
            return False
        if prompt.continuation.wind_down is not None:
            prompt.continuation.wind_down()
            prompt.continuation.wind_down = None
        return True

    async def _read(self, attempt: Attempt) -> AsyncGenerator[list[TurnEvent], None]:
        """Asks the backend and reads its stream; leaving early ends the backend's turn."""
        answered = False
        failure: BackendError | None = None
        self.lane_end.settle("second_try")
        prompt = await self._ask(attempt.again)
        while failure is None:
            reading = None
            try:
                async with self._backend.stream(prompt) as batches:
                    # Made ready while the model begins.
                    reading = self._reading = self._new_reading(attempt, prompt)
                    async for batch in batches:
                        answered = True
                        if events := await self._offload.received(reading.receive, batch):
                            yield events
                        if (stop := reading.end.stop) and not self._let_end(stop, prompt):
                            self._report.interrupted = stop.reason
                            break
                break
            except BackendError as error:
                reading = self._reading = reading or self._new_reading(attempt, prompt)
                if (stop := reading.end.stop) and stop.winds_down:
                    # The client has all that it asked for.
                    self._report.interrupted = stop.reason
                    break
                # Only what was refused before the first word may be asked once more: the client may have seen some.
                if not answered and self._prompts.ease(prompt, error):
                    prompt.continuation.settle(None)
                    prompt = await self._ask(attempt.again)
                else:
                    failure = error.without_trace()
        finish = partial(self._reading.finish, failure)
        if events := await self._offload.done(finish, self._spent.characters, judges=True):
            yield events
        # Of an answer that failed nobody knows what it has cost.
        if failure is None:
            self._spent.end(prompt)


async def run_turn(
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
    characters = characters_sent(request.transcript, request.registry)

    def begin() -> Turn:
        return Turn(Plan.of(request, options, report), backend, report, mint=mint, characters=characters)

    try:
        turn = await options.offload(request.owner, begin) if is_long(request, characters) else begin()
    except RequestError as error:
        yield [TurnFailed(error)]
        return
    plain = request.output_format is None
    try:
        async with aclosing(turn.run()) as batches:
            async for batch in batches:
                if events := batch if plain else await turn.parsable(batch):
                    turn.lane_end.note(events, turn.said)
                    yield events
    finally:
        turn.lane_end.settle("left")
