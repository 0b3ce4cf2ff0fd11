"""POST /v1/responses in the dialect of tokligence-gateway, and the outputs that an answer waits for.

    POST /v1/responses --> answer with calls --submit_tool_outputs--> the same response goes on
                                   ^                                       |
                                   '---------------- more calls ----------'

A response waits in this process. If outputs are sent again, nothing changes, and the same answer is sent again.
"""

from __future__ import annotations

import asyncio

import orjson
from aiohttp import web
from msgspec import Struct, field
from msgspec.structs import replace

from ..errors import RequestError
from ..wire.json_body import JsonObject, JsonValue
from ..wire.reader import Reader
from ..wire.responses.input_items import History
from ..wire.responses.request import parse_responses_request
from ..wire.responses.stored_items import stored_input
from ..wire.tokligence.loop_guard import guarded
from ..wire.tokligence.request import call_ids, responses_body, submitted
from ..wire.tokligence.tokligence_builder import TokligenceBuilder, encode_dialect, mint_digits
from .admission import owner_of
from .bodies import json_reply, read_json_object
from .delivery import Exchange, answer
from .event_stream import Subscription, stream_subscription
from .state import LOOP_GUARD, STRICT_HISTORY

# Responses that wait for outputs or may be asked for again, the oldest goes first.
MAX_KEPT = 500
MAX_KEPT_BYTES = 64 << 20


class WaitingResponse(Struct):
    """A response as it waits: `body` is its request without `input`, `items` the conversation up to its calls.

    `last` is the answer that was given last, `outputs` have come for it and were not used yet.
    """

    body: JsonObject
    items: list[JsonValue]
    last: TokligenceBuilder
    outputs: dict[str, JsonObject] = field(default_factory=dict)
    turns: asyncio.Lock = field(default_factory=asyncio.Lock)

    def take(self, outputs: dict[str, JsonObject]) -> None:
        self.outputs |= outputs

    def go_on(self, items: list[JsonValue], last: TokligenceBuilder) -> None:
        """The outputs were used, and have their answer."""
        self.items, self.last, self.outputs = items, last, {}

    @property
    def missing(self) -> list[str]:
        """The calls that still wait, by id."""
        return [str(call["call_id"]) for call in self.last.calls if call["call_id"] not in self.outputs]


class WaitingResponses:
    """The dialect's responses of one server, by owner and id."""

    def __init__(self) -> None:
        self._responses: dict[tuple[str, str], tuple[WaitingResponse, int]] = {}
        self._bytes = 0

    def keep(self, owner: str, waiting: WaitingResponse) -> None:
        self._drop((owner, waiting.last.id))
        size = len(orjson.dumps([waiting.body, waiting.items]))
        self._responses[owner, waiting.last.id] = (waiting, size)
        self._bytes += size
        while len(self._responses) > MAX_KEPT or self._bytes > MAX_KEPT_BYTES:
            self._drop(next(iter(self._responses)))

    def _drop(self, key: tuple[str, str]) -> None:
        _, size = self._responses.pop(key, (None, 0))
        self._bytes -= size

    def find(self, owner: str, response_id: str) -> WaitingResponse | None:
        return self._responses.get((owner, response_id), (None, 0))[0]

    def find_call(self, owner: str, wanted: set[str]) -> WaitingResponse | None:
        """The newest response with one of these calls."""
        for (whose, _), (waiting, _) in reversed(self._responses.items()):
            if whose == owner and wanted & call_ids(waiting.items, "function_call"):
                return waiting
        return None


WAITING = web.AppKey("waiting", WaitingResponses)


def _wants_stream(request: web.Request, body: JsonObject) -> bool:
    accepts = "text/event-stream" in request.headers.get("Accept", "")
    return body.get("stream") is True or request.query.get("stream") == "true" or accepts


