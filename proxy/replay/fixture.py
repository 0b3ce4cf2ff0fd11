"""Fixture format 1: one folder for each turn.

    <case>/request.json    what the client sent to the proxy, or would send
    <case>/backend.jsonl   what the proxy and the app-server said to each other
    <case>/response.sse    what the client got, or should get

Playing needs `backend.jsonl` only. Its first line says what it is, the others are messages as they
went over the wire, `t` in seconds on any clock; empty lines may part them:

    {"tagcall_fixture": 1, "note": "...", "model": "gpt-x", "ask": {...}}
    {"t": 0.0, "dir": "client", "msg": {"method": "turn/start", "id": 3, "params": {...}}}
    {"t": 0.2, "dir": "server", "msg": {"method": "item/started", "params": {...}}}

`note` is for readers, `model` is one more name in the list of models; members that are not named
here are kept in `Fixture.meta` and change nothing. The turn is what the server said on its thread from
`turn/start` to `turn/completed`; a handshake before it and lines of other threads do no harm. What the
turn answers is the text input of its `turn/start`, or `ask` (see `asks`), which needs no `turn/start`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import orjson

from ..errors import UsageError
from .asks import Ask, Described, Verbatim

FORMAT = 1
REQUEST_FILE = "request.json"
BACKEND_FILE = "backend.jsonl"

Message: TypeAlias = dict[str, object]

# Said anew for each turn, as the echo of its input is.
_OPENING = "turn/started"


class FixtureError(UsageError):
    """A fixture that cannot be played; the sentence names the file and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One message of the server, `at` seconds after the turn began."""

    at: float
    message: Message


@dataclass(frozen=True, slots=True)
class Fixture:
    """One recorded turn. The last of `steps` is its `turn/completed`."""

    name: str
    meta: Message
    ask: Ask
    thread_id: str
    turn_id: str
    steps: tuple[Step, ...]

    @property
    def model(self) -> str | None:
        model = self.meta.get("model")
        return model if isinstance(model, str) else None


@dataclass(frozen=True, slots=True)
class _Line:
    at: float
    from_client: bool
    message: Message


def load_fixtures(folder: Path) -> dict[str, Fixture]:
    """All fixtures in `folder` by name, sorted; `folder` may also be a single one."""
    if not folder.is_dir():
        raise FixtureError(f"There is no folder {folder} to play fixtures from.")
    cases = [folder] if (folder / BACKEND_FILE).is_file() else sorted(folder.iterdir())
    fixtures = {case.name: _load(case / BACKEND_FILE) for case in cases if (case / BACKEND_FILE).is_file()}
    if not fixtures:
        raise FixtureError(f"There is no fixture in {folder}: a fixture is a folder with a {BACKEND_FILE} in it.")
    return fixtures


def _load(path: Path) -> Fixture:
    try:
        return parse_fixture(path.parent.name, path.read_bytes())
    except FixtureError as error:
        raise FixtureError(f"{path}: {error}") from None
    except OSError as error:
        raise FixtureError(f"{path} cannot be read: {error.strerror}.") from None


def parse_fixture(name: str, data: bytes) -> Fixture:
    """The fixture in the bytes of a `backend.jsonl`, or `FixtureError` with one sentence."""
    numbered = [(number, line) for number, line in enumerate(data.split(b"\n"), start=1) if line.strip()]
    if not numbered:
        raise FixtureError("the file is empty.")
    meta = _parse_meta(*numbered[0])
    lines = [_parse_line(number, line) for number, line in numbered[1:]]
    starts = [index for index, line in enumerate(lines) if _is_turn_start(line)]
    if len(starts) > 1:
        raise FixtureError("it holds more than one turn/start; a fixture is one turn.")
    described = _parse_ask(meta)
    ask: Ask
    if starts:
        opening = lines[starts[0]]
        begin, ask = opening.at, described or Verbatim(_input_of(opening.message))
        thread = _thread_of(opening.message)
        lines = [line for line in lines[starts[0] + 1 :] if _thread_of(line.message) == thread]
    elif described is not None:
        begin, ask = min((line.at for line in lines), default=0.0), described
    else:
        raise FixtureError('it has neither a turn/start line nor an "ask" in its first line.')
    end, thread_id, turn_id = _find_end(lines)
    steps = tuple(
        Step(max(0.0, line.at - begin), line.message)
        for line in lines[: end + 1]
        if not line.from_client and _thread_of(line.message) == thread_id and _is_played(line.message)
    )
    return Fixture(name, meta, ask, thread_id, turn_id, steps)


def _parse_object(number: int, line: bytes) -> Message:
    try:
        value: object = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise FixtureError(f"line {number} is not JSON: {error.msg} (column {error.colno}).") from None
    if not isinstance(value, dict):
        raise FixtureError(f"line {number} is not a JSON object.")
    return value


def _parse_meta(number: int, line: bytes) -> Message:
    meta = _parse_object(number, line)
    if "tagcall_fixture" not in meta:
        raise FixtureError(f'its first line is not {{"tagcall_fixture": {FORMAT}, ...}}.')
    if meta["tagcall_fixture"] != FORMAT:
        raise FixtureError(f"it is of format {meta['tagcall_fixture']!r}; this tagcall reads format {FORMAT}.")
    return meta


def _parse_line(number: int, line: bytes) -> _Line:
    match _parse_object(number, line):
        case {"t": (int() | float()) as at, "dir": ("client" | "server") as side, "msg": dict() as message}:
            return _Line(float(at), side == "client", message)
        case _:
            raise FixtureError(f'line {number} is not {{"t": seconds, "dir": "client" or "server", "msg": {{...}}}}.')


def _parse_ask(meta: Message) -> Ask | None:
    match meta.get("ask"):
        case None:
            return None
        case {"last_user": str(last_user), **rest} if not set(rest) - {"after_tools"}:
            names = rest.get("after_tools", [])
            if isinstance(names, list) and all(isinstance(name, str) for name in names):
                return Described(last_user, tuple(names))
        case _:
            pass
    raise FixtureError('its "ask" is not {"last_user": text, "after_tools": [names]}.')


def _is_turn_start(line: _Line) -> bool:
    return line.from_client and line.message.get("method") == "turn/start"


def _input_of(message: Message) -> str:
    match message:
        case {"params": {"input": list(items)}}:
            return input_text(items)
        case _:
            raise FixtureError("its turn/start has no input.")


def input_text(items: list[object]) -> str:
    """The texts of a turn's input, one after the other; images do not count."""
    return "\n".join(_texts(items))


def _texts(items: list[object]) -> Iterator[str]:
    for item in items:
        match item:
            case {"type": "text", "text": str(text)}:
                yield text
            case _:
                pass


def _find_end(lines: list[_Line]) -> tuple[int, str, str]:
    for index, line in enumerate(lines):
        match line:
            case _Line(
                from_client=False,
                message={
                    "method": "turn/completed",
                    "params": {"threadId": str(thread_id), "turn": {"id": str(turn_id)}},
                },
            ):
                return index, thread_id, turn_id
            case _:
                pass
    raise FixtureError("it has no turn/completed that names its thread and turn; is the recording cut off?")


def _thread_of(message: Message) -> str | None:
    match message:
        case {"params": {"threadId": str(thread_id)}}:
            return thread_id
        case _:
            return None


def _is_played(message: Message) -> bool:
    match message:
        case {"params": {"item": {"type": "userMessage"}}}:
            return False
        case {"method": str(method)}:
            return method != _OPENING
        case _:
            return False
