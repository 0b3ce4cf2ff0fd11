"""Plays a recorded turn: with fresh ids, and with its text cut anew if that is wanted."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from .fixture import RecordedTurn, ReplayMessage, Step
from .key_placeholder import with_key
from .thread_log import counted_on

_ID_MEMBERS = frozenset({"id", "itemId", "rootTurnId", "threadId", "turnId"})


# Recorded, without any waiting, or so many seconds between two pieces of text.
Speed: TypeAlias = Literal["recorded", "fast"] | float


def parse_speed(text: str) -> Speed:
    """`recorded`, `fast`, or the milliseconds between two pieces of text, as `20ms`."""
    match text:
        case "recorded" | "fast":
            return text
        case _ if text.endswith("ms") and text[:-2].isdecimal():
            return int(text[:-2]) / 1000
        case _:
            raise ValueError(f"'{text}' is not a speed: write fast, recorded or for instance 20ms")


def play(
    turn: RecordedTurn,
    thread_id: str,
    turn_id: str,
    *,
    chunk: int = 0,
    speed: Speed = "fast",
    key: str | None = None,
    spent: Mapping[str, int] | None = None,
) -> Iterator[Step]:
    """The recorded steps as part of that turn. `chunk` is the length of the deltas, 0 as recorded.

    `key` is that of the turn's calls; where there is none its placeholder stays. `spent` are the tokens that the
    thread's earlier turns have cost, by name.
    """
    fresh = {turn.thread_id: thread_id, turn.turn_id: turn_id}
    fresh |= {item_id: f"msg_{uuid.uuid4().hex}" for item_id in _item_ids(turn) - fresh.keys()}
    # Before the text is cut anew, as no cut may go through the placeholder.
    steps = turn.steps if key is None else [_keyed(step, key) for step in turn.steps]
    for step in _timed(recut(steps, chunk) if chunk else steps, speed):
        yield Step(step.at, counted_on(with_ids(step.message, fresh), spent or {}))


def _keyed(step: Step, key: str) -> Step:
    return Step(step.at, {name: with_key(value, key) for name, value in step.message.items()})


def _timed(steps: Iterable[Step], speed: Speed) -> Iterator[Step]:
    pieces = 0
    for step in steps:
        match speed:
            case "recorded":
                yield step
            case "fast":
                yield Step(0.0, step.message)
            case float(seconds):
                pieces += _as_delta(step) is not None
                yield Step(pieces * seconds, step.message)


def _item_ids(turn: RecordedTurn) -> set[str]:
    ids: set[str] = set()
    for step in turn.steps:
        match step.message:
            case {"params": {"item": {"id": str(item_id)}}} | {"params": {"itemId": str(item_id)}}:
                ids.add(item_id)
            case _:
                pass
    return ids


def with_ids(message: ReplayMessage, fresh: Mapping[str, str]) -> ReplayMessage:
    """A copy of `message` with its ids replaced. Only members that hold ids are looked at, never text."""
    return {key: _with_ids(key, value, fresh) for key, value in message.items()}


def _with_ids(key: str, value: object, fresh: Mapping[str, str]) -> object:
    match value:
        case dict():
            return with_ids(value, fresh)
        case list():
            return [_with_ids("", item, fresh) for item in value]
        case str() if key in _ID_MEMBERS:
            return fresh.get(value, value)
        case _:
            return value


class _Delta(Struct, frozen=True):
    """A step that brings text of a message."""

    step: Step
    item: str
    text: str
    rest: dict[object, object]

    def saying(self, text: str) -> Step:
        params = self.rest | {"itemId": self.item, "delta": text}
        return Step(self.step.at, self.step.message | {"params": params})


def _as_delta(step: Step) -> _Delta | None:
    match step.message:
        case {"method": "item/agentMessage/delta", "params": {"itemId": str(item), "delta": str(text), **rest}}:
            return _Delta(step, item, text, rest)
        case _:
            return None


def recut(steps: Iterable[Step], length: int) -> Iterator[Step]:
    """The same steps with the text deltas of each message cut into pieces of `length` characters.

    A piece comes when its last character came; what is left over comes before the next other step. There is one: the
    end of the turn.
    """
    pending = ""
    last: _Delta | None = None
    for step in steps:
        delta = _as_delta(step)
        if last is not None and pending and (delta is None or delta.item != last.item):
            yield last.saying(pending)
            pending = ""
        if delta is None:
            yield step
        else:
            pending += delta.text
            while len(pending) >= length:
                yield delta.saying(pending[:length])
                pending = pending[length:]
        last = delta
