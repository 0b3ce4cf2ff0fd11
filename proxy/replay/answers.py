"""What a client got for a request, and the file in which a fixture keeps it.

response.sse    an event stream: status 200, the events as they went over the wire
response.json   anything else: {"status": 200, "headers": {...}, "body": {...}}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import orjson
from msgspec import Struct

from .fixture import FixtureError, check_conflict, read_file, read_json_object

STREAM_FILE = "response.sse"
BODY_FILE = "response.json"

# Of an answer's headers those that a client acts on.
KEPT_HEADERS = ("retry-after", "x-should-retry")

ReplayJson: TypeAlias = object


class FixtureEvent(Struct, frozen=True):
    """`name` is None where the stream names none. `data` that is no JSON is its text."""

    name: str | None
    data: ReplayJson

    @property
    def kind(self) -> str:
        return self.name or "data"


class FixtureStream(Struct, frozen=True):
    events: tuple[FixtureEvent, ...]

    def encode(self) -> bytes:
        return b"".join(_encode_event(event) for event in self.events)


class FixtureBody(Struct, frozen=True):
    """`headers` are those of `KEPT_HEADERS` that were there."""

    status: int
    headers: Mapping[str, str]
    body: ReplayJson

    def encode(self) -> bytes:
        value = {"status": self.status, "headers": dict(self.headers), "body": self.body}
        return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


FixtureAnswer: TypeAlias = FixtureStream | FixtureBody


def file_of(answer: FixtureAnswer) -> str:
    return STREAM_FILE if isinstance(answer, FixtureStream) else BODY_FILE


def _encode_event(event: FixtureEvent) -> bytes:
    data = event.data.encode() if isinstance(event.data, str) else orjson.dumps(event.data)
    name = b"" if event.name is None else b"event: %b\n" % event.name.encode()
    return name + b"data: %b\n\n" % data


def load_answer(case: Path) -> FixtureAnswer | None:
    """What a fixture promises; None when it promises nothing yet. Raises `FixtureError`."""
    stream = case / STREAM_FILE
    if stream.is_file():
        data = read_file(stream)
        try:
            return FixtureStream(read_events(data))
        except ValueError as error:
            check_conflict(stream, data)
            raise FixtureError(f"{stream} is not an event stream: {error}.") from None
    if not (case / BODY_FILE).is_file():
        return None
    match read_json_object(case / BODY_FILE):
        case {"status": int(status), "body": body, **rest}:
            headers = rest.get("headers", {})
            if isinstance(headers, dict):
                return FixtureBody(status, headers, body)
        case _:
            pass
    raise FixtureError(f'{case / BODY_FILE} is not {{"status": number, "headers": {{...}}, "body": {{...}}}}.')


def read_events(data: bytes) -> tuple[FixtureEvent, ...]:
    """The events of a stream, without its comments. Raises `ValueError` for what is none."""
    return tuple(_read_event(block) for block in data.decode().split("\n\n") if block.strip("\n"))


def _read_event(block: str) -> FixtureEvent:
    name: str | None = None
    data: list[str] = []
    for line in block.strip("\n").split("\n"):
        field, colon, value = line.partition(": ")
        match field:
            case "event" if colon:
                name = value
            case "data" if colon:
                data.append(value)
            case _:
                raise ValueError(f"no line of an event: {line[:40]!r}")
    text = "\n".join(data)
    return FixtureEvent(name, orjson.loads(text) if text.startswith("{") else text)


def without_comments(data: bytes) -> bytes:
    return re.sub(rb"^:.*\n\n", b"", data, flags=re.MULTILINE)
