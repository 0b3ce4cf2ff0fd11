"""The text backend over a Chat Completions server: one request a turn, read at the pace of its consumer.

asked --head--> answering --its first word--> told --the end of its bytes--> over
  |                 |                            '--- silent behind its reason to end: over, the connection is closed
  |                 '------------------------ left: the connection is closed, which ends the model's work
  |--- refused for its form: asked otherwise, once for each form
  '--- a kept-alive connection was dead: asked again, on a new one
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, closing, suppress
from functools import partial
from types import SimpleNamespace
from typing import Any, Self
from urllib.parse import urlsplit
from weakref import WeakSet

import aiohttp
import orjson
import structlog
from cachetools import LRUCache
from msgspec.structs import asdict, replace
from structlog.typing import FilteringBoundLogger

from ...contracts import BackendEvent, Health, Load, Model, Prompt
from ...errors import BackendError
from ...tracing import CURRENT
from ..answers import DISCONNECTED, REFUSED, TIMEOUT, shutting_down, unavailable
from ..named_models import named_first
from .characters import read_whole
from .context_size import size_of, sizes_in_use
from .errors import Rejection, concession, failure, read_rejection
from .patience import Patience
from .requests import Manner, chat_body
from .stream import ChatStream
from .thinking import begins_inside

log: FilteringBoundLogger = structlog.get_logger(__name__)

# Seconds.
CONNECT = 10.0
# For a whole turn, however much it says.
TOTAL = 3600.0
# For the list of models and the like.
LOOK = 5.0
# For facts that a server may tell beside its list. Nobody should have to wait for them.
LOOK_BESIDE = 1.0
# The first word may take so many times the idle timeout: a server is silent while the request waits for others, and
# while it reads the prompt. A small model on a busy machine took 95 s.
QUEUE = 6
# For the end of the body behind `[DONE]`. Without it the connection cannot be used again.
LAST_BYTES = 0.25
# For the usage and `[DONE]`, which follow the finish reason. Some servers never send them.
USAGE = 2.0
# After which a client should try again, if nothing answers.
AGAIN = 5.0
# Models of which tagcall remembers how to ask them. There is a bound because clients choose the names.
MODELS = 256
# Bytes of an answer that is no stream.
MOST = 16 * 2**20

# The `Server` header of llama.cpp's, which can tell how far it has read the prompt.
LLAMA_CPP = "llama.cpp"

_JSON = "application/json"
# Compression gains nothing for a stream, and a thousandfold of the bytes would hold up the event loop for minutes.
_PLAIN = {"Accept-Encoding": "identity"}
# A stream, or one JSON body from a server that cannot stream.
_ANSWERS = {"text/event-stream", _JSON}


class _CompressedError(aiohttp.ClientError):
    """An answer is compressed. The error's text names the coding."""


