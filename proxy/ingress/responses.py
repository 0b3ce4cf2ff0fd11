"""POST /v1/responses."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from aiohttp import web
from msgspec.structs import replace

from ..errors import RequestError
from ..wire.json_body import JsonObject
from ..wire.responses.request import lookups
from .admission import owner_of
from .background import BACKGROUND_JOBS
from .balancer import chain_of, request_of
from .bodies import json_reply, parse_in_its_time, read_json_body, reads_long
from .delivery import Exchange, answer
from .dialects import check_dialect
from .event_stream import stream_subscription
from .following import follow
from .history import Draft, Library, keep, make_draft
from .rate_limits import RATE_LIMITS
from .state import CONVERSATION_LOCKS, REQUEST_LOG, STORE


async def create_response(request: web.Request) -> web.StreamResponse:
    check_dialect(request)
    written = await read_json_body(request)
    body = await parse_in_its_time(request, written)
    with ExitStack() as held:
        draft = await begin_draft(request, body, held)
        parsed = draft.request
        if parsed.echo["background"]:
            return await _in_background(request, draft, written, held)
        keeping = partial(keep, request, draft, request[REQUEST_LOG])
        return await answer(request, replace(_foreground(draft), keep=keeping))


async def begin_response(request: web.Request, body: JsonObject, held: ExitStack) -> Exchange:
    """What `body` asks for, at once and without being kept. Raises `RequestError`."""
    body = {name: value for name, value in body.items() if name != "background"} | {"store": False}
    return _foreground(await begin_draft(request, body, held))


def _foreground(draft: Draft) -> Exchange:
    return Exchange(
        replace(draft.request.turn, streamed=draft.request.stream), draft.owner, draft.builder, mint=draft.mint
    )


async def begin_draft(request: web.Request, body: JsonObject, held: ExitStack, library: Library | None = None) -> Draft:
    """The Response that `body` asks for, not begun yet. What it continues is found in `library`, else in the store.

    `held` is to be closed when the Response is over: a conversation has one at a time. Raises `RequestError`.
    """
    wanted, owner = lookups(body), owner_of(request)
    claim = None
    if wanted.conversation is not None:
        locks = request.app[CONVERSATION_LOCKS]
        outlives = body.get("background") is True and request.app[STORE].journal.takes_over
        # All requests of a WebSocket come under the name of the one that opened it.
        name = request_of(request.headers) if request.method == "POST" else ""
        claim = await locks.take(owner, wanted.conversation, outlives=outlives, request=name)
        held.callback(locks.let_go, claim)
    long, chain = reads_long(request, body), chain_of(request.headers)
    return await make_draft(request.app, owner, body, wanted, claim, long=long, library=library, chain=chain)


async def _in_background(request: web.Request, draft: Draft, body: bytes, held: ExitStack) -> web.StreamResponse:
    """Starts the turn and answers at once, or with its events as they come."""
    if not request.app[STORE].keeps:
        raise RequestError(
            "Background responses have to be stored, and this server stores none (--store none): leave 'background' "
            "out.",
            code="unsupported_parameter",
            param="background",
        )
    stream = draft.request.stream
    request[REQUEST_LOG].answers(draft.request.turn.model, draft.builder.id, stream=stream)
    request.app[RATE_LIMITS].take(draft.owner)
    queued = await request.app[BACKGROUND_JOBS].start(draft, body, request[REQUEST_LOG], held.pop_all())
    if not stream:
        return json_reply(queued)
    return await stream_subscription(request, follow(request.app, draft.owner, draft.builder.id, -1))
