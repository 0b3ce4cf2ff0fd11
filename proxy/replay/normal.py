"""The form of an answer in which two runs are equal, byte for byte.

It leaves out whatever differs between two runs of the same answer:

    ids      prefix and number, in the order of their appearance: resp_1, fc_1, fc_2
    times    `created` and its like are 0
    cuts     neighbouring deltas of one thing are one delta, the events are numbered accordingly
    signs of life in Chat Completions, which are chunks that say nothing
    how an error tells you to type a command of ours: always as `tagcall login`
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from .answers import FixtureAnswer, FixtureBody, FixtureEvent, FixtureStream, ReplayJson

_ID = re.compile(r"([a-z]+)([_-])[0-9a-f]{32}")
_NUMBERED_ID = re.compile(r"([a-z]+)[_-](\d+)")
_COMMAND = re.compile(r"`(?:[^`\s]*/tagcall|[^`\s]+ -m proxy\.cli) (?=[a-z])")
_TIMES = frozenset({"cancelled_at", "completed_at", "created", "created_at", "expires_at"})

# Where the text of a delta stands.
_DELTA_PATHS: tuple[tuple[str | int, ...], ...] = (
    ("delta",),
    ("choices", 0, "delta", "content"),
    ("choices", 0, "delta", "reasoning_content"),
    ("choices", 0, "delta", "function_call", "arguments"),
    ("choices", 0, "delta", "tool_calls", 0, "function", "arguments"),
)
_CHUNK = ("choices", 0, "delta")
_NOTHING = {"content": ""}
_OPENINGS = frozenset({"response.created", "response.in_progress"})
_SEQUENCE = "sequence_number"


class Names:
    """Names for ids, in the order of their appearance. Those in `taken` are not given again."""

    def __init__(self, taken: ReplayJson = None) -> None:
        self._names: dict[str, str] = {}
        self._last: Counter[str] = Counter()
        self._take(taken)

    @property
    def given(self) -> Mapping[str, str]:
        """The names that were given, by id."""
        return self._names

    def _take(self, value: ReplayJson) -> None:
        match value:
            case dict():
                for member in value.values():
                    self._take(member)
            case list():
                for member in value:
                    self._take(member)
            case str() if found := _NUMBERED_ID.fullmatch(value):
                self._last[found[1]] = max(self._last[found[1]], int(found[2]))
            case _:
                pass

    def applied(self, value: ReplayJson) -> ReplayJson:
        """A copy with every id that we mint replaced, every time 0, and our commands as they are called."""
        match value:
            case dict():
                return {key: self._member(key, member) for key, member in value.items()}
            case list():
                return [self.applied(member) for member in value]
            case str() if found := _ID.fullmatch(value):
                return self._named(value, found[1], found[2])
            case _:
                return value

    def _member(self, key: object, member: ReplayJson) -> ReplayJson:
        if key in _TIMES and isinstance(member, int):
            return 0
        if key == "message" and isinstance(member, str):
            return _COMMAND.sub("`tagcall ", member)
        return self.applied(member)

    def _named(self, identifier: str, prefix: str, mark: str) -> str:
        if identifier not in self._names:
            self._last[prefix] += 1
            self._names[identifier] = f"{prefix}{mark}{self._last[prefix]}"
        return self._names[identifier]


def normal(answer: FixtureAnswer, names: Names) -> FixtureAnswer:
    """The form of an answer that is kept and compared. Normal already, it stays as it is."""
    match answer:
        case FixtureStream(events):
            named = [FixtureEvent(event.name, names.applied(event.data)) for event in events]
            return FixtureStream(tuple(_renumbered(_merged(_without_pulses(named)), in_order=_in_order(events))))
        case FixtureBody(status, headers, body):
            return FixtureBody(status, headers, names.applied(body))


def without_usage(answer: FixtureAnswer) -> FixtureAnswer:
    """`answer` with every count of tokens 0: of a turn that was interrupted they are estimates."""
    match answer:
        case FixtureStream(events):
            return FixtureStream(tuple(FixtureEvent(event.name, _zeroed(event.data)) for event in events))
        case FixtureBody(status, headers, body):
            return FixtureBody(status, headers, _zeroed(body))


def error_alone(answer: FixtureAnswer) -> ReplayJson:
    """The error that is all there is of an answer, be it told as a status or in a stream; None when there is more."""
    match answer:
        case FixtureBody(status, _, {"error": error}) if status >= 400:
            return error
        case FixtureStream((*opening, FixtureEvent(data={"error": error}), FixtureEvent(data="[DONE]"))) if all(
            map(_opens, opening)
        ):
            return error
        case _:
            return None


def _opens(event: FixtureEvent) -> bool:
    """Whether an event says no more than that there will be an answer."""
    match _at(event.data, _CHUNK):
        case {"role": str()}:
            return True
        case _:
            return event.name in _OPENINGS


def _zeroed(value: ReplayJson, *, counts: bool = False) -> ReplayJson:
    match value:
        case dict():
            return {key: _zeroed(member, counts=counts or key == "usage") for key, member in value.items()}
        case list():
            return [_zeroed(member, counts=counts) for member in value]
        case int() if counts:
            return 0
        case _:
            return value


def _in_order(events: Iterable[FixtureEvent]) -> bool:
    """Whether the numbers of the events are those that they should have; else they are worth seeing."""
    numbers = [event.data[_SEQUENCE] for event in events if isinstance(event.data, dict) and _SEQUENCE in event.data]
    return numbers == list(range(len(numbers)))


def _renumbered(events: Iterable[FixtureEvent], *, in_order: bool) -> Iterable[FixtureEvent]:
    number = 0
    for event in events:
        match event.data:
            case dict(data) if in_order and _SEQUENCE in data:
                yield FixtureEvent(event.name, {**data, _SEQUENCE: number})
                number += 1
            case _:
                yield event


def _without_pulses(events: list[FixtureEvent]) -> list[FixtureEvent]:
    """The events without chunks that say nothing, as long as something is said behind them."""
    kept: list[FixtureEvent] = []
    says_more = False
    for event in reversed(events):
        delta = _at(event.data, _CHUNK)
        if says_more and delta == _NOTHING:
            continue
        says_more = says_more or (bool(delta) and delta != _NOTHING)
        kept.append(event)
    return kept[::-1]


def _merged(events: Iterable[FixtureEvent]) -> list[FixtureEvent]:
    merged: list[FixtureEvent] = []
    for event in events:
        joined = _joined(merged[-1], event) if merged else None
        if joined is None:
            merged.append(event)
        else:
            merged[-1] = joined
    return merged


def _joined(one: FixtureEvent, other: FixtureEvent) -> FixtureEvent | None:
    """Both as one event, if they differ in nothing but the text of a delta."""
    for path in _DELTA_PATHS:
        begun, more = _at(one.data, path), _at(other.data, path)
        if isinstance(begun, str) and isinstance(more, str):
            whole = _replaced(one.data, path, begun + more)
            if one.name == other.name and _unnumbered(_replaced(other.data, path, begun + more)) == _unnumbered(whole):
                return FixtureEvent(one.name, whole)
    return None


def _at(value: ReplayJson, path: Iterable[str | int]) -> ReplayJson:
    for step in path:
        match value:
            case dict() if step in value:
                value = value[step]
            case list() if isinstance(step, int) and step < len(value):
                value = value[step]
            case _:
                return None
    return value


def _replaced(value: ReplayJson, path: tuple[str | int, ...], text: str) -> ReplayJson:
    if not path:
        return text
    step, rest = path[0], path[1:]
    match value:
        case dict():
            return {key: _replaced(member, rest, text) if key == step else member for key, member in value.items()}
        case list():
            return [_replaced(member, rest, text) if at == step else member for at, member in enumerate(value)]
        case _:
            return value


def _unnumbered(value: ReplayJson) -> ReplayJson:
    return {key: member for key, member in value.items() if key != _SEQUENCE} if isinstance(value, dict) else value
