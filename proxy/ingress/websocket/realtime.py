"""GET /v1/realtime: a conversation in text that lasts as long as its connection.

    conversation.item.*, session.update --> at once, also while a response is being made
    response.create --> one response that joins the conversation, and some beside it
    response.cancel --> response.done, cancelled; the session goes on

A tool's output does not start an answer. The client asks for that with `response.create`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager

from aiohttp import web

from ...contracts import TurnRequest
from ...errors import ApiError, RequestError
from ...ids import mint_id
from ...wire.builder import AnswerBuilder, WireEvent
from ...wire.json_body import JsonObject
from ...wire.parameters import parse_metadata
from ...wire.reader import Reader, wrong_value
from ...wire.realtime.items import Items, chosen_items
from ...wire.realtime.realtime_builder import RealtimeBuilder
from ...wire.realtime.request import SessionSettings, changed_session, parse_model, session_object, turn_of
from ...wire.realtime.versions import BETA, GA, Words
from ..admission import owner_of
from ..bodies import note_message
from ..delivery import Cancellation, Exchange, deliver
from ..rate_limits import RATE_LIMITS
from .socket import Socket, serve_socket, shutting_down

# Responses beside the one that joins the conversation.
MAX_ASIDE = 4

# Characters of a client's id of its event that an error repeats.
MAX_EVENT_ID = 512

# What browsers offer, who cannot send headers with a WebSocket.
PROTOCOL = "realtime"
BETA_PROTOCOL = "openai-beta.realtime-v1"

# The events that a client may send, as an error lists them.
REALTIME_EVENTS = (
    "session.update", "conversation.item.create", "conversation.item.delete", "conversation.item.retrieve",
    "conversation.item.truncate", "response.create", "response.cancel",
)  # fmt: skip


class RunningResponse:
    """A response that is being made, and the sink of its delivery. Nothing of it waits for the first batch.

    It is `released` once it is over and before its client is told so: that may ask for the next one at once.
    """

    begun = True

    def __init__(
        self,
        builder: RealtimeBuilder,
        turn: TurnRequest,
        owner: str,
        tell: Callable[[Iterable[WireEvent]], Awaitable[None]],
        release: Callable[[RunningResponse], None],
    ) -> None:
        self.builder = builder
        self._cancellation = Cancellation()
        self.exchange = Exchange(turn, owner, builder, cancellation=self._cancellation)
        self._tell = tell
        self._release = release

    @property
    def cancelled(self) -> bool:
        return self._cancellation.ending is not None

    def cancel(self) -> None:
        self._cancellation.request(self.builder.cancel)

    @asynccontextmanager
    async def open(self, builder: AnswerBuilder) -> AsyncIterator[None]:
        await self._tell(builder.start())
        yield

    def send(self, events: Sequence[WireEvent]) -> Awaitable[None]:
        return self._tell(events)

    def finish(self, events: Sequence[WireEvent], error: ApiError | None) -> Awaitable[None]:
        self._release(self)
        return self._tell(events)


class RealtimeSession:
    def __init__(self, socket: Socket, owner: str, words: Words, model: str) -> None:
        self._socket = socket
        self._owner = owner
        self._words = words
        self._model = model
        self._id, self._conversation_id = mint_id("sess"), mint_id("conv")
        self._settings = SessionSettings()
        self._items = Items()
        self._active: RunningResponse | None = None
        self._aside: dict[str, RunningResponse] = {}

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
                self._create_response(event.object("response") or Reader({}, "response"))
            case "response.cancel":
                self._cancel_response(event.string("response_id"))
            case _ if "audio_buffer" in kind:
                raise RequestError(
                    "This server neither hears nor speaks: send text with 'conversation.item.create'.",
                    code="unsupported_value",
                    param="type",
                )
            case _:
                raise wrong_value("type", kind, REALTIME_EVENTS)

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
            raise shutting_down()
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
        self._socket.request.app[RATE_LIMITS].take(self._owner)
        settings = self._settings.changed(wanted, self._words)
        items = self._items if wanted.get("input") is None else chosen_items(self._items, wanted)
        insists = wanted.get("tool_choice") is not None
        head: WireEvent = {
            "conversation_id": self._conversation_id if joins else None,
            "max_output_tokens": settings.shown_limit,
            "metadata": parse_metadata(wanted) or None,
        }
        builder = RealtimeBuilder(self._words, head, self._items if joins else None)
        turn = turn_of(self._model, settings, items, insists=insists)
        running = RunningResponse(builder, turn, self._owner, self._send, self._release)
        if joins:
            self._active = running
        else:
            self._aside[builder.id] = running
        asked: WireEvent = {"type": "response.create", "response": wanted.raw}
        asked |= {"session": self._session, "items": list(items)}
        self._socket.start(self._run(running, asked), f"realtime response {builder.id}")

    def _cancel_response(self, response_id: str | None) -> None:
        running = self._active
        if response_id is not None and (running is None or running.builder.id != response_id):
            running = self._aside.get(response_id)
        if running is None or running.cancelled:
            raise RequestError("Cancellation failed: no active response found.", code="response_cancel_not_active")
        running.cancel()

    async def _run(self, running: RunningResponse, asked: WireEvent) -> None:
        """`asked` is the client's message with all that it means: the session, and the conversation until now."""
        app = self._socket.request.app
        with self._socket.working() as entry:
            note_message(app, entry, asked)
            entry.answers(running.exchange.turn.model, running.builder.id, stream=True)
            await deliver(app, running.exchange, running, entry)

    def _release(self, running: RunningResponse) -> None:
        if self._active is running:
            self._active = None
        self._aside.pop(running.builder.id, None)


async def connect_realtime(request: web.Request) -> web.StreamResponse:
    model = parse_model(dict(request.query))
    offered = request.headers.get("Sec-WebSocket-Protocol", "")
    beta = "realtime=v1" in request.headers.get("OpenAI-Beta", "") or BETA_PROTOCOL in offered
    return await serve_socket(
        request,
        lambda socket: RealtimeSession(socket, owner_of(request), BETA if beta else GA, model),
        protocols=(PROTOCOL,),
    )
