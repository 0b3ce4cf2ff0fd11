"""Run the parser over a text, cut as a test likes, and say what came out in comparable form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from hypothesis import strategies as st

from parser import (
    AnswerParser,
    CallCompleted,
    CallMalformed,
    CallStarted,
    ParserEvent,
    ReadingEnded,
    SentinelParser,
    StrayCloser,
    Tier,
)
from parser.placeholders import is_placeholder

# Of tools: a placeholder is the name of none.
NAMES = st.text(min_size=1).filter(lambda name: bool(name.strip()) and not is_placeholder(name))


def read(pieces: Iterable[str], parser: SentinelParser | AnswerParser | None = None) -> list[ParserEvent]:
    """The events of an answer, which keep their promises. What comes behind a reading that ended joins its rest."""
    parser = parser or SentinelParser()
    events: list[ParserEvent] = []
    for piece in pieces:
        match events:
            case [*_, ReadingEnded(reason, rest)]:
                assert parser.receive_text(piece) == []
                events[-1] = ReadingEnded(reason, rest + piece)
            case _:
                events += parser.receive_text(piece)
    events += parser.receive_eof()
    check_promises(events)
    return events


def cut(text: str, size: int) -> list[str]:
    """Pieces of `size` characters; 0 is the whole."""
    return [text[at : at + size] for at in range(0, len(text), size)] if size else [text]


def merged(events: Iterable[ParserEvent]) -> list[ParserEvent]:
    """Adjacent text as one: how it was cut is no promise."""
    result: list[ParserEvent] = []
    for event in events:
        match (result[-1] if result else None, event):
            case (str(before), str(text)):
                result[-1] = before + text
            case _:
                result.append(event)
    return result


@dataclass(frozen=True)
class Answer:
    """What a client would make of the events."""

    text: str
    calls: list[tuple[str, str]]
    status: Literal["ok", "repaired", "malformed"]


def answer_of(events: Sequence[ParserEvent]) -> Answer:
    calls = list(completed(events))
    status: Literal["ok", "repaired", "malformed"] = "ok"
    if any(call.tier is not Tier.VALID for call in calls) or any(
        isinstance(event, ReadingEnded | StrayCloser) for event in events
    ):
        status = "repaired"
    if any(isinstance(event, CallMalformed) for event in events):
        status = "malformed"
    return Answer("".join(visible(events)), [(call.name, call.arguments) for call in calls], status)


def visible(events: Iterable[ParserEvent]) -> Iterator[str]:
    for event in outside(events):
        match event:
            case str(text):
                yield text
            case CallMalformed(before=before, raw=raw):
                yield before + raw
            case _:
                pass


def outside(events: Iterable[ParserEvent]) -> Iterator[ParserEvent]:
    """All but the pieces of arguments."""
    in_call = False
    for event in events:
        match event:
            case CallStarted():
                in_call = True
            case CallCompleted() | CallMalformed():
                in_call = False
            case _:
                pass
        if not (in_call and isinstance(event, str)):
            yield event


def arguments_told(events: Iterable[ParserEvent]) -> dict[int, str]:
    """By its number, what was told of the arguments of each call that was begun."""
    told: dict[int, str] = {}
    number: int | None = None
    for event in events:
        match event:
            case CallStarted(index):
                number, told[index] = index, ""
            case CallCompleted() | CallMalformed():
                number = None
            case str(text) if number is not None:
                told[number] += text
            case _:
                pass
    return told


def completed(events: Iterable[ParserEvent]) -> Iterator[CallCompleted]:
    return (event for event in events if isinstance(event, CallCompleted))


def check_promises(events: Sequence[ParserEvent]) -> None:
    """Each call is started, then told, then ended once, and what was told of it stays (`parser/events.py`)."""
    told = arguments_told(events)
    open_: CallStarted | None = None
    count = 0
    for event in events:
        match event:
            case str():
                assert event
            case CallStarted(index, name):
                # One at a time: what comes between is of this call.
                assert (open_, index) == (None, count)
                assert name.strip()
                open_, count = event, count + 1
            case CallCompleted(index, name, arguments, call_id):
                assert open_
                assert (open_.index, open_.name) == (index, name)
                assert event.extra[: len(open_.extra)] == open_.extra
                assert open_.id in (None, call_id) or '"call_id"' in event.raw
                assert isinstance(json.loads(arguments, parse_int=str), dict)
                assert told[index] in ("", arguments)
                assert event.before.strip() == ""
                # Without tags nothing is told before the call is whole.
                assert open_.bare is (event.tier in (Tier.BARE, Tier.HELD))
                assert not open_.bare or (open_.id, open_.extra) == (call_id, event.extra)
                open_ = None
            case CallMalformed(reason, raw, index, _, before):
                assert index == (open_ and open_.index)
                assert reason
                assert raw.strip()
                assert before.strip() == ""
                open_ = None
            case StrayCloser(raw) | ReadingEnded(rest=raw):
                assert open_ is None
                assert raw.strip()
    assert open_ is None


def received(events: Iterable[ParserEvent]) -> str:
    """The text that the events account for, in their order."""
    parts: list[str] = []
    for event in outside(events):
        match event:
            case str(text) | StrayCloser(raw=text) | ReadingEnded(rest=text):
                parts.append(text)
            case CallCompleted(before=before, raw=raw) | CallMalformed(before=before, raw=raw):
                parts += before, raw
            case _:
                pass
    return "".join(parts)
