"""What the span of a turn says in names and numbers. No word of a prompt or an answer, as in the log.

`gen_ai.*` is named by https://github.com/open-telemetry/semantic-conventions-genai, and `tagcall.*` by us.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from ...contracts import TurnFailed, TurnFinished, TurnRequest
from ...turn import TurnReport, sentence_of
from ..request_log import RequestLog

Attributes: TypeAlias = Mapping[str, str | bool | int | float | list[str]]

# Of a turn's usage -> as the conventions name it.
TOKENS = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
}
# Why an answer was cut -> as the conventions say it.
CUT = {"max_output_tokens": "length", "content_filter": "content_filter"}


def asked_for(entry: RequestLog, asked: TurnRequest, provider: str, response: str) -> Attributes:
    """What is known before the turn begins."""
    given = {
        "gen_ai.request.max_tokens": asked.max_output_tokens,
        "gen_ai.request.temperature": asked.sampling.temperature,
        "gen_ai.request.top_p": asked.sampling.top_p,
        "gen_ai.request.seed": asked.sampling.seed,
        "gen_ai.request.stream": asked.streamed or None,
        "gen_ai.output.type": "json" if asked.output_format else None,
        "tagcall.client": entry.client or None,
        "tagcall.key": entry.asker or None,
    }
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": asked.model,
        "gen_ai.response.id": response,
        "tagcall.path": entry.route,
        "tagcall.request.id": entry.id,
        **{name: value for name, value in given.items() if value is not None},
    }


def came_of_it(entry: RequestLog, model: str, end: TurnFinished | TurnFailed | None, first: float | None) -> Attributes:
    """What is known once it is over. `end` None: its client has left, or it was ended. `first` is when the first of its
    answer was made, in seconds from its begin.
    """
    report, error = entry.turn, entry.failed
    told: dict[str, str | bool | int | float | list[str]] = {
        "gen_ai.response.model": model,
        "tagcall.outcome": _outcome(entry, end),
        "tagcall.reasons": [str(reason) for reason in report.reasons],  # older SDKs take no subclass of `str` in a list
        "tagcall.calls": list(report.calls),
        "tagcall.tools": len(report.tools),
        "tagcall.attempts": report.attempt + 1,
    }
    if said := sentence_of(report, answered=isinstance(end, TurnFinished)):
        told["tagcall.said"] = said
    if isinstance(end, TurnFinished):
        told |= {theirs: getattr(end.usage, ours) for ours, theirs in TOKENS.items()}
    if end is not None:
        told["gen_ai.response.finish_reasons"] = [finish_reason(end, report)]
    if first is not None:
        told["gen_ai.response.time_to_first_chunk"] = first
    if error is not None:
        told["error.type"] = error.code or error.type
    return told


def _outcome(entry: RequestLog, end: TurnFinished | TurnFailed | None) -> str:
    if entry.failed is not None:
        return "failed"
    if not isinstance(end, TurnFinished):
        return "left"
    return "done" if end.incomplete is None else "incomplete"


def finish_reason(end: TurnFinished | TurnFailed, report: TurnReport) -> str:
    """In the words of the conventions."""
    if isinstance(end, TurnFailed):
        return "error"
    if end.incomplete is not None:
        return CUT.get(end.incomplete, end.incomplete)
    return "tool_call" if report.calls else "stop"
