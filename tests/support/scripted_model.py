"""A model that says what a test wrote: a loopback `POST /v1/responses`, as codex expects of a provider.

    async def test(model: ScriptedModel) -> None:  # the fixture that serves its `app`
        model.push(Reply([Message("Hello")], chunk=1))
        ...                                        # a backend whose upstream is `model.url` takes a turn
        model.requests[-1].body["input"]

A reply can be held at a delta (`hold_after`, `gate`), so that tests order events instead of sleeping.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson
from aiohttp import web
from aiohttp.test_utils import TestServer

# Streams are broken off on purpose here; aiohttp would print each as an error.
logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)


@dataclass(frozen=True, slots=True)
class Message:
    """`deltas` False: the item comes whole, as some models send it. `phase` is told of it when it begins and when it
    ends; `late`: only then.
    """

    text: str
    deltas: bool = True
    phase: str | None = None
    late: bool = False


@dataclass(frozen=True, slots=True)
class Reasoning:
    """`summary` has one string a part; `raw` is the unsummarised text."""

    summary: Sequence[str] = ()
    raw: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A native function call: what a text-only backend must never be led to make."""

    name: str
    arguments: str = "{}"


Item = Message | Reasoning | Call


@dataclass(frozen=True, slots=True)
class Completed:
    pass


@dataclass(frozen=True, slots=True)
class Failed:
    """`response.failed` with this error."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Incomplete:
    reason: str


@dataclass(frozen=True, slots=True)
class Cut:
    """The socket is reset."""


@dataclass(frozen=True, slots=True)
class Silent:
    """The body ends in good order, without a last event."""


COMPLETED = Completed()


@dataclass(frozen=True, slots=True)
class Reply:
    """`chunk` counts characters a delta, `pace` is the seconds between two events.

    With a `gate`, the stream waits for it once `hold_after` deltas are out.
    """

    items: Sequence[Item]
    chunk: int = 8
    end: Completed | Failed | Incomplete | Cut | Silent = COMPLETED
    pace: float = 0
    hold_after: int = 0
    gate: asyncio.Event | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP error instead of a stream. `body`: not in OpenAI's form."""

    status: int
    error: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SeenRequest:
    headers: Mapping[str, str]
    body: Mapping[str, Any]


class ScriptedModel:
    """Answers with the pushed replies in turn, then with `default`; `choose`, when set, decides by the request's body.

    `called` is set by each request, `stream_closed` when a client left before the end of its stream.
    """

    path = "/v1/responses"

    def __init__(self) -> None:
        self.url = ""
        self._ids = itertools.count(1)
        self.app = web.Application(client_max_size=256 * 2**20)
        self.app.router.add_post(self.path, self._answer)
        self.begin_anew()

    def begin_anew(self) -> None:
        """As nobody had asked it or told it anything, at the same address."""
        self.requests: list[SeenRequest] = []
        self.default: Reply | Refusal = Reply([Message("Hello from the scripted model.")])
        self.choose: Callable[[Mapping[str, Any]], Reply | Refusal] | None = None
        self.called = asyncio.Event()
        self.stream_closed = asyncio.Event()
        self._script: deque[Reply | Refusal] = deque()

    def push(self, *replies: Reply | Refusal) -> None:
        self._script.extend(replies)

    def _read(self, body: dict[str, Any]) -> dict[str, Any]:
        """A request's body as tests look at it."""
        return body

    def _lines(self, reply: Reply) -> Iterator[tuple[bytes, bool]]:
        """The events of a stream as they are written, and whether each is a delta."""
        for number, event in enumerate(_events(reply, self._ids)):
            payload = orjson.dumps({**event, "sequence_number": number}).decode()
            yield f"event: {event['type']}\ndata: {payload}\n\n".encode(), event["type"].endswith(".delta")

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = self._read(orjson.loads(await request.read()))
        stream_closed = self.stream_closed
        self.requests.append(SeenRequest(dict(request.headers), body))
        self.called.set()
        reply = self._next_reply(body)
        if isinstance(reply, Refusal):
            error = reply.error or {"message": f"scripted {reply.status}", "type": "server_error", "code": None}
            return web.json_response(reply.body or {"error": error}, status=reply.status, headers=reply.headers)
        response = web.StreamResponse(headers={"content-type": "text/event-stream", **reply.headers})
        await response.prepare(request)
        try:
            await self._stream(request, response, reply)
        except (ConnectionError, asyncio.CancelledError):
            stream_closed.set()
            raise
        return response

    def _next_reply(self, body: Mapping[str, Any]) -> Reply | Refusal:
        if self.choose is not None:
            return self.choose(body)
        return self._script.popleft() if self._script else self.default

    async def _stream(self, request: web.Request, response: web.StreamResponse, reply: Reply) -> None:
        deltas = 0
        for line, is_delta in self._lines(reply):
            if reply.gate is not None and deltas == reply.hold_after:
                await reply.gate.wait()
            if reply.pace:
                await asyncio.sleep(reply.pace)
            await response.write(line)
            deltas += is_delta
        if isinstance(reply.end, Cut) and request.transport is not None:
            request.transport.abort()


