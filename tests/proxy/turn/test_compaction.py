"""A turn whose conversation is made short, before its answer or in its place."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from parser import ToolRegistry
from prompts import AssistantText, Text, ToolChoice, Transcript, UserTurn, compaction_request
from proxy.contracts import (
    AnswerText,
    Compacted,
    Compaction,
    Prompt,
    TextPiece,
    TurnEnded,
    TurnEvent,
    TurnFinished,
    TurnRequest,
    Usage,
)
from proxy.errors import BackendError
from proxy.turn import TurnOptions, TurnReport, answer_request
from proxy.turn.compaction import NOT_COMPACTED, OLDEST_LEFT_OUT
from tests.support.memory_backend import USAGE, MemoryBackend, Script
from tests.support.patience import PATIENCE
from tests.support.talking import GatedBackend

from .playing import READ_A, TOOLS

SPOKEN = Transcript((UserTurn((Text("Hello " * 400),)), AssistantText("Hi."), UserTurn((Text("Go on."),))))
AT_ONCE, OVER_ANY = Compaction(), Compaction(1)
TOO_LONG = BackendError("Too long.", status=400, code="context_length_exceeded")


def asked(compaction: Compaction, tools: ToolRegistry = TOOLS) -> TurnRequest:
    return TurnRequest("m", SPOKEN, tools, ToolChoice(), compaction=compaction)


async def events_of(request: TurnRequest, *answers: Script) -> tuple[list[TurnEvent], MemoryBackend, TurnReport]:
    backend, report = MemoryBackend(list(answers)), TurnReport()
    events: list[TurnEvent] = []
    async with aclosing(answer_request(request, backend, TurnOptions(), report)) as batches:
        async for batch in batches:
            events += batch
    assert not backend.answers
    return events, backend, report


def text_of(prompt: Prompt) -> str:
    return "".join(part.text for part in prompt.parts if isinstance(part, Text))


async def test_a_summary_is_asked_for_with_the_tools_that_the_backend_holds_already() -> None:
    _, backend, _ = await events_of(asked(AT_ONCE), "The sum.")
    (prompt,) = backend.prompts
    assert "read_note" in (prompt.developer or "")
    assert text_of(prompt).endswith(compaction_request().splitlines()[-1])


async def test_a_model_that_calls_a_tool_is_asked_for_its_summary_without_tools() -> None:
    events, backend, _ = await events_of(asked(AT_ONCE), f"I will look.\n{READ_A}", "The sum.")
    assert events == [Compacted("The sum.", whole=False), TurnFinished(USAGE + USAGE)]
    assert "read_note" not in (backend.prompts[1].developer or "")


async def test_the_answer_behind_a_summary_costs_both() -> None:
    events, backend, report = await events_of(asked(OVER_ANY), "The sum.", "Done.")
    assert events[0] == Compacted("The sum.", whole=True)
    assert AnswerText("Done.") in events
    assert events[-1] == TurnFinished(USAGE + USAGE)
    assert "Hello" not in text_of(backend.prompts[-1])
    assert report.warnings == []


async def test_what_a_summary_cost_that_did_not_come_is_counted_and_told() -> None:
    cut: Script = [TextPiece("The s"), TurnEnded(Usage(7, 0, 7), "max_output_tokens")]
    events, _, report = await events_of(asked(OVER_ANY), cut, "Done.")
    assert events[-1] == TurnFinished(USAGE + Usage(7, 0, 7))
    assert report.warnings == [NOT_COMPACTED]


async def test_of_a_conversation_that_is_too_long_the_newer_part_is_summed_up() -> None:
    events, backend, report = await events_of(asked(AT_ONCE, ToolRegistry()), TOO_LONG, "The sum.")
    assert events[0] == Compacted("The sum.", whole=False)
    assert "Hello" not in text_of(backend.prompts[-1])
    assert (report.truncated, report.warnings) == (2, [OLDEST_LEFT_OUT])


@pytest.mark.parametrize("compaction", [AT_ONCE, OVER_ANY])
async def test_who_leaves_during_the_summary_ends_the_turn_of_the_backend(compaction: Compaction) -> None:
    backend = GatedBackend(["The sum."])
    batches = answer_request(asked(compaction), backend, TurnOptions(), TurnReport())
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        waiting = group.create_task(anext(batches), name="who waits for the first events")
        await backend.asked.wait()
        waiting.cancel()
        await backend.left.wait()
    await batches.aclose()
    assert backend.open_turns == 0
