"""`answer_request`: a turn, and the summary of the conversation that comes before it, or in its place.

    at once       summary -> Compacted, finished
    a threshold   the prompt is longer: summary -> Compacted, then the turn on what is left
                  no summary came of it: a warning, and the turn on the whole conversation
    else          the turn

A summary is a turn of its own. The client sees only the result and the usage. If the model calls a tool instead of
writing a summary, it is asked once more, without tools.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing

from msgspec import Struct
from msgspec.structs import replace

from parser import ToolRegistry
from prompts import Guidance, Image, ToolChoice, Transcript, compacted, offered_tools, to_sum_up

from ..contracts import (
    AnswerMessageEnded,
    AnswerText,
    Compacted,
    Prompt,
    TextBackend,
    ToolCallStarted,
    TurnEvent,
    TurnFailed,
    TurnFinished,
    TurnRequest,
    Usage,
)
from ..errors import BackendError, ModelError
from ..ids import MintId, mint_id
from ..tokens import IMAGE_TOKENS
from .plan import Plan, TurnOptions
from .prompting import Prompts
from .report import Count, TurnReport
from .run import run_turn

# Of UTF-8: about a token of English, of code and of Chinese alike. A meter would look at each word of a long text.
BYTES_PER_TOKEN = 4

NOT_COMPACTED = "The conversation was not compacted: no summary of it came."
OLDEST_LEFT_OUT = "The oldest part of the conversation is not in its summary: it was too long for the model."

Batches = AsyncGenerator[list[TurnEvent], None]
Run = Callable[[TurnRequest, TurnReport], Batches]


def answer_request(
    request: TurnRequest,
    backend: TextBackend,
    options: TurnOptions,
    report: TurnReport,
    *,
    mint: MintId = mint_id,
) -> Batches:
    """The events of what `request` asks for, as `run_turn` has them."""

    for sentence in request.warnings:
        report.warn(sentence)

    def run(asked: TurnRequest, into: TurnReport) -> Batches:
        return run_turn(asked, backend, options, into, mint=mint)

    asked = request.compaction
    if asked is None or (asked.threshold is not None and not _is_longer(request, asked.threshold, options)):
        return run(request, report)
    return _summed_up(request, report, run, alone=asked.threshold is None)


async def _summed_up(request: TurnRequest, report: TurnReport, run: Run, *, alone: bool) -> Batches:
    """A summary `alone`, or the turn on what it leaves of the conversation."""
    summary = await _summary_of(request, run)
    if summary.failure is None and summary.report.conversation.truncated:
        report.warn(OLDEST_LEFT_OUT)
    if alone:
        report.conversation = summary.report.conversation
        report.counts[Count.PAIRED].update(request.repairs)
        if summary.failure is not None:
            yield [summary.failure]
        else:
            yield [Compacted(summary.text, whole=False), TurnFinished(summary.usage)]
        return
    if summary.failure is None:
        entries = compacted(request.transcript.entries, summary.text, whole=True)
        request = replace(request, transcript=replace(request.transcript, entries=entries))
        yield [Compacted(summary.text, whole=True)]
    else:
        report.warn(NOT_COMPACTED)
    async with aclosing(run(request, report)) as batches:
        async for batch in batches:
            if isinstance(end := batch[-1], TurnFinished):
                batch[-1] = replace(end, usage=end.usage + summary.usage)
            yield batch


class _Summary(Struct, frozen=True):
    """What the model wrote for one. `usage` is that of all attempts, `report` that of the last."""

    text: str
    usage: Usage
    failure: TurnFailed | None
    report: TurnReport


async def _summary_of(request: TurnRequest, run: Run) -> _Summary:
    """Asks for it with the tools as they are, so that the backend can go on from what it holds, and then without."""
    text, used, fault, report = "", Usage(), None, TurnReport()
    for attempt in _attempts(request):
        report = TurnReport()
        async with aclosing(run(attempt, report)) as batches:
            events = [event async for batch in batches for event in batch]
        if isinstance(end := events[-1], TurnFinished):
            used += end.usage
        text = "" if report.answered_nothing else "".join(map(_text_in, events)).strip()
        fault = _fault(text, end)
        misfit = fault is not None and isinstance(fault.error, ModelError)
        called = report.counts[Count.REFUSED] or any(isinstance(event, ToolCallStarted) for event in events)
        # Where there is no tool it may do better.
        if not (misfit or called):
            break
    return _Summary(text, used, fault, report)


def _text_in(event: TurnEvent) -> str:
    return event.text if isinstance(event, AnswerText) else "\n\n" if isinstance(event, AnswerMessageEnded) else ""


def _fault(text: str, end: TurnEvent) -> TurnFailed | None:
    match end:
        case TurnFailed():
            return end
        case TurnFinished(_, str(incomplete)):
            message = f"The summary of the conversation was cut: {incomplete}."
        case _ if not text:
            message = "The model wrote no summary."
        case _:
            return None
    return TurnFailed(BackendError(message, code="summary_missing"))


def _attempts(request: TurnRequest) -> Iterator[TurnRequest]:
    plain = replace(
        request,
        transcript=Transcript(to_sum_up(request.transcript.entries), request.transcript.instructions),
        registry=ToolRegistry(),
        output_format=None,
        max_output_tokens=None,
        stop=(),
        truncate=True,  # else a conversation that has become too long could never be made shorter
    )
    if len(offered_tools(request.registry, request.choice)):
        yield replace(plain, registry=request.registry, choice=ToolChoice(names=request.choice.names))
    yield plain


def _is_longer(request: TurnRequest, threshold: int, options: TurnOptions) -> bool:
    """Whether the prompt has more tokens than that, and a summary would make it shorter."""
    if sum(not isinstance(entry, Guidance) for entry in request.transcript.entries) < 2:
        return False
    prompt = Prompts(Plan.to_measure(request, options.profile), TurnReport()).prompt()
    return _estimated_tokens(prompt) > threshold


def _estimated_tokens(prompt: Prompt) -> int:
    texts = [prompt.developer or "", *(part.text for part in prompt.parts if not isinstance(part, Image))]
    images = sum(isinstance(part, Image) for part in prompt.parts)
    return sum(len(text.encode()) for text in texts) // BYTES_PER_TOKEN + images * IMAGE_TOKENS
