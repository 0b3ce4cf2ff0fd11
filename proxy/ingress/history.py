"""Stored Responses: what a request continues, and what becomes of its own."""

from __future__ import annotations

from hashlib import sha256

import structlog
from aiohttp import web

from ..contracts import StoredResponse, WireObject
from ..errors import RequestError, StoreError
from ..wire.input_items import History
from ..wire.json_body import JsonObject
from ..wire.responses import ResponsesBuilder
from ..wire.responses_request import ResponsesRequest, lookups, stored_input
from .replies import json_reply
from .state import STORE

# A chain of Responses that is longer than this is not followed further back.
MAX_CHAIN = 1_000

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("tagcall.store")


def owner_of(request: web.Request) -> str:
    """Whose Responses these are: those of one key are not for another."""
    key = request.headers.get("Authorization") or request.headers.get("X-Api-Key") or ""
    return sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


async def find_history(request: web.Request, body: JsonObject) -> History:
    """What `body` refers to. Raises `RequestError` for a previous Response that is not there."""
    wanted = lookups(body)
    store, owner = request.app[STORE], owner_of(request)
    referred: dict[str, WireObject] = {}
    for identifier in wanted.referred:
        if (item := await store.find_item(identifier, owner)) is not None:
            referred[identifier] = item
    chain: list[StoredResponse] = []
    step = wanted.previous_response_id
    while step is not None and len(chain) < MAX_CHAIN:
        stored = await store.load(step, owner)
        if stored is None:
            raise RequestError(
                f"Previous response with id '{step[:80]}' not found.",
                code="previous_response_not_found",
                param="previous_response_id",
            )
        chain.append(stored)
        step = stored.previous
    items = [item for stored in reversed(chain) for item in (*stored.input, *stored.response["output"])]
    return History(tuple(items), referred)


async def keep(request: web.Request, parsed: ResponsesRequest, builder: ResponsesBuilder) -> None:
    """Stores a Response that is over, before its last event leaves. A store that fails does not fail the answer."""
    if not parsed.echo["store"]:
        return
    stored = StoredResponse(
        id=builder.id,
        previous=parsed.echo["previous_response_id"],
        owner=owner_of(request),
        created_at=builder.created_at,
        input=stored_input(parsed.input),
        response=builder.response,
    )
    try:
        await request.app[STORE].save(stored)
    except StoreError as error:
        log.warning("not_stored", response=builder.id, error=error.message)


def _not_found(response_id: str) -> RequestError:
    return RequestError(f"Response with id '{response_id[:80]}' not found.", status=404)


async def get_response(request: web.Request, response_id: str) -> web.StreamResponse:
    if request.query.get("stream") == "true":
        raise RequestError(
            "A stored response cannot be streamed: leave 'stream' out.", code="unsupported_parameter", param="stream"
        )
    stored = await request.app[STORE].load(response_id, owner_of(request))
    if stored is None:
        raise _not_found(response_id)
    return json_reply(stored.response)


async def delete_response(request: web.Request, response_id: str) -> web.StreamResponse:
    if not await request.app[STORE].delete(response_id, owner_of(request)):
        raise _not_found(response_id)
    return json_reply({"id": response_id, "object": "response", "deleted": True})
