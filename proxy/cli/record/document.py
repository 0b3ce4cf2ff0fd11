"""One exchange as the files of a fixture: scrubbed, under names instead of ids, without times of day."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import orjson

from ...replay.answers import FixtureAnswer, FixtureBody, FixtureEvent, FixtureStream, file_of
from ...replay.conversation import folded_lines, read_conversation
from ...replay.fixture import BACKEND_FILE, FORMAT, REQUEST_FILE, input_text
from ...replay.normal import Names, normal
from .scrub import Scrubber, scrub_messages
from .tap import HeardLine

# The kinds of ids of an app-server, by the member in which each is found first.
_ID_KINDS: Mapping[str, str] = {"threadId": "thread", "turnId": "turn", "itemId": "item"}
_OTHER_IDS = frozenset({"id", "rootTurnId"})
_TIMES = frozenset({
    "emittedAtMs", "startedAtMs", "completedAtMs", "startedAt", "completedAt", "durationMs", "createdAt", "updatedAt",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Recording:
    """`last_user` is the newest user message as its client wrote it, `lines` begin with a `turn/start`.

    `settings` are those that differ from the default and change the answer.
    """

    path: str
    request: Mapping[str, object]
    answer: FixtureAnswer
    lines: tuple[HeardLine, ...]
    last_user: str
    model: str
    with_tools: bool
    note: str = ""
    settings: Mapping[str, str | bool] = field(default_factory=dict)


def compose(recording: Recording, scrubber: Scrubber) -> dict[str, bytes]:
    """The files of the fixture by name."""
    request = Names().applied(scrubber.value(dict(recording.request)))
    lines = sorted(recording.lines, key=lambda line: line.at)
    messages = scrub_messages([line.message for line in lines], scrubber)
    # Put together first, so that no cut hides anything from the scrubber.
    answer = _scrubbed(normal(recording.answer, Names(request)), scrubber)
    return {
        REQUEST_FILE: orjson.dumps(request, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE),
        BACKEND_FILE: _backend_file(recording, lines, messages),
        file_of(answer): answer.encode(),
    }


def _backend_file(recording: Recording, lines: list[HeardLine], messages: list[object]) -> bytes:
    meta: dict[str, object] = {"tagcall_fixture": FORMAT, "note": recording.note, "model": recording.model}
    meta |= {"path": recording.path, "ask": _ask(recording, messages)}
    if recording.settings:
        meta["settings"] = dict(recording.settings)
    names = _BackendNames()
    begin = lines[0].at
    timed = [
        {
            "t": round(line.at - begin, 3),
            "dir": "client" if line.from_client else "server",
            "msg": names.applied(_without_times(message)),
        }
        for line, message in zip(lines, messages, strict=True)
        if not _echoes_input(message)
    ]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in [meta, *timed]).encode()


def _ask(recording: Recording, messages: Iterable[object]) -> dict[str, object]:
    text = next((input_text(items) for message in messages if (items := _input_of(message)) is not None), "")
    conversation = read_conversation(text)
    # Behind the user's own lines the proxy may have put some of its own.
    own = len(folded_lines(recording.last_user)) or None
    last_user = "\n".join(folded_lines(conversation.last_user)[:own])
    tools = list(conversation.after_tools)
    return {"last_user": last_user, "after_tools": tools, "with_tools": recording.with_tools}


def _input_of(message: object) -> list[object] | None:
    match message:
        case {"method": "turn/start", "params": {"input": list(items)}}:
            return items
        case _:
            return None


def _echoes_input(message: object) -> bool:
    match message:
        case {"params": {"item": {"type": "userMessage"}}}:
            return True
        case _:
            return False


def _without_times(value: object) -> object:
    match value:
        case dict():
            return {key: _without_times(member) for key, member in value.items() if key not in _TIMES}
        case list():
            return [_without_times(member) for member in value]
        case _:
            return value


class _BackendNames:
    """thread-1, turn-1, item-1: by appearance. Only members that hold ids are looked at, never text."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._last: Counter[str] = Counter()

    def applied(self, message: object) -> object:
        match message:
            case {"params": {"turn": {"id": str(turn)}}}:
                self._name("turn", turn)
            case {"params": {"item": {"id": str(item)}}}:
                self._name("item", item)
            case _:
                pass
        return self._renamed("", message)

    def _name(self, kind: str, identifier: str) -> str:
        if identifier not in self._names:
            self._last[kind] += 1
            self._names[identifier] = f"{kind}-{self._last[kind]}"
        return self._names[identifier]

    def _renamed(self, key: str, value: object) -> object:
        match value:
            case dict():
                return {member: self._renamed(member, inner) for member, inner in value.items()}
            case list():
                return [self._renamed("", inner) for inner in value]
            case str() if key in _ID_KINDS and value:
                return self._name(_ID_KINDS[key], value)
            case str() if key in _OTHER_IDS:
                return self._names.get(value, value)
            case _:
                return value


def _scrubbed(answer: FixtureAnswer, scrubber: Scrubber) -> FixtureAnswer:
    match answer:
        case FixtureStream(events):
            return FixtureStream(tuple(FixtureEvent(event.name, scrubber.value(event.data)) for event in events))
        case FixtureBody(status, headers, body):
            return FixtureBody(status, headers, scrubber.value(body))
