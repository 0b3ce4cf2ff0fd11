"""GET /v1/realtime: a conversation in text that lasts as long as its connection.

    conversation.item.*, session.update --> at once, also while a response is being made
    response.create --> one response that joins the conversation, and some beside it
    response.cancel --> response.done, cancelled; the session goes on

An output is not an answer's beginning: the client asks for that with `response.create`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

import structlog
from aiohttp import web

from ...contracts import TurnFailed, TurnRequest
from ...errors import ApiError, RequestError
from ...ids import mint_id
from ...wire.builder import WireEvent
from ...wire.json_body import JsonObject
from ...wire.parameters import parse_metadata
from ...wire.reader import Reader, wrong_value
from ...wire.realtime.builder import RealtimeBuilder
from ...wire.realtime.items import Items, chosen_items
from ...wire.realtime.request import SessionSettings, changed_session, parse_model, session_object, turn_of
from ...wire.realtime.versions import BETA, GA, Words
from ...wire.sse import encode_typed
from ..exchange import Built, Exchange, built
from ..replies import FAULT
from .socket import STOPPED, Socket, serve

# Responses beside the one that joins the conversation.
MAX_ASIDE = 4

# Characters of a client's id of its event that an error repeats.
MAX_EVENT_ID = 512

# What browsers offer, who cannot send headers with a WebSocket.
PROTOCOL = "realtime"
BETA_PROTOCOL = "openai-beta.realtime-v1"

CLIENT_EVENTS = (
    "session.update", "conversation.item.create", "conversation.item.delete", "conversation.item.retrieve",
    "conversation.item.truncate", "response.create", "response.cancel",
)  # fmt: skip

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("tagcall.socket")


class _Running:
    """A response that is being made. It is left between two batches only: what was built is sent."""

    def __init__(self, builder: RealtimeBuilder, turn: TurnRequest) -> None:
        self.builder = builder
        self.turn = turn
        self.cancelled = asyncio.Event()
        self._waiting: asyncio.Timeout | None = None

    def cancel(self) -> None:
        self.cancelled.set()
        if self._waiting is not None:
            self._waiting.reschedule(asyncio.get_running_loop().time())

    async def next(self, batches: AsyncGenerator[Built, None]) -> Built | None:
        """The next batch; None when there is none, or when none is wanted any more."""
        if self.cancelled.is_set():
            return None
        try:
            async with asyncio.timeout(None) as self._waiting:
                return await anext(batches, None)
        except TimeoutError:
            if self.cancelled.is_set():
                return None
            raise
        finally:
            self._waiting = None


class RealtimeSession:
    def __init__(self, socket: Socket, words: Words, model: str) -> None:
        self._socket = socket
        self._words = words
        self._model = model
        self._id, self._conversation_id = mint_id("sess"), mint_id("conv")
        self._settings = SessionSettings()
        self._items = Items()
        self._active: _Running | None = None
        self._aside: dict[str, _Running] = {}

    async def open(self) -> None:
        await self._send([{"type": "session.created", "session": self._session}])

    async def refuse(self, error: ApiError, message: JsonObject | None) -> None:
        code = error.code or ("invalid_json" if message is None else error.type)
        event_id = (message or {}).get("event_id")
        named = isinstance(event_id, str) and len(event_id) <= MAX_EVENT_ID
        told = {**error.error_object(), "code": code, "event_id": event_id if named else None}
        await self._send([{"type": "error", "error": told}])

    async def receive(self, message: JsonObject, size: int) -> None:
        event = Reader(message)
        match kind := event.required_string("type"):
            case "session.update":
                event.require("session")
                change = Reader.of(event.get("session"), "session")
                self._settings = changed_session(self._settings, change, self._words)
                await self._send([{"type": "session.updated", "session": self._session}])
            case "conversation.item.create":
                await self._create_item(event)
            case "conversation.item.delete":
                item_id = event.required_string("item_id")
                self._items.delete(item_id)
                await self._send([{"type": "conversation.item.deleted", "item_id": item_id}])
            case "conversation.item.retrieve":
                item = self._items.get(event.required_string("item_id"))
                await self._send([{"type": "conversation.item.retrieved", "item": item}])
            case "conversation.item.truncate":
                await self._truncate_item(event)
            case "response.create":
                self._create_response(Reader.of(event.get("response") or {}, "response"))
            case "response.cancel":
                self._cancel_response(event.string("response_id"))
            case _ if "audio_buffer" in kind:
                raise RequestError(
                    "This server neither hears nor speaks: send text with 'conversation.item.create'.",
                    code="unsupported_value",
                    param="type",
                )
            case _:
                raise wrong_value("type", kind, CLIENT_EVENTS)

    @property
    def _session(self) -> WireEvent:
        return session_object(self._id, self._model, self._settings, self._words)

    async def _send(self, events: Iterable[WireEvent]) -> None:
        await self._socket.send({"event_id": mint_id("event"), **event} for event in events)

    # Items

    async def _create_item(self, event: Reader) -> None:
        event.require("item")
        item = self._items.create(Reader.of(event.get("item"), "item"), event.string("previous_item_id"))
        names = [name for name in (self._words.added, self._words.done) if name is not None]
        before = self._items.before(item["id"])
        await self._send({"type": name, "previous_item_id": before, "item": item} for name in names)

    async def _truncate_item(self, event: Reader) -> None:
        item_id = event.required_string("item_id")
        content_index = event.integer("content_index", minimum=0) or 0
        audio_end_ms = event.integer("audio_end_ms", minimum=0) or 0
        self._items.truncate(item_id, content_index)
        told = {"item_id": item_id, "content_index": content_index, "audio_end_ms": audio_end_ms}
        await self._send([{"type": "conversation.item.truncated", **told}])

    # Responses

    def _create_response(self, wanted: Reader) -> None:
        """Begins a response, which runs beside what the client says next."""
        if self._socket.stopping:
            raise STOPPED
        joins = wanted.choice("conversation", ("auto", "none")) != "none"
        if joins and self._active is not None:
            raise RequestError(
                f"Conversation already has an active response in progress: {self._active.builder.id}. Wait until the "
                "response is finished before creating a new one.",
                code="conversation_already_has_active_response",
            )
        if not joins and len(self._aside) >= MAX_ASIDE:
            raise RequestError(
                f"{MAX_ASIDE} responses beside the conversation are running already.",
                status=429,
                type="requests",
                code="rate_limit_exceeded",
            )
        settings = self._settings.changed(wanted, self._words)
        items = self._items if wanted.get("input") is None else chosen_items(self._items, wanted)
        insists = wanted.get("tool_choice") is not None
        head: WireEvent = {
            "conversation_id": self._conversation_id if joins else None,
            "max_output_tokens": settings.shown_limit,
            "metadata": parse_metadata(wanted) or None,
        }
        builder = RealtimeBuilder(self._words, head, self._items if joins else None)
        running = _Running(builder, turn_of(self._model, settings, items, insists=insists))
        if joins:
            self._active = running
        else:
            self._aside[builder.id] = running
        self._socket.start(self._run(running), f"realtime response {builder.id}")

    def _cancel_response(self, response_id: str | None) -> None:
        running = self._active
        if response_id is not None and (running is None or running.builder.id != response_id):
            running = self._aside.get(response_id)
        if running is None or running.cancelled.is_set():
            raise RequestError("Cancellation failed: no active response found.", code="response_cancel_not_active")
        running.cancel()

    async def _run(self, running: _Running) -> None:
        """Sends a response to its end, whatever happens: every `response.created` has its `response.done`."""
        builder = running.builder
        with self._socket.working() as entry:
            entry.model, entry.response = running.turn.model, builder.id
            exchange = Exchange(running.turn, True, builder, encode_typed)
            try:
                await self._send(builder.start())
                async with aclosing(built(self._socket.request.app, exchange, entry.turn)) as batches:
                    while (batch := await running.next(batches)) is not None:
                        entry.failed = batch.error
                        entry.saw_first_event()
                        self._release(running)
                        await self._send(batch.wire)
            except ConnectionError:
                raise
            except Exception:  # a fault of ours: logged with its trace, told without it
                log.exception("fault in a response", id=entry.id)
                entry.failed = FAULT
            last = self._last(running, entry.failed is FAULT)
            self._release(running)
            await self._send(last)

    def _last(self, running: _Running, failed: bool) -> list[WireEvent]:
        """The end of a response whose turn did not bring it there."""
        builder = running.builder
        if builder.response["status"] != "in_progress":
            return []
        return builder.handle(TurnFailed(FAULT)) if failed else builder.cancel()

    def _release(self, running: _Running) -> None:
        """Once a response is over the next may begin, also before its client was told: it may answer at once."""
        if running.builder.response["status"] == "in_progress":
            return
        if self._active is running:
            self._active = None
        self._aside.pop(running.builder.id, None)


async def connect_realtime(request: web.Request) -> web.StreamResponse:
    model = parse_model(dict(request.query))
    offered = request.headers.get("Sec-WebSocket-Protocol", "")
    beta = "realtime=v1" in request.headers.get("OpenAI-Beta", "") or BETA_PROTOCOL in offered
    return await serve(
        request, lambda socket: RealtimeSession(socket, BETA if beta else GA, model), protocols=(PROTOCOL,)
    )
