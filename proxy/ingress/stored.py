"""/v1/responses/{id}: Responses that were made before, or are being made in the background."""

from __future__ import annotations

from aiohttp import web

from ..contracts import StoredResponse, WireObject
from ..errors import RequestError
from ..wire.responses.pages import check_include, item_page, parse_page, query_integer
from .admission import owner_of
from .background import BACKGROUND_JOBS, RUNNING, end_elsewhere
from .bodies import json_reply
from .event_stream import stream_subscription
from .following import follow, load_current
from .history import find_chain, said
from .state import STORE

# So often a response is to be cancelled that goes from one process to another meanwhile.
ATTEMPTS = 3

# How clients write `stream=true` in a query; `True` is Python's.
TRUE = frozenset({"true", "True", "1"})


def _not_found(response_id: str) -> RequestError:
    return RequestError(f"Response with id '{response_id[:80]}' not found.", status=404)


async def _load(request: web.Request, response_id: str) -> StoredResponse:
    """A stored Response as it is now. Raises `RequestError`."""
    stored = await load_current(request.app, owner_of(request), response_id)
    if stored is None:
        raise _not_found(response_id)
    return stored


async def get_response(request: web.Request, response_id: str) -> web.StreamResponse:
    check_include(request.query.items())
    if request.query.get("stream") in TRUE:
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
    return await stream_subscription(request, follow(request.app, stored.owner, response_id, after))


async def delete_response(request: web.Request, response_id: str) -> web.StreamResponse:
    job = request.app[BACKGROUND_JOBS].find(response_id, owner_of(request))
    if job is not None:
        await request.app[BACKGROUND_JOBS].cancel(job)
    if not await request.app[STORE].delete(response_id, owner_of(request)):
        raise _not_found(response_id)
    return json_reply({"id": response_id, "object": "response", "deleted": True})


async def cancel_response(request: web.Request, response_id: str) -> web.StreamResponse:
    """What is over stays as it is."""
    jobs, store = request.app[BACKGROUND_JOBS], request.app[STORE]
    for _ in range(ATTEMPTS):
        job = jobs.find(response_id, owner_of(request))
        if job is not None and (ended := await jobs.cancel(job)) is not None:
            return json_reply(ended.response)
        stored = await _load(request, response_id)
        if not stored.response.get("background"):
            raise RequestError("Cannot cancel a synchronous response.")
        if stored.response["status"] not in RUNNING:
            break
        # Another process finds its lease gone and ends the work. Without one it has just ended it.
        if (run := await store.lease_of(response_id)) is not None:
            await end_elsewhere(store, stored, run, None)
    return json_reply((await _load(request, response_id)).response)


async def list_input_items(request: web.Request, response_id: str) -> web.StreamResponse:
    """All that stood before the answer, what it continues included."""
    page = parse_page(request.query)
    check_include(request.query.items())
    stored = await _load(request, response_id)
    return json_reply(item_page([*await _before(request, stored), *stored.input], page))


async def _before(request: web.Request, stored: StoredResponse) -> tuple[WireObject, ...]:
    """What a Response continues, as far as it is still there: others, or what its conversation held then."""
    store = request.app[STORE]
    if stored.previous is not None:
        return said(await find_chain(store, stored.owner, stored.previous))
    match stored.response.get("conversation"):
        case {"id": str(conversation_id)}:
            items = await store.items(conversation_id, stored.owner) or ()
            own = {item["id"] for item in (*stored.input, *stored.output)}
            # A Response that is not over has not been added to it yet, and nothing else is.
            end = len(items) if stored.response["status"] in RUNNING else 0
            return items[: next((place for place, item in enumerate(items) if item["id"] in own), end)]
        case _:
            return ()
