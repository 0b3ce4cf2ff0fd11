"""One real turn with one tool call, as `doctor` and `setup` have it: what no look from outside can tell."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing

from parser import Tool, ToolRegistry
from prompts import ChoiceMode, Text, ToolChoice, Transcript, UserTurn

from ..backends import Finding
from ..contracts import TextBackend, ToolCallEnded, TurnFailed, TurnFinished, TurnRequest
from ..turn import TurnOptions, TurnReport, run_turn

# Seconds for all of it; a local model may have to be loaded first.
PATIENCE = 120.0

TOOL = Tool(
    "read",
    "Read a note.",
    '{"type":"object","properties":{"note":{"type":"string"}},"required":["note"],"additionalProperties":false}',
)


async def trial_turn(backend: TextBackend, model: str, options: TurnOptions) -> Finding:
    """Whether `model` calls a tool; the seconds and tokens that it took."""
    request = TurnRequest(
        model,
        Transcript((UserTurn((Text("Read the note welcome.md."),)),)),
        ToolRegistry([TOOL]),
        ToolChoice(ChoiceMode.REQUIRED),
    )
    began = time.monotonic()
    called = False
    try:
        async with asyncio.timeout(PATIENCE), aclosing(run_turn(request, backend, options, TurnReport())) as batches:
            async for events in batches:
                for event in events:
                    match event:
                        case ToolCallEnded():
                            called = True
                        case TurnFailed(error):
                            return _failed(model, error.message, error.code)
                        case TurnFinished(usage) if called:
                            said = f"{model} called a tool in {time.monotonic() - began:.1f} s"
                            tokens = f"{usage.input_tokens:,} tokens read, {usage.output_tokens:,} written"
                            return Finding("turn", True, f"{said} ({tokens})")
                        case _:
                            pass
    except TimeoutError:
        return _failed(model, f"no answer within {PATIENCE:g} seconds", None)
    return _failed(model, "it answered without calling the tool", None)


USED_UP = "Wait until the quota is renewed, or use another backend."
# By the error's code, what to do; anything else is tried again.
_REMEDIES = {
    "model_not_found": "Name a model that the backend has with --model NAME.",
    "insufficient_quota": USED_UP,
    "rate_limit_exceeded": "Wait a little, then try again.",
}


def _failed(model: str, why: str, code: str | None) -> Finding:
    remedy = _REMEDIES.get(code or "", "Try again, or another model with --model NAME.")
    return Finding("turn", False, f"{model} did not call a tool: {why}", remedy)
