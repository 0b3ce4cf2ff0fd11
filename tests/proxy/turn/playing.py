"""Playing a turn, or one answer of it, in memory, and views of what left."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

from msgspec.structs import replace

from parser import Tool, ToolRegistry, write_call
from prompts import PROFILES, PromptProfile, Text, ToolChoice, Transcript, UserTurn
from proxy.contracts import (
    AnswerText,
    BackendEvent,
    ToolCallArguments,
    ToolCallStarted,
    TurnEvent,
    TurnFailed,
    TurnFinished,
    TurnRequest,
)
from proxy.errors import ApiError, BackendError
from proxy.schema.declared import ToolSchemas
from proxy.turn import CallKeys, CallRelease, FixedHabit, KeyHabit, Reason, TurnOptions, TurnReport, run_turn
from proxy.turn.calls import CallGate
from proxy.turn.key_habits import Habits, Speaker
from proxy.turn.plan import Attempt, Plan, Try
from proxy.turn.reading import Reading
from proxy.turn.turn_key import KeyMode, TurnKey
from tests.support.memory_backend import MemoryBackend, Script

TOOLS = ToolRegistry([Tool("read_note", "Read a note.", '{"type":"object"}'), Tool("search", "Search.", None)])
READ_A = write_call("read_note", '{"path": "a.md"}')
READ_B = write_call("read_note", '{"path": "b.md"}')
BROKEN = '<tool_call>{"name": "read_note", "arguments": [1}}</tool_call>'
NO_KEY = TurnKey(KeyMode.OFF, None, Speaker("", "m"), Habits())


def ask(text: str = "What is in a.md?", **changes: object) -> TurnRequest:
    request = TurnRequest("m", Transcript((UserTurn((Text(text),)),)), TOOLS, ToolChoice())
    return replace(request, **changes)


def keyless_model(
    release: CallRelease = CallRelease.WHOLE, profile: PromptProfile = PROFILES["frontier"], **more: Any
) -> TurnOptions:
    """Of a server that knows of its model that it never writes the key: so is a script whose calls have none."""
    return TurnOptions(release, profile, CallKeys(habits=FixedHabit(KeyHabit.NEVER)), **more)


def is_small(mode: TurnOptions) -> bool:
    return mode.profile.name == "small"


def planned(
    registry: ToolRegistry = TOOLS,
    *,
    key: TurnKey = NO_KEY,
    release: CallRelease = CallRelease.WHOLE,
    bare_calls: bool = False,
    **changes: Any,
) -> Plan:
    """The plan for a request that is changed so."""
    request, profile = ask(registry=registry, **changes), replace(PROFILES["frontier"], bare_calls=bare_calls)
    return Plan(request, TurnOptions(release, profile), registry, ToolSchemas(registry, lambda why: None), key)


def reading_of(
    plan: Plan | None = None,
    report: TurnReport | None = None,
    *,
    keep_for: Reason | None = None,
    number: Try = Try.FIRST,
    may_repeat: bool = False,
    **how: Any,
) -> Reading:
    plan, numbers = plan or planned(), iter(range(1, 100))
    gate = CallGate(plan, lambda prefix: f"{prefix}_{next(numbers)}")
    attempt = Attempt(number, keep_for=keep_for, may_repeat=may_repeat)
    return Reading(plan, attempt, gate, report or TurnReport(), **how)


def read(reading: Reading, events: Sequence[BackendEvent], error: BackendError | None = None) -> list[TurnEvent]:
    left = [event for backend_event in events for event in reading.receive([backend_event])]
    return left + reading.finish(error)


class Outcome:
    """The events of a turn, and views of them that tests ask for."""

    def __init__(self, events: Sequence[TurnEvent], backend: MemoryBackend, report: TurnReport) -> None:
        self.events = events
        self.backend = backend
        self.report = report

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, AnswerText))

    @property
    def calls(self) -> list[tuple[str, str]]:
        calls: list[tuple[str, str]] = []
        for event in self.events:
            match event:
                case ToolCallStarted(_, name):
                    calls.append((name, ""))
                case ToolCallArguments(text):
                    name, arguments = calls[-1]
                    calls[-1] = (name, arguments + text)
                case _:
                    pass
        return calls

    @property
    def end(self) -> TurnEvent:
        return self.events[-1]

    @property
    def finished(self) -> bool:
        return isinstance(self.end, TurnFinished)

    @property
    def error(self) -> ApiError:
        assert isinstance(self.end, TurnFailed)
        return self.end.error


async def outcome_of(request: TurnRequest, backend: MemoryBackend, options: TurnOptions | None = None) -> Outcome:
    report, events = TurnReport(), list[TurnEvent]()
    async with aclosing(run_turn(request, backend, options or keyless_model(), report)) as turn:
        async for batch in turn:
            assert batch
            events += batch
    return Outcome(events, backend, report)


async def play(
    *answers: Script, request: TurnRequest | None = None, chunk: int = 0, options: TurnOptions | None = None
) -> Outcome:
    """The outcome of a turn that asks for just these answers."""
    backend = MemoryBackend(list(answers), chunk)
    outcome = await outcome_of(request or ask(), backend, options)
    assert not backend.answers, "an answer was not asked for"
    return outcome
