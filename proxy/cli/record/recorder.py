"""From a client's request to the fixture that it becomes.

    request -> middleware -> run_turn -> RecordedBackend -> codex <-> Tap
                   |                          |                        |
                   '- answer ----------> Exchange <------- lines ------'

A line of the app-server belongs to the exchange whose prompt its thread was given. Where two exchanges have
the same prompt at once, the second waits for the first.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from weakref import WeakValueDictionary

import orjson
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from prompts import Text

from ...backends import CodexBackend
from ...contracts import BackendEvent, Health, Load, Model, Prompt, TextBackend
from ...errors import RequestError
from ...ingress.history import find_history
from ...ingress.routes import canonical_path
from ...ingress.state import WRITTEN
from ...replay.answers import KEPT_HEADERS, FixtureAnswer, FixtureBody, FixtureStream, read_events, without_comments
from ...rpc import Transport
from ...wire.json_body import parse_json_object
from ...wire.responses.request import lookups
from ...wire.sse import DONE
from .document import Recording, compose
from .scrub import Scrubber
from .shelf import next_number, slug, write_fixture
from .standalone import NotRecordedError, last_user_of, with_history, without_previous
from .tap import HeardTurn, Tap

RECORDED = ("/responses", "/chat/completions")

# Seconds for codex to report the end of a turn whose answer has left; that of an interrupted one comes last.
PATIENCE = 5.0

_OPEN_TAG = "<tool_call>"
_CLIENT_LEFT = 499

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("tagcall.record")


@dataclass(slots=True)
class Exchange:
    """One request while it is served. `prompts` and `turns` are in the order in which they began."""

    prompts: list[Prompt] = field(default_factory=list)
    turns: list[HeardTurn] = field(default_factory=list)


# The exchange that is being served by this task and those that it starts.
_CURRENT: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


class Recorder:
    """Run it around the server, with its `backend` and its `middleware`.

    `settings` are those that differ from the default and change answers.
    """

    def __init__(
        self, backend: CodexBackend, folder: Path, scrubber: Scrubber, settings: Mapping[str, str | bool]
    ) -> None:
        self.backend = RecordedBackend(backend)
        self._folder = folder
        self._scrubber = scrubber
        self._settings = settings
        self._number = next_number(folder)
        self._tasks = asyncio.TaskGroup()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Waits for the fixtures that are being written."""
        await self._tasks.__aexit__(None, None, None)

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        path = canonical_path(request.path)
        if request.method != "POST" or path not in RECORDED:
            return await handler(request)
        exchange = Exchange()
        written = request[WRITTEN] = []
        with _serving(exchange):
            response = await handler(request)
        if exchange.turns:
            keeping = self._keep(exchange, request, response, written)
            self._tasks.create_task(keeping, name="fixture")
        return response

    async def _keep(
        self, exchange: Exchange, request: web.Request, response: web.StreamResponse, written: Sequence[bytes]
    ) -> None:
        try:
            recording = await self._recording(exchange, request, _answer(response, written))
            name = f"{self._number:03}-{slug(self._scrubber.text(recording.last_user))}"
            self._number += 1
            write_fixture(self._folder, name, compose(recording, self._scrubber))
        except (NotRecordedError, RequestError, OSError) as error:
            print(f"not recorded: {error}", file=sys.stderr, flush=True)
        except Exception:  # a mistake of the recorder must not end the server; logged with its trace
            log.exception("not_recorded")
        else:
            print(f"recorded {name}", file=sys.stderr, flush=True)

    async def _recording(self, exchange: Exchange, request: web.Request, answer: FixtureAnswer) -> Recording:
        path = f"/v1{canonical_path(request.path)}"
        body = parse_json_object(await request.read())
        wanted = lookups(body)
        if wanted.conversation or body.get("background"):
            raise NotRecordedError("it belongs to what is stored here, so it could not be asked again.")
        if wanted.previous_response_id or wanted.referred:
            body, answer = with_history(body, await find_history(request, wanted)), without_previous(answer)
        last_user = last_user_of(path, body)
        await _ended(exchange.turns)
        lines = [line for turn in exchange.turns if turn.completed for line in turn.lines]
        if not lines:
            raise NotRecordedError("the app-server did not bring the turn to an end.")
        version = (await self.backend.health()).version
        return Recording(
            path=path,
            request=body,
            answer=answer,
            lines=tuple(lines),
            last_user=last_user,
            model=exchange.prompts[0].model,
            with_tools=_OPEN_TAG in (exchange.prompts[0].developer or ""),
            note=f"Recorded with codex {version}.",
            settings=self._settings,
        )


@contextmanager
def _serving(exchange: Exchange) -> Iterator[None]:
    token = _CURRENT.set(exchange)
    try:
        yield
    finally:
        _CURRENT.reset(token)


class RecordedBackend:
    """A `TextBackend` that hears what its app-server is asked and says."""

    def __init__(self, backend: CodexBackend) -> None:
        backend.wrap = self._tapped
        self._backend: TextBackend = backend
        self._expected: dict[bytes, Exchange] = {}  # by the texts and images of the prompt
        self._turns: set[HeardTurn] = set()
        self._locks: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()

    def _tapped(self, transport: Transport) -> Transport:
        return Tap(transport, self._claim)

    def _claim(self, items: object) -> HeardTurn | None:
        exchange = self._expected.get(_fingerprint(items))
        if exchange is None:
            return None
        turn = HeardTurn()
        exchange.turns.append(turn)
        self._turns = {*(other for other in self._turns if not other.over.is_set()), turn}
        return turn

    async def __aenter__(self) -> Self:
        await self._backend.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        # Of a turn that was left early the end is still to come.
        await _ended(self._turns)
        await self._backend.__aexit__(*exc)

    @asynccontextmanager
    async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
        exchange = _CURRENT.get()
        if exchange is None:
            async with self._backend.stream(prompt) as batches:
                yield batches
            return
        exchange.prompts.append(prompt)
        key = _fingerprint([_shown(part) for part in prompt.parts])
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            self._expected[key] = exchange
            try:
                async with self._backend.stream(prompt) as batches:
                    yield batches
            finally:
                del self._expected[key]

    async def models(self) -> Sequence[Model]:
        return await self._backend.models()

    async def health(self) -> Health:
        return await self._backend.health()

    def load(self) -> Load:
        return self._backend.load()


async def _ended(turns: Iterable[HeardTurn]) -> None:
    """Waits for the ends of turns, no longer than `PATIENCE`."""
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            for turn in turns:
                await turn.over.wait()


def _shown(part: object) -> object:
    return {"type": "text", "text": part.text} if isinstance(part, Text) else {"type": "image"}


def _fingerprint(items: object) -> bytes:
    """What two prompts have in common whose turns cannot be told apart: their texts, in order."""
    texts = [item["text"] for item in items if "text" in item] if isinstance(items, list) else []
    return orjson.dumps(texts)


def _answer(response: web.StreamResponse, written: Sequence[bytes]) -> FixtureAnswer:
    """What the client got, or `NotRecordedError` if it did not get all of it."""
    if isinstance(response, web.Response):
        headers = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
        data = response.body
        if response.status == _CLIENT_LEFT or not isinstance(data, bytes):
            raise NotRecordedError("its client left.")
        return FixtureBody(response.status, headers, orjson.loads(data))
    if not written or written[-1] != DONE:
        raise NotRecordedError("its client left.")
    return FixtureStream(read_events(without_comments(b"".join(written))))
