"""A question that wants one tool call. Only the answer shows whether tools work. `doctor` and the page ask it."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing

from parser import Tool, ToolRegistry
from prompts import ChoiceMode, Text, ToolChoice, Transcript, UserTurn

from .backends import Finding, as_sentence
from .contracts import TextBackend, ToolCallEnded, TurnFailed, TurnFinished, TurnRequest
from .turn import TurnOptions, TurnReport, run_turn

# Seconds for all of it; a local model may have to be loaded first.
PATIENCE = 120.0

QUESTION = "Read the note welcome.md."
NOTE = "# Welcome\nThe garden opens in May."
TOOL = Tool(
    "read",
    "Read a note.",
    '{"type":"object","properties":{"note":{"type":"string"}},"required":["note"],"additionalProperties":false}',
)

# Why a trial failed, and what helps.
TOO_LATE = f"no answer within {PATIENCE:g} seconds"
# By what cut the answer.
_CUT = {
    "max_output_tokens": "its server cut the answer at a limit of tokens",
    "content_filter": "a content filter cut the answer",
}
USED_UP = "Wait until the quota is renewed, or use another backend."
# By the error's code, or by what cut the answer, what to do; anything else is tried again.
_REMEDIES = {
    "model_not_found": "Name a model that the backend has with --model NAME.",
    "insufficient_quota": USED_UP,
    "rate_limit_exceeded": "Wait a little, then try again.",
    # A trial sets no limit of its own.
    "max_output_tokens": "Raise the server's limit: the size of the context, or the length of an answer. "
    "Or name another model with --model NAME.",
    "newer_codex_required": "Install the newest codex (npm install -g @openai/codex), or name it with --codex PATH, or "
    "another model with --model NAME.",
    "inference_hook_denied": "Ask who runs your workspace: its hook denies these requests.",
    "backend_auth": "Log in again, or give the right key. Another model would not help.",
}


async def trial_turn(backend: TextBackend, model: str, options: TurnOptions) -> Finding:
    """Whether `model` calls a tool; the seconds and tokens that it took."""
    request = TurnRequest(
        model,
        Transcript((UserTurn((Text(QUESTION),)),)),
        ToolRegistry([TOOL]),
        ToolChoice(ChoiceMode.REQUIRED),
    )
    began = time.monotonic()
    called = False
    incomplete: str | None = None
    try:
        async with asyncio.timeout(PATIENCE), aclosing(run_turn(request, backend, options, TurnReport())) as batches:
            async for events in batches:
                for event in events:
                    match event:
                        case ToolCallEnded(complete=True):
                            called = True
                        case TurnFailed(error):
                            return failed(model, error.fault, error.code, remedy=error.remedy)
                        case TurnFinished(usage) if called:
                            return passed(model, time.monotonic() - began, usage.input_tokens, usage.output_tokens)
                        case TurnFinished(incomplete=reason):
                            incomplete = reason
                        case _:
                            pass
    except TimeoutError:
        return failed(model, TOO_LATE)
    return cut(model, incomplete)


def passed(model: str, seconds: float, read: int, written: int) -> Finding:
    return Finding(
        "turn", True, f"{model} called a tool in {seconds:.1f} s ({read:,} tokens read, {written:,} written)"
    )


def cut(model: str, incomplete: str | None) -> Finding:
    """No call of its answer is whole. One that was not cut has failed: a call is demanded."""
    return failed(model, _CUT.get(incomplete or "", "its answer was cut"), incomplete)


def failed(
    model: str, why: str, code: str | None = None, lacks: str = "call a tool", remedy: str | None = None
) -> Finding:
    """`remedy` as an error has it."""
    next_step = _REMEDIES.get(code or "", "Try again, or another model with --model NAME.")
    return Finding("turn", False, f"{model} did not {lacks}: {why}", as_sentence(remedy) if remedy else next_step)
