"""/v1/responses/{id}: Responses that were made before, or are being made in the background."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

from aiohttp import web

from ..contracts import StoredResponse
from ..errors import RequestError, StoreError
from ..wire.responses.pages import item_page, parse_page, query_integer
from ..wire.sse import encode_typed
from .admission import owner_of
from .background import BACKGROUND_JOBS
from .bodies import json_reply
from .event_stream import Subscription, stream_subscription
from .history import find_chain, said
from .state import STORE

# Responses that are not over.
RUNNING = frozenset({"queued", "in_progress"})

# Seconds between two looks at a response that another process is working on.
POLL = 1.0

# The `error` of one whose process has gone.
ABANDONED_ERROR = {"code": "server_error", "message": "The server ended before this response was finished."}


def _not_found(response_id: str) -> RequestError:
    return RequestError(f"Response with id '{response_id[:80]}' not found.", status=404)


async def _load(request: web.Request, response_id: str) -> StoredResponse:
    """A stored Response as it is now. Raises `RequestError`.

    One that nobody is working on any more has failed, and is stored as that.
    """
    store, owner = request.app[STORE], owner_of(request)
    job = request.app[BACKGROUND_JOBS].find(response_id, owner)
    if job is not None:
        return job.stored()
    # In this order: who gives the lease back has stored the end before.
    is_leased = await store.is_leased(response_id)
    stored = await store.load(response_id, owner)
    if stored is None:
        raise _not_found(response_id)
    if stored.response["status"] in RUNNING and not is_leased:
        stored = replace(stored, response={**stored.response, "status": "failed", "error": ABANDONED_ERROR})
        await store.save(stored)
    return stored


async def get_response(request: web.Request, response_id: str) -> web.StreamResponse:
    if request.query.get("stream") == "true":
        return await _stream(request, response_id)
    return json_reply((await _load(request, response_id)).response)


async def _stream(request: web.Request, response_id: str) -> web.StreamResponse:
    """The events of a background response again, from the one behind `starting_after`, to its end."""
    starting_after = query_integer(request.query, "starting_after", minimum=0)
    after = -1 if starting_after is None else starting_after
    stored = await _load(request, response_id)
    if not stored.response.get("background"):
        raise RequestError(
            "Only a background response can be streamed again: leave 'stream' out.",
            code="unsupported_parameter",
            param="stream",
        )
    job = request.app[BACKGROUND_JOBS].find(response_id, owner_of(request))
    return await stream_subscription(request, job.subscribe(after) if job else _replay(request, response_id, after))


async def _replay(request: web.Request, response_id: str, after: int) -> Subscription:
    """Stored events, once the process that makes them has ended the response."""
    events: bytes | None = None
    while True:
        # A store that is away may come back, and a stream that has begun cannot turn into an error.
        with suppress(StoreError):
            stored = await _load(request, response_id)
            if stored.response["status"] not in RUNNING:
                events = await request.app[STORE].load_events(response_id, stored.owner)
                break
        await asyncio.sleep(POLL)
    if events is None:
        # Its process has gone, and how far its stream had come went with it.
        number = after + 1
        failed = {"type": "response.failed", "sequence_number": number, "response": stored.response}
        yield encode_typed([{**failed, "error": {**ABANDONED_ERROR, "type": "server_error", "param": None}}])
    else:
        yield [piece + b"\n\n" for piece in events.split(b"\n\n")[after + 1 : -1]]


async def delete_response(request: web.Request, response_id: str) -> web.StreamResponse:
    job = request.app[BACKGROUND_JOBS].find(response_id, owner_of(request))
    if job is not None:
        await request.app[BACKGROUND_JOBS].cancel(job)
    if not await request.app[STORE].delete(response_id, owner_of(request)):
        raise _not_found(response_id)
    return json_reply({"id": response_id, "object": "response", "deleted": True})


async def cancel_response(request: web.Request, response_id: str) -> web.StreamResponse:
    """What is over stays as it is."""
    job = request.app[BACKGROUND_JOBS].find(response_id, owner_of(request))
    if job is not None:
        return json_reply((await request.app[BACKGROUND_JOBS].cancel(job)).response)
    stored = await _load(request, response_id)
    if not stored.response.get("background"):
        raise RequestError("Cannot cancel a synchronous response.")
    if stored.response["status"] in RUNNING:
        # Another process finds its lease gone and ends the work.
        stored = replace(stored, response={**stored.response, "status": "cancelled"})
        await request.app[STORE].save(stored)
    return json_reply(stored.response)


async def list_input_items(request: web.Request, response_id: str) -> web.StreamResponse:
    """All that stood before the answer, what it continues included."""
    page = parse_page(request.query)
    stored = await _load(request, response_id)
    chain = [] if stored.previous is None else await find_chain(request.app[STORE], stored.owner, stored.previous)
    return json_reply(item_page([*said(chain), *stored.input], page))