class ChatBackend:
    """A `TextBackend` over the server at `url`, its path included and without a slash at its end.

    `start` tells a person what to do if the server does not answer, as a part of a sentence. `models` are listed
    first, whatever the server lists. `flat` shows it every conversation as one text. `idle_timeout` is in seconds
    without a sign of life in the middle of an answer.
    """

    def __init__(
        self,
        url: str,
        *,
        start: str = "start the model server",
        key: str | None = None,
        flat: bool = False,
        models: Sequence[str] = (),
        idle_timeout: float = 300.0,
    ) -> None:
        self.url = url
        self.server = f"The model server at {urlsplit(url).netloc}"
        """The words with which a sentence about the server begins."""
        self._start = start
        self._key = key
        self._named = [Model(name, 0, "tagcall", listed=False) for name in models]
        self._listed: list[Model] = []
        self._idle_timeout = idle_timeout
        self._manner = Manner(flat=flat)
        self._manners: LRUCache[str, Manner] = LRUCache(MODELS)  # what was learnt of a model, by its name
        self._begin_inside: LRUCache[str, bool] = LRUCache(MODELS)  # whether a model's answers begin in a thought
        self._software: str | None = None
        self._answers: WeakSet[aiohttp.ClientResponse] = WeakSet()
        self._open = 0
        self._interrupts = 0
        self._closing = False

    async def __aenter__(self) -> Self:
        trace = aiohttp.TraceConfig(SimpleNamespace)
        trace.on_connection_reuseconn.append(_note_reuse)
        self._kept = self._session(aiohttp.TCPConnector(limit=0), trace)
        self._fresh = self._session(aiohttp.TCPConnector(limit=0, force_close=True), trace)
        return self

    def _session(self, connector: aiohttp.TCPConnector, trace: aiohttp.TraceConfig) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=connector,
            headers=_PLAIN | ({"Authorization": f"Bearer {self._key}"} if self._key else {}),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT),
            trace_configs=[trace],
            middlewares=[_refuse_compressed],
            auto_decompress=False,
            # A cookie that one client's turn brings must not go out with another client's.
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def __aexit__(self, *exc: object) -> None:
        """Closes all connections, so that the answers that are being read fail."""
        self._closing = True
        for response in list(self._answers):
            response.close()  # closing the session alone leaves readers waiting
        await self._kept.close()
        await self._fresh.close()

    @asynccontextmanager
    async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
        if self._closing:
            raise shutting_down()
        response: aiohttp.ClientResponse | None = None
        self._open += 1
        try:
            response = await self._answer(prompt)
            async with aclosing(self._batches(response, prompt)) as batches:
                yield batches
        finally:
            self._open -= 1
            if response is not None:
                # An answer that was read to its end is closed already: its connection was given back.
                self._interrupts += not response.closed
                response.close()

    async def _answer(self, prompt: Prompt) -> aiohttp.ClientResponse:
        """The answer to `prompt`, before any of its body is read."""
        manner = self._manner_of(prompt.model)
        tried = {manner}
        held = prompt.output_schema is not None
        if prompt.call_schema is not None and self._software is None:
            with suppress(BackendError):
                await self.look(f"{self.url}/models")  # to learn which software it is
        while True:
            response = await self._post(chat_body(prompt, manner, llama_cpp=self._software == LLAMA_CPP))
            if response.status == 200 and response.content_type in _ANSWERS:
                self._learn(prompt.model, manner)
                return response
            rejection = await self._rejection(response)
            other = concession(rejection, manner, prompt, held=held)
            if other is None or other in tried:
                raise failure(rejection, self.server, held=held, key=self._key)
            manner = other
            tried.add(manner)

    def _manner_of(self, model: str) -> Manner:
        return self._manners.get(model) or replace(self._manner, stop=not begins_inside(model))

    def _learn(self, model: str, manner: Manner) -> None:
        if manner != self._manner_of(model):
            log.info("backend_asked_otherwise", model=model, **asdict(manner))
            self._manners[model] = manner

    async def _post(self, body: bytes) -> aiohttp.ClientResponse:
        for session in (self._kept, self._fresh):
            seen = SimpleNamespace(reused=False)
            try:
                async with asyncio.timeout(QUEUE * self._idle_timeout):
                    response = await session.post(
                        f"{self.url}/chat/completions",
                        data=body,
                        headers={"Content-Type": "application/json", **CURRENT.get().headers()},
                        # Another host must not see the key.
                        allow_redirects=False,
                        trace_request_ctx=seen,
                    )
            except (aiohttp.ClientError, TimeoutError) as error:
                died = isinstance(error, (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError))
                if not (died and seen.reused) or self._closing:
                    raise self._lost(error) from None
            else:
                self._answers.add(response)
                self._software = response.headers.get("Server", "")
                return response
        raise RuntimeError("a new connection was one that is kept")

    async def _rejection(self, response: aiohttp.ClientResponse) -> Rejection:
        try:
            async with asyncio.timeout(self._idle_timeout):
                body = await _content(response)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._lost(error) from None
        finally:
            response.release()
        return read_rejection(response.status, body, response.headers.get("Retry-After"))

    async def _batches(
        self, response: aiohttp.ClientResponse, prompt: Prompt
    ) -> AsyncGenerator[Sequence[BackendEvent], None]:
        told = self._begin_inside.get(prompt.model)
        stream = ChatStream(
            self.server,
            reasoning=prompt.summary is not None,
            # With the effort `none`, templates that can leave the thought out do so.
            inside=prompt.effort != "none" and (begins_inside(prompt.model) if told is None else told),
            sure=told is not None,
            key=self._key,
        )
        whole = response.content_type == _JSON
        lost: BackendError | None = None
        data = b""
        now = asyncio.get_running_loop().time
        with closing(Patience(response.content, QUEUE * self._idle_timeout, TOTAL)) as patience:
            while stream.failed is None:
                try:
                    data = await patience.read(_event(response) if whole else response.content.readany())
                except (aiohttp.ClientError, TimeoutError) as error:
                    lost, data = self._lost(error), b""
                if events := stream.receive(data) if data else stream.receive_eof():
                    patience.shorten(self._idle_timeout)
                    yield events
                if not data:
                    break
                # Once an answer has ended, more bytes do not prolong the wait for its rest.
                rest = LAST_BYTES if stream.done else USAGE
                patience.over = min(patience.over, now() + rest) if stream.ended else patience.last
        if stream.thought:
            self._manners[prompt.model] = replace(self._manner_of(prompt.model), stop=False)
        if stream.begun_in_prompt is not None:
            self._begin_inside[prompt.model] = stream.begun_in_prompt
        if stream.failed is not None:
            response.close()
            raise lost or stream.failed
        response.release()

    def _lost(self, error: Exception) -> BackendError:
        """The error to report when the connection failed with `error`."""
        match error:
            case _ if self._closing:
                return shutting_down()
            case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError():
                return unavailable(f"{self.server} cannot be trusted: {error}.")
            case aiohttp.ClientConnectorError() | aiohttp.ConnectionTimeoutError():
                return unavailable(f"{self.server} does not answer", AGAIN, self._start)
            case _CompressedError():
                fault = f"{self.server} compresses what it sends ({error}), though asked not to"
                return BackendError(fault, remedy="turn that off", **REFUSED)
            case TimeoutError():
                return BackendError(f"{self.server} was silent for too long.", **TIMEOUT)
            case _:
                return BackendError(f"{self.server} has ended before its answer did.", **DISCONNECTED)

    def heeds(self, model: str) -> frozenset[str]:
        return frozenset({"temperature", "top_p", "seed"})

    @property
    def takes_items(self) -> bool:
        return not self._manner.flat

    @property
    def keeps_conversations(self) -> bool:
        return False  # its cache goes by the text alone

    def holds(self, schema: str) -> bool:
        return True  # it may refuse the schema; a server that ignores it is soon found out

    async def models(self) -> Sequence[Model]:
        try:
            listed = await self.look(f"{self.url}/models")
            self._listed = _models(listed, await self._sizes_in_use())
        except BackendError:
            if not (self._named or self._listed):
                raise
        return named_first(self._named, self._listed)

    async def _sizes_in_use(self) -> Mapping[str, int]:
        # A service does not have these paths. A local server has one or the other.
        if self.url.startswith("https:"):
            return {}
        return await sizes_in_use(partial(self.look, patience=LOOK_BESIDE), self.url)

    async def health(self) -> Health:
        try:
            await self.look(f"{self.url}/models")
        except BackendError as error:
            # An error below 500 only says that it does not list its models.
            if error.status >= 500:
                return Health(error.without_trace())
        return Health(None, self._software if self._software == LLAMA_CPP else None)

    async def look(self, url: str, body: object = None, *, patience: float | None = None) -> Any:  # noqa: ANN401 -- JSON
        """The JSON at `url`, by GET, or by POST if there is a `body`. Raises `BackendError`."""
        if self._fresh.closed:
            # tagcall is stopping, and somebody still asks.
            raise self._lost(aiohttp.ServerDisconnectedError())
        data = None if body is None else orjson.dumps(body)
        headers = {"Content-Type": "application/json"} if data else None
        try:
            async with asyncio.timeout(LOOK if patience is None else patience):
                response = await self._fresh.request(
                    "POST" if data else "GET", url, data=data, headers=headers, allow_redirects=False
                )
                async with response:
                    content = await _content(response)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._lost(error) from None
        self._software = response.headers.get("Server", "")
        rejection = read_rejection(response.status, content, response.headers.get("Retry-After"))
        if response.status != 200 or rejection.said is None:
            raise failure(rejection, self.server, key=self._key)
        return read_whole(content)

    def load(self) -> Load:
        return Load(self._open, interrupts=self._interrupts)