Served = TypeVar("Served", bound=ScriptedModel)


@asynccontextmanager
async def served(model: Served) -> AsyncIterator[Served]:
    """`model` at an address of its own."""
    server = TestServer(model.app)
    await server.start_server(access_log=None, shutdown_timeout=0.1)
    model.url = str(server.make_url("/v1"))
    try:
        yield model
    finally:
        await server.close()


def _events(reply: Reply, ids: Iterator[int]) -> Iterator[dict[str, Any]]:
    response = {"id": f"resp_{next(ids)}"}
    yield {"type": "response.created", "response": {**response, "status": "in_progress"}}
    output = []
    for index, item in enumerate(reply.items):
        started, done = _started_and_done(item, next(ids))
        output.append(done)
        at = {"item_id": done["id"], "output_index": index}
        if not isinstance(item, Message) or item.deltas:
            yield {"type": "response.output_item.added", "output_index": index, "item": started}
            yield from _deltas(item, at, reply.chunk)
        yield {"type": "response.output_item.done", "output_index": index, "item": done}
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 40},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 120,
    }
    whole = {**response, "output": output, "usage": usage}
    match reply.end:
        case Completed():
            yield {"type": "response.completed", "response": {**whole, "status": "completed"}}
        case Incomplete(reason):
            details = {"status": "incomplete", "incomplete_details": {"reason": reason}}
            yield {"type": "response.incomplete", "response": {**whole, **details}}
        case Failed(code, message):
            error = {"status": "failed", "error": {"code": code, "message": message}}
            yield {"type": "response.failed", "response": {**response, **error}}
        case Cut() | Silent():
            pass


def _started_and_done(item: Item, number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    match item:
        case Message(text):
            base = {"type": "message", "role": "assistant", "id": f"msg_{number}"}
            phase = {} if item.phase is None else {"phase": item.phase}
            content = [{"type": "output_text", "text": text, "annotations": []}]
            begun = {} if item.late else phase
            return {**base, **begun, "content": []}, {**base, **phase, "content": content}
        case Reasoning(summary, raw):
            base = {"type": "reasoning", "id": f"rs_{number}", "encrypted_content": "c2NyaXB0ZWQ="}
            parts = [{"type": "summary_text", "text": part} for part in summary]
            spoken = {"content": [{"type": "reasoning_text", "text": raw}]} if raw else {}
            return {**base, "summary": []}, {**base, "summary": parts, **spoken}
        case Call(name, arguments):
            base = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": name}
            return {**base, "arguments": ""}, {**base, "arguments": arguments}


def _deltas(item: Item, at: Mapping[str, object], chunk: int) -> Iterator[dict[str, Any]]:
    match item:
        case Message(text):
            for piece in pieces_of(text, chunk):
                yield {"type": "response.output_text.delta", **at, "content_index": 0, "delta": piece}
        case Reasoning(summary, raw):
            for index, part in enumerate(summary):
                opened = {"type": "summary_text", "text": ""}
                yield {"type": "response.reasoning_summary_part.added", **at, "summary_index": index, "part": opened}
                for piece in pieces_of(part, chunk):
                    yield {
                        "type": "response.reasoning_summary_text.delta",
                        **at,
                        "summary_index": index,
                        "delta": piece,
                    }
            for piece in pieces_of(raw, chunk):
                yield {"type": "response.reasoning_text.delta", **at, "content_index": 0, "delta": piece}
        case Call():
            pass


def pieces_of(text: str, chunk: int) -> Iterator[str]:
    for start in range(0, len(text), chunk):
        yield text[start : start + chunk]
