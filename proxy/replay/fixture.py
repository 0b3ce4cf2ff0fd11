"""Fixture format 1: one folder for each request of a client.

    <case>/request.json                     the body that the client sent to the proxy
    <case>/backend.jsonl                    what the proxy and the app-server said to each other
    <case>/response.sse or response.json    what the client got, see `answers`
    <case>/transcript.txt                   the texts of `backend.jsonl` in whole, see `transcript`

Playing needs `backend.jsonl` only. Its first line says what it is, the others are messages as they
went over the wire, `t` in seconds on any clock; empty lines may part them:

    {"tagcall_fixture": 1, "note": "...", "model": "gpt-x", "path": "/v1/responses", "ask": {...}}
    {"t": 0.0, "dir": "client", "msg": {"method": "turn/start", "id": 3, "params": {...}}}
    {"t": 0.2, "dir": "server", "msg": {"method": "item/started", "params": {...}}}

Other members are kept in `Fixture.meta` and change nothing. A turn is what the server said on its thread from
`turn/start` to `turn/completed`. A handshake before it and lines of other threads do no harm. If the proxy asked its
model again, there are several turns. They answer `ask` (see `asks`). Without `ask`, each answers its `turn/start`
together with what its thread held: the items of `thread/inject_items`, and its earlier turns. With an `ask` there may
be one turn without a `turn/start`. docs/reference/fixtures.md is for those who write fixtures.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from ..errors import UsageError
from .asks import Ask, Seen, asked_by
from .thread_log import ThreadLog, counted_on

# What the first line of a `backend.jsonl` says as `tagcall_fixture`.
FORMAT = 1
REQUEST_FILE = "request.json"
BACKEND_FILE = "backend.jsonl"
TRANSCRIPT_FILE = "transcript.txt"
DEFAULT_PATH = "/v1/responses"
# What may have been known of the model when it was recorded.
KEY_HABITS = ("unknown", "writes", "never")

ReplayMessage: TypeAlias = dict[str, object]

_CONFLICT = re.compile(rb"^<{7} ", re.MULTILINE)

# Characters that are shown of a text that differs from its deltas.
_SHOWN = 30

# Said anew for each turn, as the echo of its input is.
_OPENING = "turn/started"


class FixtureError(UsageError):
    """A fixture that cannot be played; the sentence names the file and what is wrong with it."""


class Step(Struct, frozen=True):
    """One message of the server, `at` seconds after the turn began."""

    at: float
    message: ReplayMessage


class RecordedTurn(Struct, frozen=True):
    """The last of `steps` is its `turn/completed`. `interrupted`: the proxy had read enough before that."""

    ask: Ask
    thread_id: str
    turn_id: str
    steps: tuple[Step, ...]
    interrupted: bool


class Fixture(Struct, frozen=True):
    """The turns of one request, at least one. `settings` are those that its answer depends on, `key_habit` what was
    known of the model: whether it writes the key into its calls; None where nobody asked.
    """

    name: str
    meta: ReplayMessage
    turns: tuple[RecordedTurn, ...]
    path: str = DEFAULT_PATH
    settings: Mapping[str, str | bool] = field(default_factory=dict)
    key_habit: str | None = None

    @property
    def model(self) -> str | None:
        return _model_of(self.meta)


class _Line(Struct, frozen=True):
    number: int
    at: float
    from_client: bool
    message: ReplayMessage


def load_fixtures(folder: Path) -> dict[str, Fixture]:
    """All fixtures in `folder` by name, sorted; `folder` may also be a single one.

    Folders whose name begins with a dot are none: they are still being written.
    """
    if not folder.is_dir():
        raise FixtureError(f"There is no folder {folder} to play fixtures from.")
    cases = [folder] if (folder / BACKEND_FILE).is_file() else sorted(folder.iterdir())
    cases = [case for case in cases if _is_fixture(case) and not case.name.startswith(".")]
    fixtures = {case.absolute().name: _load(case / BACKEND_FILE) for case in cases}
    if not fixtures:
        raise FixtureError(f"There is no fixture in {folder}: a fixture is a folder with a {BACKEND_FILE} in it.")
    return fixtures


def read_file(path: Path) -> bytes:
    """What a file holds, however git has written the ends of its lines here. Raises `FixtureError`."""
    try:
        return path.read_bytes().replace(b"\r\n", b"\n")
    except OSError as error:
        raise FixtureError(f"{path} cannot be read: {error.strerror}.") from None


def _is_fixture(case: Path) -> bool:
    """Raises `FixtureError` where the half that is played is missing: git may have been told to ignore it."""
    if (case / BACKEND_FILE).is_file():
        return True
    if (case / REQUEST_FILE).is_file() and (case / TRANSCRIPT_FILE).is_file():
        raise FixtureError(f"{case} has no {BACKEND_FILE}, which every fixture has: is it ignored by git?")
    return False


def _load(path: Path) -> Fixture:
    data = read_file(path)
    try:
        return parse_fixture(path.parent.absolute().name, data)
    except FixtureError as error:
        check_conflict(path, data)
        raise FixtureError(f"{path}: {error}") from None


def parse_fixture(name: str, data: bytes) -> Fixture:
    """The fixture in the bytes of a `backend.jsonl`, or `FixtureError` with one sentence."""
    numbered = [(number, line) for number, line in enumerate(data.split(b"\n"), start=1) if line.strip()]
    if not numbered:
        raise FixtureError("the file is empty.")
    meta = _parse_meta(*numbered[0])
    lines = [_parse_line(number, line) for number, line in numbered[1:]]
    ask = _parse_ask(meta)
    starts = [index for index, line in enumerate(lines) if _is_turn_start(line)]
    if starts:
        turns = [_started_turn(lines, index, ask, _model_of(meta)) for index in starts]
    elif ask is not None:
        turns = [_parse_turn(lines, ask, min((line.at for line in lines), default=0.0), {})]
    else:
        raise FixtureError('it has neither a turn/start line nor an "ask" in its first line.')
    return Fixture(name, meta, tuple(turns), _parse_path(meta), _parse_settings(meta), _parse_key_habit(meta))


def _started_turn(lines: list[_Line], start: int, ask: Ask | None, model: str | None) -> RecordedTurn:
    opening = lines[start]
    if not _has_input(opening.message):
        raise FixtureError("its turn/start has no input.")
    thread = _thread_of(opening.message)
    own = [index for index, line in enumerate(lines) if _thread_of(line.message) == thread]
    log = ThreadLog()
    for index in own:
        if index <= start:
            log.take(lines[index].message)
    seen = Seen(tuple(log.messages), model)
    asked = replace(ask, seen=seen) if ask else asked_by(seen)
    return _parse_turn([lines[index] for index in own if index > start], asked, opening.at, log.tokens)


def _parse_turn(lines: list[_Line], ask: Ask, begin: float, spent: Mapping[str, int]) -> RecordedTurn:
    """`spent` are the tokens that its thread had cost before: the turn's own lines count from 0."""
    end, thread_id, turn_id = _find_end(lines)
    own = [line for line in lines[: end + 1] if _thread_of(line.message) == thread_id]
    _check_texts(own)
    before = {name: -count for name, count in spent.items()}
    steps = tuple(
        Step(max(0.0, line.at - begin), counted_on(line.message, before))
        for line in own
        if not line.from_client and _is_played(line.message)
    )
    interrupted = any(line.from_client and line.message.get("method") == "turn/interrupt" for line in own)
    return RecordedTurn(ask, thread_id, turn_id, steps, interrupted)


