"""A turn that the page has kept, as a fixture: the one that a recorder would have written."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path

import orjson
from aiohttp import web

from ...errors import RequestError
from ...ingress.apis import turns_recorded
from ...ingress.inspect import KeptWords, LeftEvents, TurnRecord, TurnState
from ...replay.answers import KEPT_HEADERS, FixtureAnswer, FixtureBody, FixtureEvent, FixtureStream, read_events
from ...settings import Settings
from ..shaping import shaping_settings
from . import scrubber_for
from .document import compose
from .recording import recording_of
from .shelf import name_of
from .standalone import NotRecordedError


class FixtureOfTurn:
    """Makes them of one server's turns. Call it with the request for one, whose owner is the turn's."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def __call__(self, request: web.Request, record: TurnRecord) -> tuple[str, Mapping[str, bytes]]:
        """A name for the folder, and the files in it. Raises `RequestError`, which says why it makes none."""
        try:
            words, answer = _kept(record)
            kind, settings = self._settings.backend.partition(":")[0], shaping_settings(self._settings)
            recording = await recording_of(
                request, f"/v1{record.route}", words.body or b"", answer, words.heard, kind=kind, settings=settings
            )
        except NotRecordedError as error:
            raise RequestError(f"It cannot become a fixture: {error}", status=409, code="turn_not_usable") from None
        scrubber = scrubber_for(self._settings, Path.cwd())
        files = await asyncio.to_thread(compose, recording, scrubber)
        return name_of(files), files


def _kept(record: TurnRecord) -> tuple[KeptWords, FixtureAnswer]:
    words = record.words
    if record.over is None:
        raise NotRecordedError("it is not over yet.")
    if words is None:
        raise NotRecordedError("its words are not kept.")
    recorded = turns_recorded()
    api = recorded.get(record.route)
    if record.method != "POST" or api is None or words.body is None:
        raise NotRecordedError(f"only what is sent to {' or '.join(f'POST /v1{path}' for path in recorded)} does.")
    if not words.heard:
        raise NotRecordedError("the model was not asked.")
    if (error := record.turned_away) is not None:
        headers = {name: value for name, value in error.headers().items() if name in KEPT_HEADERS}
        return words, FixtureBody(error.status, headers, api.format.error_body(error, record.id))
    if record.state is TurnState.LEFT:
        raise NotRecordedError("its client left.")
    if words.answer is not None:
        return words, FixtureBody(200, {}, orjson.loads(words.answer))
    events = (event for row in words.left for event in _events(row))
    named = (FixtureEvent(str(event["type"]) if "type" in event else None, event) for event in events)
    return words, FixtureStream((*named, *read_events(api.format.end)))


def _events(row: LeftEvents) -> Iterator[dict[str, object]]:
    """As many events as left: the first of several deltas brings what all of them brought."""
    event: dict[str, object] = orjson.loads(row.data)
    if row.text is None:
        yield event
        return
    for at in range(row.count):
        yield _with_delta(event, "" if at else str(row.text), at)


def _with_delta(event: dict[str, object], text: str, later: int) -> dict[str, object]:
    match event:
        case {"choices": [dict(choice)]}:
            return {**event, "choices": [{**choice, "delta": {**choice["delta"], "content": text}}]}
        case {"sequence_number": int(number)}:
            return {**event, "delta": text, "sequence_number": number + later}
        case _:
            return {**event, "delta": text}
