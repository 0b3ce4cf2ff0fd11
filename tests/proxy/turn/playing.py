"""Playing a turn in memory, and views of what left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import aclosing
from itertools import count
from typing import Any

from msgspec.structs import replace

from parser import Tool, ToolRegistry, write_call
from prompts import PROFILES, PromptProfile, Text, ToolChoice, Transcript, UserTurn
from proxy.contracts import (
    AnswerText,
    BackendEvent,
    Reasoning,
    TextPiece,
    ToolCallArguments,
    ToolCallEnded,
    ToolCallStarted,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    TurnFinished,
    TurnRequest,
)
from proxy.errors import ApiError
from proxy.ids import MintId
from proxy.turn import (
    CallKeys,
    CallRelease,
    FixedHabit,
    KeyHabit,
    TurnObserver,
    TurnOptions,
    TurnReport,
    run_turn,
)
from tests.support.memory_backend import USAGE, MemoryBackend, Script

TOOLS = ToolRegistry([Tool("read_note", "Read a note.", '{"type":"object"}'), Tool("search", "Search.", None)])
READ_A = write_call("read_note", '{"path": "a.md"}')
READ_B = write_call("read_note", '{"path": "b.md"}')
BROKEN = '<tool_call>{"name": "read_note", "arguments": [1}}</tool_call>'
UNDECLARED = write_call("rm", "{}")
SCHEMA = '{"type":"object","properties":{"path":{"type":"string"},"line":{"type":"integer"}},"required":["path"]}'
LENIENT, STRICT = (ToolRegistry([Tool("read_note", None, SCHEMA, strict=strict)]) for strict in (False, True))
UNFIT = write_call("read_note", '{"path": 3}')


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
    def left(self) -> list[TurnEvent]:
        """All events but the last, with deltas that follow one another as one."""
        return merged(self.events[:-1])

    @property
    def notes(self) -> list[tuple[object, ...]]:
        """What was made of each block: its fate, why, and the name of its tool."""
        return [(note.ruling.fate, note.reason, note.name) for note in self.report.notes]

    @property
    def counted(self) -> dict[str, dict[str, int]]:
        """Whatever the report counts, by what it is."""
        return {what: dict(found) for what, found in self.report.counts.items() if found}

    @property
    def end(self) -> TurnEvent:
        return self.events[-1]

    @property
    def finished(self) -> bool:
        return isinstance(self.end, TurnFinished)

    @property
    def ending(self) -> str:
        """How it ended: finished, what it was cut by, or the code of its error."""
        match self.end:
            case TurnFinished(_, incomplete):
                return incomplete or "finished"
            case _:
                return str(self.error.code)

    @property
    def error(self) -> ApiError:
        assert isinstance(self.end, TurnFailed)
        return self.end.error


def merged(events: Sequence[TurnEvent]) -> list[TurnEvent]:
    """The events, with deltas that follow one another as one."""
    found: list[TurnEvent] = []
    for event in events:
        match found[-1:], event:
            case [AnswerText(before, phase)], AnswerText(text, same) if phase == same:
                found[-1] = AnswerText(before + text, phase)
            case [ToolCallArguments(before)], ToolCallArguments(text):
                found[-1] = ToolCallArguments(before + text)
            case [Reasoning(part, before)], Reasoning(same_part, text) if part == same_part:
                found[-1] = Reasoning(part, before + text)
            case _:
                found.append(event)
    return found


def in_short(events: Sequence[TurnEvent]) -> list[object]:
    """Text as itself, a whole call as it is written without a key, any other event as it is; nothing of a plain end."""
    short: list[object] = []
    for event in merged(events):
        match short[-2:], event:
            case _, AnswerText(text):
                short.append(text)
            case [ToolCallStarted(_, name), ToolCallArguments(arguments)], ToolCallEnded(complete=True):
                short[-2:] = [write_call(name, arguments)]
            case _, TurnFinished(_, None):
                pass
            case _:
                short.append(event)
    return short


def numbered() -> MintId:
    """The ids that the model does not write are `call_1` and so on."""
    numbers = count(1)
    return lambda prefix: f"{prefix}_{next(numbers)}"


async def outcome_of(
    request: TurnRequest,
    backend: MemoryBackend,
    options: TurnOptions | None = None,
    observer: TurnObserver | None = None,
) -> Outcome:
    report, events = TurnReport(observer=observer), list[TurnEvent]()
    turn = run_turn(request, backend, options or keyless_model(), report, mint=numbered())
    async with aclosing(turn):
        async for batch in turn:
            assert batch
            events += batch
    return Outcome(events, backend, report)


async def play(
    *answers: Script,
    request: TurnRequest | None = None,
    chunk: int = 0,
    options: TurnOptions | None = None,
    observer: TurnObserver | None = None,
) -> Outcome:
    """The outcome of a turn that asks for just these answers."""
    backend = MemoryBackend(list(answers), chunk)
    outcome = await outcome_of(request or ask(), backend, options, observer)
    assert not backend.answers, "an answer was not asked for"
    return outcome


async def leaving(
    *pieces: str | BackendEvent,
    then: Sequence[Script] = (),
    request: TurnRequest | None = None,
    options: TurnOptions | None = None,
) -> list[list[TurnEvent]]:
    """What leaves on each of these pieces, and behind them, with the answers that are asked for `then`."""
    left: list[list[TurnEvent]] = [[]]

    def script() -> Iterator[BackendEvent]:
        for piece in pieces:
            yield TextPiece(piece) if isinstance(piece, str) else piece
            # It is asked for the next one.
            left.append([])
        yield TurnEnded(USAGE)

    backend = MemoryBackend([script(), *then])
    turn = run_turn(request or ask(), backend, options or keyless_model(), TurnReport(), mint=numbered())
    async with aclosing(turn):
        async for batch in turn:
            left[-1] += batch
    assert not backend.answers, "an answer was not asked for"
    return left