def _check_texts(lines: Iterable[_Line]) -> None:
    """Raises `FixtureError` for a message whose whole text is not what its deltas say: only these would be played."""
    deltas: defaultdict[str, list[str]] = defaultdict(list)
    for line in lines:
        match line.message:
            case {"method": "item/agentMessage/delta", "params": {"itemId": str(item), "delta": str(delta)}}:
                deltas[item].append(delta)
            case {"method": "error", "params": {"willRetry": True}}:
                deltas.clear()  # the model begins again
            case {"method": "item/started", "params": {"item": {"id": str(item)}}}:
                deltas.pop(item, None)  # likewise
            case {"method": "item/completed", "params": {"item": {"id": str(item), "text": str(text)}}}:
                told = "".join(deltas.pop(item, ()))
                if not text or text.startswith(told):
                    continue
                at = next(index for index, letter in enumerate(told) if text[index : index + 1] != letter)
                one, other = (json.dumps(whole[at : at + _SHOWN], ensure_ascii=False) for whole in (text, told))
                raise FixtureError(
                    f"line {line.number}: at character {at + 1} the text has {one}, and its deltas have {other}: "
                    "write it in both, or take out the deltas."
                )
            case _:
                pass


def load_messages(case: Path) -> list[ReplayMessage]:
    """What both sides said, in order. Of a fixture that has been loaded."""
    rows = [row for row in (case / BACKEND_FILE).read_bytes().split(b"\n") if row.strip()]
    return [_parse_line(number, row).message for number, row in enumerate(rows[1:], start=2)]


