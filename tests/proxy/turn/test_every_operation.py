"""The n-th operation of the backend fails, or the turn is cancelled at it: one end, and no stream left open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Self

import pytest

from parser import Tool, ToolRegistry, write_call
from prompts import ChoiceMode, Text, ToolChoice, Transcript, UserTurn
from proxy.contracts import (
    BackendEvent,
    Health,
    Load,
    MessageEnded,
    Model,
    Prompt,
    ToolCallEnded,
    ToolCallStarted,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    TurnFinished,
    TurnRequest,
)
from proxy.errors import BackendError
from proxy.turn import CallRelease, TurnReport, run_turn
from tests.proxy.turn.playing import keyless_model
from tests.support.memory_backend import pieces
from tests.support.virtual_clock import on_a_virtual_clock

TOOLS = ToolRegistry([Tool("read_note", "Read a note.", '{"type":"object"}')])
CALL = write_call("read_note", '{"path": "a.md"}')
BROKEN = '<tool_call>{"name": "read_note", "arguments": [1}}</tool_call>'

# What the model answers, asked once and more often.
ANSWERS: Mapping[str, Sequence[str]] = {
    "text": ["Hello there."],
    "a call": ["I look.\n" + CALL],
    "two calls of which one was asked for": [CALL + "\n" + CALL],
    "a block that cannot be read": [BROKEN, "Then " + CALL],
    "a block that can never be read": [BROKEN, BROKEN],
    "a call of an undeclared tool": [write_call("rm", "{}"), "In words, then."],
}


@dataclass
class Backend:
    """Counts every wait of a turn; the `fail_at`th fails."""

    answers: list[str]
    fail_at: int | None = None
    operations: int = 0
    open: int = 0
    prompts: list[Prompt] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        pass

    async def _operation(self) -> None:
        self.operations += 1
        await asyncio.sleep(0)
        if self.operations == self.fail_at:
            raise BackendError("gone", code="backend_disconnected")

    @asynccontextmanager
    async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
        await self._operation()
        self.prompts.append(prompt)
        self.open += 1
        try:
            yield self._batches(self.answers.pop(0) if self.answers else "Well.")
        finally:
            self.open -= 1

    async def _batches(self, answer: str) -> AsyncIterator[Sequence[BackendEvent]]:
        events: list[BackendEvent] = [*pieces(answer, 7), MessageEnded(), TurnEnded(None)]
        for event in events:
            await self._operation()
            yield [event]
        await self._operation()

    def heeds(self, model: str) -> frozenset[str]:
        return frozenset()

    takes_items: bool = True
    keeps_conversations: bool = False

    def holds(self, schema: str) -> bool:
        return False

    async def models(self) -> Sequence[Model]:
        return []

    async def health(self) -> Health:
        return Health(None)

    def load(self) -> Load:
        return Load(self.open)


def request(answers: str) -> TurnRequest:
    transcript = Transcript((UserTurn((Text("What is in a.md?"),)),))
    return TurnRequest("m", transcript, TOOLS, ToolChoice(ChoiceMode.AUTO), parallel="one was asked" not in answers)


async def read(backend: Backend, answers: str, release: CallRelease) -> list[TurnEvent]:
    events: list[TurnEvent] = []
    async with aclosing(run_turn(request(answers), backend, keyless_model(release=release), TurnReport())) as turn:
        async for batch in turn:
            events += batch
    return events


def check(events: Sequence[TurnEvent], whole: Sequence[TurnEvent]) -> None:
    """One end, which is the last; every call that began has ended, and none is there twice."""
    ends = [event for event in events if isinstance(event, TurnFinished | TurnFailed)]
    assert ends == [events[-1]]
    begun = [event for event in events if isinstance(event, ToolCallStarted)]
    assert len(begun) == len([event for event in events if isinstance(event, ToolCallEnded)])
    assert len(begun) <= len([event for event in whole if isinstance(event, ToolCallStarted)])
    assert len({call.call_id for call in begun}) == len(begun)


@pytest.mark.parametrize("release", list(CallRelease))
@pytest.mark.parametrize("answers", ANSWERS)
def test_whichever_operation_fails_the_turn_has_one_end(answers: str, release: CallRelease) -> None:
    undisturbed = Backend(list(ANSWERS[answers]))
    whole: list[TurnEvent] = []

    @on_a_virtual_clock
    async def run_undisturbed() -> None:
        whole.extend(await read(undisturbed, answers, release))

    run_undisturbed()
    check(whole, whole)
    for n in range(1, undisturbed.operations + 1):
        backend = Backend(list(ANSWERS[answers]), fail_at=n)

        @on_a_virtual_clock
        async def run(backend: Backend = backend) -> None:
            events = await read(backend, answers, release)
            check(events, whole)
            assert backend.open == 0

        run()


@pytest.mark.parametrize("answers", ANSWERS)
def test_wherever_the_turn_is_cancelled_no_stream_stays_open(answers: str) -> None:
    finished = False
    step = 0
    while not finished:
        backend = Backend(list(ANSWERS[answers]))

        @on_a_virtual_clock
        async def run(backend: Backend = backend, step: int = step) -> None:
            nonlocal finished
            async with asyncio.TaskGroup() as group:
                turn = group.create_task(read(backend, answers, CallRelease.WHOLE))
                for _ in range(step):
                    await asyncio.sleep(0)
                finished = turn.done()
                turn.cancel()
            assert backend.open == 0

        run()
        step += 1
    assert step > 5