async def _content(response: aiohttp.ClientResponse) -> bytes:
    """The rest of the body, up to about `MOST` bytes."""
    blocks: list[bytes] = []
    size = 0
    while size < MOST and (block := await response.content.readany()):
        blocks.append(block)
        size += len(block)
    return b"".join(blocks)


async def _event(response: aiohttp.ClientResponse) -> bytes:
    """A JSON body as one event of a stream. The second call returns nothing."""
    content = await _content(response)
    return b"data: %b\n" % content.replace(b"\n", b" ") if content else b""


async def _refuse_compressed(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    response = await handler(request)
    if (coding := response.headers.get("Content-Encoding", "identity")).strip().lower() not in {"", "identity"}:
        response.close()
        raise _CompressedError(coding[:40].encode(errors="replace").decode())
    return response


async def _note_reuse(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
    if context.trace_request_ctx is not None:
        context.trace_request_ctx.reused = True


def _models(listed: Any, in_use: Mapping[str, int]) -> list[Model]:  # noqa: ANN401 -- whatever a server sends
    rows = listed.get("data") if isinstance(listed, dict) else listed
    rows = rows if isinstance(rows, list) else []
    return [
        Model(
            row["id"],
            created if isinstance(created := row.get("created"), int) else 0,
            "backend",
            context=in_use.get(row["id"]) or size_of(row),
        )
        for row in rows
        if isinstance(row, dict) and isinstance(row.get("id"), str) and row["id"]
    ]
