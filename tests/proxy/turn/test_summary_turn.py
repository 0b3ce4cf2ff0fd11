"""A turn whose conversation is made short, before its answer or in its place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager

import pytest
from msgspec.structs import replace

from parser import Tool, ToolRegistry
from prompts import (
    AssistantText,
    ChoiceMode,
    Entry,
    Guidance,
    Image,
    Text,
    ToolChoice,
    Transcript,
    UserTurn,
    compaction_request,
)
from proxy.contracts import (
    AnswerText,
    BackendEvent,
    Compacted,
    Compaction,
    Lane,
    MessageEnded,
    OutputFormat,
    Prompt,
    TextPiece,
    ToolCallArguments,
    ToolCallEnded,
    ToolCallStarted,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    TurnFinished,
    TurnRequest,
    Usage,
)
from proxy.errors import BackendError
from proxy.turn import CallKeys, KeyMode, TurnOptions, TurnReport, answer_request
from proxy.turn.summary_turn import NOT_COMPACTED, OLDEST_LEFT_OUT
from tests.proxy.turn.playing import keyless_model
from tests.support.memory_backend import USAGE, MemoryBackend, Script
from tests.support.parts import text_of_parts
from tests.support.patience import PATIENCE
from tests.support.talking import GatedBackend

from .playing import READ_A, TOOLS

SPOKEN = Transcript((UserTurn((Text("Hello " * 400),)), AssistantText("Hi."), UserTurn((Text("Go on."),))))
AT_ONCE, OVER_ANY = Compaction(), Compaction(1)
TOO_LONG = BackendError("Too long.", status=400, code="context_length_exceeded")


def asked(compaction: Compaction, tools: ToolRegistry = TOOLS) -> TurnRequest:
    return TurnRequest("m", SPOKEN, tools, ToolChoice(), compaction=compaction)


class InALane(MemoryBackend):
    """Finds each conversation in a lane."""

    @asynccontextmanager
    async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
        prompt.continuation.lane = LANE
        async with super().stream(prompt) as batches:
            yield batches


LANE = Lane(continued=True, why="continued")


async def events_of(
    request: TurnRequest, *answers: Script, options: TurnOptions | None = None
) -> tuple[list[TurnEvent], MemoryBackend, TurnReport]:
    backend, report = InALane(list(answers)), TurnReport()
    events: list[TurnEvent] = []
    turn = answer_request(request, backend, options or keyless_model(), report, mint=lambda prefix: f"{prefix}_1")
    async with aclosing(turn) as batches:
        async for batch in batches:
            events += batch
    assert not backend.answers
    return events, backend, report


async def test_a_summary_is_asked_for_with_the_tools_that_the_backend_holds_already() -> None:
    _, backend, _ = await events_of(asked(AT_ONCE), "The sum.")
    (prompt,) = backend.prompts
    assert "read_note" in (prompt.developer or "")
    assert text_of_parts(prompt.parts).endswith(compaction_request().splitlines()[-1])


async def test_a_model_that_calls_a_tool_is_asked_for_its_summary_without_tools() -> None:
    events, backend, _ = await events_of(asked(AT_ONCE), f"I will look.\n{READ_A}", "The sum.")
    assert events == [Compacted("The sum.", whole=False), TurnFinished(USAGE + USAGE)]
    assert "read_note" not in (backend.prompts[1].developer or "")


async def test_the_answer_behind_a_summary_costs_both() -> None:
    events, backend, report = await events_of(asked(OVER_ANY), "The sum.", "Done.")
    assert events == [Compacted("The sum.", whole=True), AnswerText("Done."), TurnFinished(USAGE + USAGE)]
    assert "Hello" not in text_of_parts(backend.prompts[-1].parts)
    assert report.warnings == []


async def test_what_a_summary_cost_that_did_not_come_is_counted_and_told() -> None:
    cut: Script = [TextPiece("The s"), TurnEnded(Usage(7, 0, 7), "max_output_tokens")]
    events, _, report = await events_of(asked(OVER_ANY), cut, "Done.")
    assert events[-1] == TurnFinished(USAGE + Usage(7, 0, 7))
    assert report.warnings == [NOT_COMPACTED]


async def test_of_a_conversation_that_is_too_long_the_newer_part_is_summed_up() -> None:
    events, backend, report = await events_of(asked(AT_ONCE, ToolRegistry()), TOO_LONG, "The sum.")
    assert events[0] == Compacted("The sum.", whole=False)
    assert "Hello" not in text_of_parts(backend.prompts[-1].parts)
    assert (report.conversation.truncated, report.warnings) == (2, [OLDEST_LEFT_OUT])
    assert (report.conversation.lane, report.conversation.spoilt) == (LANE, None)


async def test_before_an_answer_too_and_that_is_told_without_being_counted_as_its_own() -> None:
    events, _, report = await events_of(asked(OVER_ANY, ToolRegistry()), TOO_LONG, "The sum.", "Done.")
    assert events[0] == Compacted("The sum.", whole=True)
    assert (report.conversation.truncated, report.warnings) == (0, [OLDEST_LEFT_OUT])


async def test_messages_of_a_summary_are_paragraphs_of_it() -> None:
    first = [TextPiece(text) for text in ("\n", "The ", "sum.")]
    written: Script = [*first, MessageEnded(), TextPiece("The rest."), MessageEnded(), TurnEnded(USAGE)]
    events, _, _ = await events_of(asked(AT_ONCE), written)
    assert events == [Compacted("The sum.\n\nThe rest.", whole=False), TurnFinished(USAGE)]


CUT: Script = [TextPiece("The s"), TurnEnded(USAGE, "max_output_tokens")]


@pytest.mark.parametrize(
    ("written", "code", "message"),
    [
        ("", "summary_missing", "The model wrote no summary."),
        (CUT, "summary_missing", "The summary of the conversation was cut: max_output_tokens."),
        (BackendError("Gone.", code="gone"), "gone", "Gone."),
    ],
)
async def test_a_summary_that_does_not_come_is_a_failure_where_nothing_else_is_wanted(
    written: Script, code: str, message: str
) -> None:
    events, _, report = await events_of(asked(AT_ONCE), written)
    assert [(event.error.code, event.error.message) for event in events if isinstance(event, TurnFailed)] == [
        (code, message)
    ]
    assert (len(events), report.warnings) == (1, [])
    events, _, report = await events_of(asked(OVER_ANY), written, "Done.")
    assert AnswerText("Done.") in events
    assert report.warnings == [NOT_COMPACTED]


async def test_limits_and_forms_are_those_of_the_answer_and_not_of_a_summary() -> None:
    """Instructions are those of both, and so is which tools may be called."""
    request = replace(
        asked(AT_ONCE),
        transcript=replace(SPOKEN, instructions="Be brief."),
        choice=ToolChoice(ChoiceMode.REQUIRED, ("read_note",)),
        output_format=OutputFormat('{"type":"object"}'),
        max_output_tokens=1,
        stop=("sum",),
        repairs={"orphan": 2},
    )
    options = TurnOptions(call_keys=CallKeys(KeyMode.OFF))
    events, backend, report = await events_of(request, READ_A, "The sum.", options=options)
    assert events[0] == Compacted("The sum.", whole=False)
    assert report.counts["paired"] == {"orphan": 2}
    told = [(prompt.max_tokens, prompt.stop, prompt.output_schema) for prompt in backend.prompts]
    assert told == [(None, (), None)] * 2
    free = replace(request, choice=ToolChoice(names=("read_note",)), output_format=None, compaction=None)
    _, holder, _ = await events_of(free, "Hi.", options=options)
    assert [prompt.developer for prompt in backend.prompts] == [holder.prompts[0].developer, "Be brief."]
    last_line = compaction_request().splitlines()[-1]
    assert all(text_of_parts(prompt.parts).endswith(last_line) for prompt in backend.prompts)


async def test_an_answer_behind_a_summary_leaves_whole() -> None:
    request = replace(asked(OVER_ANY), choice=ToolChoice(ChoiceMode.REQUIRED))
    events, _, report = await events_of(request, "The sum.", READ_A)
    assert events == [
        Compacted("The sum.", whole=True),
        ToolCallStarted("call_1", "read_note"),
        ToolCallArguments('{"path": "a.md"}'),
        ToolCallEnded(),
        TurnFinished(USAGE + USAGE),
    ]
    assert report.calls == ["read_note"]
    request = replace(asked(OVER_ANY), output_format=OutputFormat())
    events, _, _ = await events_of(request, "The sum.", "{}")
    assert events == [Compacted("The sum.", whole=True), AnswerText("{}"), TurnFinished(USAGE + USAGE)]
    events, _, _ = await events_of(asked(OVER_ANY), "The sum.", CUT)
    assert events[-1] == TurnFinished(USAGE + USAGE, "max_output_tokens")


@pytest.mark.parametrize("compaction", [None, Compaction(10_000)])
async def test_where_nothing_is_to_be_shortened_there_is_the_turn_alone(compaction: Compaction | None) -> None:
    request = replace(asked(AT_ONCE), compaction=compaction, warnings=("A.", "B."))
    events, _, report = await events_of(request, READ_A)
    assert events[0] == ToolCallStarted("call_1", "read_note")
    assert events[-1] == TurnFinished(USAGE)
    assert (report.calls, report.warnings) == (["read_note"], ["A.", "B."])


IMAGE = UserTurn((Text("Look:"), Image("data:image/png;base64,AAAA")))
SHORT: tuple[Entry, ...] = (UserTurn((Text("Hello."),)), AssistantText("Hi there."))


@pytest.mark.parametrize(
    ("entries", "instructions", "tools", "choice", "tokens"),
    [
        (SHORT, None, ToolRegistry(), ToolChoice(), 0),
        ((Guidance("Be brief."), *SHORT), None, ToolRegistry(), ToolChoice(), 0),
        ((*SHORT, UserTurn((Text("\u00e4\u6f22" * 9),))), "Be brief.", ToolRegistry(), ToolChoice(), 0),
        ((*SHORT, IMAGE, IMAGE), "Be brief.", ToolRegistry(), ToolChoice(), 2_000),
        (SHORT, None, ToolRegistry([*TOOLS, Tool("put")]), ToolChoice(names=("search", "put")), 0),
    ],
)
async def test_a_conversation_is_shortened_from_the_first_token_above_the_threshold(
    entries: tuple[Entry, ...], instructions: str | None, tools: ToolRegistry, choice: ToolChoice, tokens: int
) -> None:
    """Four bytes of what the model would be shown are a token, an image is a thousand."""
    options = TurnOptions(call_keys=CallKeys(KeyMode.OFF))
    request = TurnRequest("m", Transcript(entries, instructions), tools, choice)
    _, backend, _ = await events_of(request, "Done.", options=options)
    [prompt] = backend.prompts
    tokens += len(f"{prompt.developer or ''}{text_of_parts(prompt.parts)}".encode()) // 4
    events, _, _ = await events_of(replace(request, compaction=Compaction(tokens)), "Done.", options=options)
    assert events[0] == AnswerText("Done.")
    shorter = replace(request, compaction=Compaction(tokens - 1))
    events, _, _ = await events_of(shorter, "The sum.", "Done.", options=options)
    assert events[0] == Compacted("The sum.", whole=True)


async def test_of_one_message_there_is_nothing_to_shorten() -> None:
    entries = Guidance("Be brief."), UserTurn((Text("Hello " * 400),))
    events, _, _ = await events_of(replace(asked(OVER_ANY), transcript=Transcript(entries)), "Done.")
    assert events[0] == AnswerText("Done.")


@pytest.mark.parametrize("compaction", [AT_ONCE, OVER_ANY])
async def test_who_leaves_during_the_summary_ends_the_turn_of_the_backend(compaction: Compaction) -> None:
    backend = GatedBackend(["The sum."])
    batches = answer_request(asked(compaction), backend, keyless_model(), TurnReport())
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        waiting = group.create_task(anext(batches), name="who waits for the first events")
        await backend.asked.wait()
        waiting.cancel()
        await backend.left.wait()
    await batches.aclose()
    assert backend.open_turns == 0
