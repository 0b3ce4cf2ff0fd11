"""How one answer differs from another, for a person to read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import TypeAlias

import orjson

from .answers import FixtureAnswer, FixtureBody, FixtureEvent, FixtureStream, ReplayJson

# Characters of a value that are shown, and how many of them before the first difference.
_SHOWN = 100
_BEFORE = 30

# Statuses from here on are those of errors, which share nothing with an answer.
_ERROR = 400

_ABSENT = object()
_SEQUENCE = "sequence_number"

# How often each pair of texts was met: a stream says its text up to five times.
_Told: TypeAlias = Counter[tuple[str, str]]


def differences(promised: FixtureAnswer, got: FixtureAnswer) -> list[str]:
    """One line or more for each difference; none when both are equal. `-` is promised, `+` is what came.

    Where the same text stands instead of the same other one several times, it is told once.
    """
    told: _Told = Counter()
    match promised, got:
        case FixtureStream(wanted), FixtureStream(came):
            return [*_of_streams(wanted, came, told), *_again(told)]
        case FixtureBody(one), FixtureBody(other) if (one < _ERROR) == (other < _ERROR):
            return [*_of_bodies(promised, got, told), *_again(told)]
        case _:
            return [f"- {_told(promised)}", f"+ {_told(got)}"]


def _again(told: _Told) -> Iterator[str]:
    if more := told.total() - len(told):
        yield f"and the same in {more} more place{'s' * (more > 1)}"


def _told(answer: FixtureAnswer) -> str:
    match answer:
        case FixtureStream(events):
            return f"a stream of {len(events)} events"
        case FixtureBody(status, _, {"error": {"message": str(message)}}) if status >= _ERROR:
            return f"status {status}: {message}"
        case FixtureBody(status, _, body):
            return f"status {status}: {_cut(_text(body))}"


def _of_bodies(promised: FixtureBody, got: FixtureBody, told: _Told) -> Iterator[str]:
    if promised.status != got.status:
        yield from ("status", f"- {promised.status}", f"+ {got.status}")
    yield from _members(dict(promised.headers), dict(got.headers), told, "headers")
    yield from _members(promised.body, got.body, told, "body")


def _of_streams(wanted: Sequence[FixtureEvent], came: Sequence[FixtureEvent], told: _Told) -> Iterator[str]:
    if _in_order(wanted) and _in_order(came):  # an event more is no difference of all that follow
        wanted, came = [_unnumbered(event) for event in wanted], [_unnumbered(event) for event in came]
    one, other = [_line(event) for event in wanted], [_line(event) for event in came]
    for tag, begin, end, start, stop in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if tag != "equal":
            yield from _of_events(list(enumerate(wanted))[begin:end], list(enumerate(came))[start:stop], told)


def _in_order(events: Sequence[FixtureEvent]) -> bool:
    numbers = [event.data[_SEQUENCE] for event in events if isinstance(event.data, dict) and _SEQUENCE in event.data]
    return numbers == list(range(len(numbers)))


def _unnumbered(event: FixtureEvent) -> FixtureEvent:
    match event.data:
        case dict(data) if _SEQUENCE in data:
            return FixtureEvent(event.name, {**data, _SEQUENCE: None})
        case _:
            return event


def _of_events(
    wanted: Sequence[tuple[int, FixtureEvent]], came: Sequence[tuple[int, FixtureEvent]], told: _Told
) -> Iterator[str]:
    """Events of one kind are laid side by side, the others stand alone."""
    kinds = [event.kind for _, event in wanted], [event.kind for _, event in came]
    for tag, begin, end, start, stop in SequenceMatcher(None, *kinds, autojunk=False).get_opcodes():
        if tag == "equal":
            for (number, one), (_, other) in zip(wanted[begin:end], came[start:stop], strict=True):
                if lines := list(_members(one.data, other.data, told)):
                    yield f"event {number + 1}, {one.kind}"
                    yield from (f"  {line}" for line in lines)
            continue
        yield from (
            f"- event {number + 1}, {event.kind} {_cut(_text(event.data))}" for number, event in wanted[begin:end]
        )
        yield from (
            f"+ event {number + 1}, {event.kind} {_cut(_text(event.data))}" for number, event in came[start:stop]
        )


def _members(one: ReplayJson, other: ReplayJson, told: _Told, path: str = "") -> Iterator[str]:
    """The places at which two values differ, each with what stands there, but for what is `told`."""
    match one, other:
        case dict(), dict():
            for key in [*one, *(key for key in other if key not in one)]:
                inner = f"{path}.{key}" if path else str(key)
                yield from _members(one.get(key, _ABSENT), other.get(key, _ABSENT), told, inner)
        case list(), list():
            for at in range(max(len(one), len(other))):
                first, second = (values[at] if at < len(values) else _ABSENT for values in (one, other))
                yield from _members(first, second, told, f"{path}[{at}]")
        case _ if one != other or type(one) is not type(other):
            if isinstance(one, str) and isinstance(other, str):
                told[one, other] += 1
                if told[one, other] > 1:
                    return
            yield path
            yield from (f"{mark} {text}" for mark, text in zip("-+", _pair(one, other), strict=True))
        case _:
            pass


def _pair(one: ReplayJson, other: ReplayJson) -> tuple[str, str]:
    """Both as texts, each cut to where they begin to differ."""
    first, second = _text(one), _text(other)
    shorter = min(len(first), len(second))
    at = next((index for index in range(shorter) if first[index] != second[index]), shorter)
    begin = max(0, at - _BEFORE)
    return _cut(first, begin), _cut(second, begin)


def _cut(text: str, begin: int = 0) -> str:
    end = begin + _SHOWN
    return f"{'...' if begin else ''}{text[begin:end]}{'...' if end < len(text) else ''}"


def _text(value: ReplayJson) -> str:
    return "(absent)" if value is _ABSENT else json.dumps(value, ensure_ascii=False)


def _line(event: FixtureEvent) -> bytes:
    return orjson.dumps([event.name, event.data])
