"""From a client's request to the fixture that it becomes.

request -> middleware -> run_turn -> RecordedBackend -> any backend
               |                            |
               '- answer -> fixture <- turns of the request
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Self

import orjson
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler
from structlog.typing import FilteringBoundLogger

from ...contracts import TextBackend
from ...errors import RequestError
from ...ingress.apis import Api, api_of, turns_recorded
from ...ingress.routes import canonical_path
from ...ingress.state import BASE_PATH, REQUEST_LOG, WRITTEN
from ...logs import tell
from ...replay.answers import KEPT_HEADERS, FixtureAnswer, FixtureBody, FixtureStream, read_events, without_comments
from .document import Recording, compose
from .recording import recording_of
from .scrub import Scrubber
from .shelf import Replaceable, name_of, next_number, replace_fixture, write_fixture
from .standalone import NotRecordedError
from .turns import RecordedBackend, RecordedRequest, recorded_request

# What says of this installation that it has no model to ask. Played, it would be an error that nobody can mend.
_NO_MODEL = frozenset({"backend_auth", "backend_unavailable"})

# The status that is answered where nobody is left to read it.
_CLIENT_LEFT = 499

log: FilteringBoundLogger = structlog.get_logger(__name__)


class Recorder:
    """Run it around the server, with its `backend` and its `middleware`.

    `kind` is that of the backend, for readers; `settings` are those that differ from the default and change answers.
    With `replace` a request that a fixture of the folder answers is written in the place of that one.
    """

    def __init__(
        self,
        backend: TextBackend,
        kind: str,
        folder: Path,
        scrubber: Scrubber,
        settings: Mapping[str, str | bool],
        *,
        replace: bool = False,
    ) -> None:
        self.backend = RecordedBackend(backend)
        self._kind = kind
        self._folder = folder
        self._scrubber = scrubber
        self._settings = settings
        self._replaceable = Replaceable(folder) if replace else None
        self._tasks = asyncio.TaskGroup()
        # They are written in the order in which they were answered.
        self._writing = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Waits for the fixtures that are being written."""
        await self._tasks.__aexit__(None, None, None)

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        path = canonical_path(request.path, request.app[BASE_PATH])
        if request.method != "POST" or path not in turns_recorded():
            if request.headers.get("Upgrade", "").lower() == "websocket":  # its end may cancel what stands behind it
                tell("not recorded: what is asked by WebSocket.", outcome="not recorded")
            response = await handler(request)
            if (api := _asked_in(request, path, response)) is not None:
                tell(f"not recorded: it was asked in {api.name}.", outcome="not recorded")
            return response
        written = request[WRITTEN] = []
        with recorded_request() as recorded:
            response = await handler(request)
        # A response in the background is answered before its turn begins.
        if recorded.turns or response.status == HTTPStatus.OK:
            keeping = self._keep(recorded, request, response, written)
            self._tasks.create_task(keeping, name="fixture")
        return response

    async def _keep(
        self, recorded: RecordedRequest, request: web.Request, response: web.StreamResponse, written: Sequence[bytes]
    ) -> None:
        try:
            async with self._writing:
                recording = await self._recording(recorded, request, _answer(request, response, written))
                # To look through a long answer takes seconds, in which others are answered.
                files = await asyncio.to_thread(compose, recording, self._scrubber)
                outcome, name = self._write(files)
        except (NotRecordedError, RequestError, OSError) as error:
            tell(f"not recorded: {error}", outcome="not recorded")
        except Exception:  # a mistake of the recorder must not end the server; logged with its trace
            log.exception("not_recorded")
        else:
            tell(f"{outcome} {name}", logging.INFO, outcome=outcome, fixture=name)

    def _write(self, files: Mapping[str, bytes]) -> tuple[str, str]:
        """What became of it, and its name."""
        if self._replaceable is not None and (name := self._replaceable.take(files)) is not None:
            return "changed" if replace_fixture(self._folder, name, files) else "as before", name
        # Another recorder may have written here meanwhile.
        name = f"{next_number(self._folder):03}-{name_of(files)}"
        write_fixture(self._folder, name, files)
        return "recorded", name

    async def _recording(self, recorded: RecordedRequest, request: web.Request, answer: FixtureAnswer) -> Recording:
        for turn in recorded.turns:
            if turn.error is not None and turn.error.code in _NO_MODEL:
                raise NotRecordedError(turn.error.message)
        path = f"/v1{canonical_path(request.path, request.app[BASE_PATH])}"
        body = await request.read()
        kind, settings = self._kind, self._settings
        return await recording_of(request, path, body, answer, recorded.turns, kind=kind, settings=settings)


def _asked_in(request: web.Request, path: str, response: web.StreamResponse) -> Api | None:
    """The API in which a turn was asked for that becomes no fixture; None if none was."""
    api = api_of(request, path)
    return api if request.method == "POST" and path in api.turns and response.status == HTTPStatus.OK else None


def _answer(request: web.Request, response: web.StreamResponse, written: Sequence[bytes]) -> FixtureAnswer:
    """What the client got, or `NotRecordedError` if it did not get all of it."""
    if isinstance(response, web.Response):
        headers = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
        data = response.body
        if response.status == _CLIENT_LEFT or not isinstance(data, bytes):
            raise NotRecordedError("its client left.")
        return FixtureBody(response.status, headers, orjson.loads(data))
    if not request[REQUEST_LOG].whole:
        raise NotRecordedError("its client left.")
    return FixtureStream(read_events(without_comments(b"".join(written))))
