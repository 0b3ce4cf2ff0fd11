"""`answer_request`: a turn, and the summary of the conversation that comes before it, or in its place.

    at once       summary -> Compacted, finished
    a threshold   the prompt is longer: summary -> Compacted, then the turn on what is left
                  no summary came of it: a warning, and the turn on the whole conversation
    else          the turn

A summary is a turn of its own, without tools and without a format. The client sees nothing of it but what it became,
and its usage.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace

from parser import ToolRegistry
from prompts import ChoiceMode, Guidance, Image, ToolChoice, Transcript, compacted, offered_tools, to_sum_up

from ..contracts import (
    AnswerText,
    Compacted,
    Prompt,
    TextBackend,
    TurnEvent,
    TurnFailed,
    TurnFinished,
    TurnRequest,
    Usage,
)
from ..errors import BackendError
from ..ids import MintId, mint_id
from .prompting import Prompts
from .report import TurnReport
from .run import TurnOptions, run_turn
from .tokens import IMAGE_TOKENS

# Of UTF-8: about a token of English, of code and of Chinese alike. A meter would look at each word of a long text.
BYTES_PER_TOKEN = 4

NOT_COMPACTED = "The conversation was not compacted: no summary of it came."

Batches = AsyncGenerator[list[TurnEvent], None]


def answer_request(
    request: TurnRequest,
    backend: TextBackend,
    options: TurnOptions,
    report: TurnReport,
    *,
    mint: MintId = mint_id,
) -> Batches:
    """The events of what `request` asks for, as `run_turn` has them."""

    def run(asked: TurnRequest, into: TurnReport) -> Batches:
        return run_turn(asked, backend, options, into, mint=mint)

    compaction = request.compaction
    if compaction is None:
        return run(request, report)
    if compaction.threshold is None:
        return _only_summary(request, report, run)
    if not _is_longer(request, compaction.threshold, options):
        return run(request, report)
    return _summary_first(request, report, run)


async def _only_summary(
    request: TurnRequest, report: TurnReport, run: Callable[[TurnRequest, TurnReport], Batches]
) -> Batches:
    summary = _Summary()
    await summary.read(run(_summing_up(request), report))
    if isinstance(summary.end, TurnFinished):
        yield [Compacted(summary.text, whole=False), summary.end]
    else:
        yield [summary.end]


async def _summary_first(
    request: TurnRequest, report: TurnReport, run: Callable[[TurnRequest, TurnReport], Batches]
) -> Batches:
    summary, transcript = _Summary(), request.transcript
    # What becomes of it says nothing of the answer.
    await summary.read(run(_summing_up(request), TurnReport()))
    spent = Usage()
    if isinstance(summary.end, TurnFinished):
        entries = compacted(transcript.entries, summary.text, whole=True)
        request, spent = replace(request, transcript=replace(transcript, entries=entries)), summary.end.usage
        yield [Compacted(summary.text, whole=True)]
    else:
        report.warn(NOT_COMPACTED)
    async with aclosing(run(request, report)) as batches:
        async for batch in batches:
            yield [*batch[:-1], _with_usage(batch[-1], spent)]


def _with_usage(event: TurnEvent, spent: Usage) -> TurnEvent:
    return replace(event, usage=event.usage + spent) if isinstance(event, TurnFinished) else event


def _summing_up(request: TurnRequest) -> TurnRequest:
    """The turn whose answer is the summary."""
    return replace(
        request,
        transcript=Transcript(to_sum_up(request.transcript.entries), request.transcript.instructions),
        registry=ToolRegistry(),
        choice=ToolChoice(ChoiceMode.NONE),
        output_format=None,
        max_output_tokens=None,
        stop=(),
        compaction=None,
    )


class _Summary:
    """What the model wrote for one, and how it ended: a cut summary is none."""

    def __init__(self) -> None:
        self.text = ""
        self.end: TurnFinished | TurnFailed = TurnFailed(_no_summary("The model wrote no summary."))

    async def read(self, turn: Batches) -> None:
        pieces: list[str] = []
        async with aclosing(turn) as batches:
            async for batch in batches:
                for event in batch:
                    match event:
                        case AnswerText(text):
                            pieces.append(text)
                        case TurnFinished(_, incomplete) if incomplete is not None:
                            self.end = TurnFailed(
                                _no_summary(f"The summary of the conversation was cut: {incomplete}.")
                            )
                        case TurnFinished() | TurnFailed():
                            self.end = event
                        case _:
                            pass
        self.text = "".join(pieces).strip()
        if isinstance(self.end, TurnFinished) and not self.text:
            self.end = TurnFailed(_no_summary("The model wrote no summary."))


def _no_summary(message: str) -> BackendError:
    return BackendError(message, code="summary_missing")


def _is_longer(request: TurnRequest, threshold: int, options: TurnOptions) -> bool:
    """Whether the prompt has more tokens than that, and a summary would make it shorter."""
    if sum(not isinstance(entry, Guidance) for entry in request.transcript.entries) < 2:
        return False
    offered = offered_tools(request.registry, request.choice)
    prompt = Prompts(request, offered, options.profile, None, TurnReport()).prompt(None, plain=False)
    return _estimated_tokens(prompt) > threshold


def _estimated_tokens(prompt: Prompt) -> int:
    texts = [prompt.developer or "", *(part.text for part in prompt.parts if not isinstance(part, Image))]
    images = sum(isinstance(part, Image) for part in prompt.parts)
    return sum(len(text.encode()) for text in texts) // BYTES_PER_TOKEN + images * IMAGE_TOKENS
