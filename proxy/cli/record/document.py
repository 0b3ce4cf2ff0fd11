"""One request as the files of a fixture: scrubbed, with names in place of ids, and without times of day."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import orjson
from msgspec import Struct, field

from ...backends.codex import TurnExpansion
from ...contracts import TurnEnded
from ...ingress.inspect import HeardTurn
from ...replay.answers import FixtureAnswer, FixtureBody, FixtureEvent, FixtureStream, file_of
from ...replay.conversation import Asking, folded_lines, read_conversation
from ...replay.fixture import BACKEND_FILE, FORMAT, REQUEST_FILE, TRANSCRIPT_FILE
from ...replay.key_placeholder import key_of
from ...replay.normal import Names, normal
from ...replay.thread_log import ThreadLog
from ...replay.transcript import transcript
from .scrub import Scrubber, scrub_messages, with_names

# What a prompt holds that asks for calls.
_OPEN_TAG = "<tool_call>"


class Recording(Struct, frozen=True):
    """`last_user` is the newest user message as its client wrote it, `turns` is what became of it, at least one.

    `settings` are those that differ from the default and change the answer; `key_habit` is what was known of the model.
    """

    path: str
    request: Mapping[str, object]
    answer: FixtureAnswer
    turns: tuple[HeardTurn, ...]
    last_user: str
    note: str = ""
    settings: Mapping[str, str | bool] = field(default_factory=dict)
    key_habit: str | None = None


class TimedMessage(Struct, frozen=True):
    """One line of the proxy or of its app-server, `at` seconds on the monotonic clock."""

    at: float
    from_client: bool
    message: dict[str, object]


def compose(recording: Recording, scrubber: Scrubber) -> dict[str, bytes]:
    """The files of the fixture by name."""
    keys = {key for turn in recording.turns if (key := key_of(turn.prompt.developer)) is not None}
    scrubber = scrubber.for_request(keys)
    asked = scrubber.value(dict(recording.request))
    names = Names(asked)
    request = with_names(names.applied(asked), names.given)
    scrubber.names = names.given
    lines = [line for number, turn in enumerate(recording.turns, start=1) for line in _lines(turn, number)]
    messages = scrub_messages([line.message for line in lines], scrubber)
    # Put together first, so that no cut hides anything from the scrubber.
    answer = _scrubbed(normal(recording.answer, Names(request)), scrubber)
    return {
        REQUEST_FILE: orjson.dumps(request, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE),
        BACKEND_FILE: _backend_file(recording, lines, messages, scrubber),
        file_of(answer): answer.encode(),
        TRANSCRIPT_FILE: transcript(messages).encode(),
    }


def _backend_file(recording: Recording, lines: list[TimedMessage], messages: list[object], scrubber: Scrubber) -> bytes:
    model = recording.turns[0].prompt.model
    meta: dict[str, object] = {"tagcall_fixture": FORMAT, "note": recording.note, "model": model}
    meta |= {"path": recording.path, "ask": _ask(recording, messages, scrubber)}
    if recording.settings:
        meta["settings"] = dict(recording.settings)
    if recording.key_habit is not None:
        meta["key_habit"] = recording.key_habit
    begin = lines[0].at
    timed = [
        {"t": round(line.at - begin, 3), "dir": "client" if line.from_client else "server", "msg": message}
        for line, message in zip(lines, messages, strict=True)
    ]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in [meta, *timed]).encode()


def _ask(recording: Recording, messages: Iterable[object], scrubber: Scrubber) -> dict[str, object]:
    log = ThreadLog()
    for message in messages:
        log.take(message)
        if _starts_turn(message):
            break
    own = folded_lines(scrubber.text(recording.last_user))
    asking = _meant(read_conversation(log.messages).askings, own)
    # Behind the user's own lines the proxy may have put some of its own.
    last_user = "\n".join(asking.lines[: len(own) or None])
    with_tools = _OPEN_TAG in (recording.turns[0].prompt.developer or "")
    return {"last_user": last_user, "after_tools": list(asking.after_tools), "with_tools": with_tools}


def _meant(askings: Sequence[Asking], own: Sequence[str]) -> Asking:
    """Which of `askings` has the user's `own` lines: the model was shown them, escaped with backslashes."""
    for asking in askings:
        if [line.replace("\\", "") for line in asking.lines[: len(own)]] == [line.replace("\\", "") for line in own]:
            return asking
    return askings[0]


def _starts_turn(message: object) -> bool:
    match message:
        case {"method": "turn/start"}:
            return True
        case _:
            return False


def _lines(turn: HeardTurn, number: int) -> Iterator[TimedMessage]:
    """What the proxy and an app-server would have said to each other.

    A turn that the proxy left early is interrupted where it left: it leaves there again when this is replayed.
    """
    lines = TurnExpansion(f"thread-{number}", f"turn-{number}")
    yield TimedMessage(turn.begun, True, {"id": 2 * number, **lines.ask(turn.prompt)})
    said = [(turn.begun, lines.begin()), *((at, line) for at, event in turn.told for line in lines.tell(event))]
    if not (turn.told and isinstance(turn.told[-1][1], TurnEnded)):
        said += ((turn.over, line) for line in _ending(turn, lines))
    *before, end = (TimedMessage(at, False, line) for at, line in said)
    yield from before
    if turn.left_early:
        yield TimedMessage(turn.over, True, {"id": 2 * number + 1, **lines.leave()})
    yield end


def _ending(turn: HeardTurn, lines: TurnExpansion) -> Iterator[dict[str, object]]:
    """The end of a turn whose backend told none."""
    if turn.error is not None:
        yield from lines.fail(turn.error)
    elif turn.left_early:
        yield lines.interrupt()
    else:
        yield from lines.tell(TurnEnded(None))


def _scrubbed(answer: FixtureAnswer, scrubber: Scrubber) -> FixtureAnswer:
    match answer:
        case FixtureStream(events):
            return FixtureStream(tuple(FixtureEvent(event.name, scrubber.value(event.data)) for event in events))
        case FixtureBody(status, headers, body):
            return FixtureBody(status, headers, scrubber.value(body))