def load_request(case: Path) -> ReplayMessage | None:
    """The body of a fixture's request; None when it was written for playing only."""
    path = case / REQUEST_FILE
    if not path.is_file():
        return None
    return read_json_object(path)


def check_conflict(path: Path, data: bytes) -> None:
    """Raises `FixtureError` if git could not merge the file, and has left that to a person."""
    if found := _CONFLICT.search(data):
        line = data.count(b"\n", 0, found.start()) + 1
        raise FixtureError(
            f"{path} has a merge conflict in line {line}: keep one side, or remove its folder and record it again."
        )


def read_json_object(path: Path) -> ReplayMessage:
    """The one JSON object that a file holds, or `FixtureError` with one sentence."""
    data = read_file(path)
    try:
        value: object = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        check_conflict(path, data)
        raise FixtureError(f"{path} is not JSON: {error.msg} (line {error.lineno}, column {error.colno}).") from None
    if not isinstance(value, dict):
        raise FixtureError(f"{path} is not a JSON object.")
    return value


def _parse_object(number: int, line: bytes) -> ReplayMessage:
    try:
        value: object = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise FixtureError(f"line {number} is not JSON: {error.msg} (column {error.colno}).") from None
    if not isinstance(value, dict):
        raise FixtureError(f"line {number} is not a JSON object.")
    return value


def _parse_meta(number: int, line: bytes) -> ReplayMessage:
    meta = _parse_object(number, line)
    if "tagcall_fixture" not in meta:
        raise FixtureError(f'its first line is not {{"tagcall_fixture": {FORMAT}, ...}}.')
    if meta["tagcall_fixture"] != FORMAT:
        raise FixtureError(f"it is of format {meta['tagcall_fixture']!r}; this tagcall reads format {FORMAT}.")
    return meta


def _parse_line(number: int, line: bytes) -> _Line:
    match _parse_object(number, line):
        case {"t": (int() | float()) as at, "dir": ("client" | "server") as side, "msg": dict() as message}:
            return _Line(number, float(at), side == "client", message)
        case _:
            raise FixtureError(f'line {number} is not {{"t": seconds, "dir": "client" or "server", "msg": {{...}}}}.')


def _model_of(meta: ReplayMessage) -> str | None:
    match meta.get("model"):
        case str(model):
            return model
        case _:
            return None


def _parse_ask(meta: ReplayMessage) -> Ask | None:
    match meta.get("ask"):
        case None:
            return None
        case {"last_user": str(last_user), **rest} if not set(rest) - {"after_tools", "with_tools"}:
            names, with_tools = rest.get("after_tools", []), rest.get("with_tools")
            if isinstance(names, list) and all(isinstance(name, str) for name in names):
                return Ask(
                    last_user,
                    tuple(names),
                    _model_of(meta),
                    with_tools if isinstance(with_tools, bool) else None,
                )
        case _:
            pass
    raise FixtureError('its "ask" is not {"last_user": text, "after_tools": [names], "with_tools": true or false}.')


def _parse_path(meta: ReplayMessage) -> str:
    match meta.get("path", DEFAULT_PATH):
        case str(path) if path.startswith("/"):
            return path
        case _:
            raise FixtureError('its "path" is not the path of a request, as "/v1/responses".')


def _parse_key_habit(meta: ReplayMessage) -> str | None:
    habit = meta.get("key_habit")
    if habit is not None and not (isinstance(habit, str) and habit in KEY_HABITS):
        raise FixtureError(f'its "key_habit" is not one of {", ".join(KEY_HABITS)}.')
    return habit


def _parse_settings(meta: ReplayMessage) -> Mapping[str, str | bool]:
    match meta.get("settings", {}):
        case dict(settings) if all(isinstance(value, str | bool) for value in settings.values()):
            return settings
        case _:
            raise FixtureError('its "settings" are not {"name": text, true or false}.')


def _is_turn_start(line: _Line) -> bool:
    return line.from_client and line.message.get("method") == "turn/start"


def _has_input(message: ReplayMessage) -> bool:
    match message:
        case {"params": {"input": list()}}:
            return True
        case _:
            return False


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


def _thread_of(message: ReplayMessage) -> str | None:
    match message:
        case {"params": {"threadId": str(thread_id)}}:
            return thread_id
        case _:
            return None


def _is_played(message: ReplayMessage) -> bool:
    match message:
        case {"params": {"item": {"type": "userMessage"}}}:
            return False
        case {"method": str(method)}:
            return method != _OPENING
        case _:
            return False