async def create_dialect_response(request: web.Request) -> web.StreamResponse:
    body = await read_json_object(request)
    stream = _wants_stream(request, body)
    made = responses_body(body)
    items = list(stored_input(made.pop("input", None), mint=mint_digits)) if "input" in made else None
    if items is None:
        raise RequestError("Missing required parameter: 'input'.", code="missing_required_parameter", param="input")
    conversation: list[JsonValue] = [*items]
    outputs = call_ids(conversation, "function_call_output") - call_ids(conversation, "function_call")
    if outputs:
        before = request.app[WAITING].find_call(owner_of(request), outputs)
        if before is not None:
            answered = call_ids(before.items, "function_call_output")
            fresh = [item for item in items if item.get("call_id") not in answered]
            if not fresh:
                return await _told_again(request, before, stream=stream)
            made = {**_after_outputs(before.body), **made}
            conversation = [*before.items, *fresh]
    return await _turn(request, made, conversation, stream=stream)


async def submit_tool_outputs(request: web.Request, response_id: str) -> web.StreamResponse:
    """Goes on with a response once all its calls have their outputs; 202 as long as they have not."""
    body = await read_json_object(request)
    outputs = submitted(Reader(body))
    waiting = request.app[WAITING].find(owner_of(request), response_id)
    if waiting is None:
        raise RequestError(f"Response with id '{response_id[:80]}' not found.", status=404)
    async with waiting.turns:
        return await _submitted(request, waiting, outputs, stream=_wants_stream(request, body))


async def _submitted(
    request: web.Request, waiting: WaitingResponse, outputs: dict[str, JsonObject], *, stream: bool
) -> web.StreamResponse:
    answered = call_ids(waiting.items, "function_call_output")
    pending = {str(call["call_id"]) for call in waiting.last.calls}
    if unknown := outputs.keys() - answered - pending:
        raise RequestError(
            f"No tool call found with id {min(unknown)[:80]} in response {waiting.last.id}.", param="tool_outputs"
        )
    fresh = {call_id: output for call_id, output in outputs.items() if call_id in pending}
    if not fresh:
        return await _told_again(request, waiting, stream=stream)
    waiting.take(fresh)
    if left := waiting.missing:
        return json_reply({"status": "accepted", "missing": left}, status=202)
    ordered = [waiting.outputs[str(call["call_id"])] for call in waiting.last.calls]
    body = _after_outputs(waiting.body)
    return await _turn(request, body, [*waiting.items, *ordered], stream=stream, going_on=waiting)


def _after_outputs(body: JsonObject) -> JsonObject:
    """A demand for a call was met; it does not hold for the answer to its outputs."""
    return {name: value for name, value in body.items() if name != "tool_choice" or value in ("auto", "none")}


async def _turn(
    request: web.Request,
    body: JsonObject,
    items: list[JsonValue],
    *,
    stream: bool,
    going_on: WaitingResponse | None = None,
) -> web.StreamResponse:
    """Answers `items`, and keeps the conversation for the outputs that the answer may ask for."""
    unstored = History(strict=request.app[STRICT_HISTORY])
    parsed = parse_responses_request({**body, "input": items}, unstored)
    turn = replace(parsed.turn, streamed=stream)
    if request.app[LOOP_GUARD]:
        turn = replace(turn, transcript=guarded(turn.transcript))
    builder = TokligenceBuilder(turn.model)
    if going_on is not None:
        builder = TokligenceBuilder(turn.model, response_id=going_on.last.id, created_at=going_on.last.created_at)

    async def keep() -> None:
        waiting = going_on or WaitingResponse(body, items, builder)
        waiting.go_on([*items, *builder.items], builder)
        request.app[WAITING].keep(owner_of(request), waiting)

    exchange = Exchange(turn, owner_of(request), builder, keep, mint=mint_digits)
    return await answer(request, exchange)


async def _told_again(request: web.Request, waiting: WaitingResponse, *, stream: bool) -> web.StreamResponse:
    if not stream:
        return json_reply(waiting.last.body)

    async def pieces() -> Subscription:
        yield encode_dialect(waiting.last.events)

    return await stream_subscription(request, pieces())
