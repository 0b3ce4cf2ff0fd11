"""POST /v1/responses."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from aiohttp import web

from ..contracts import WireObject
from ..errors import RequestError
from ..wire.json_body import JsonObject
from ..wire.responses.builder import ResponsesBuilder
from ..wire.responses.request import ResponsesRequest, lookups, parse_responses_request
from ..wire.responses.stored_items import stored_input
from ..wire.sse import encode_typed
from .admission import owner_of
from .background import BACKGROUND_JOBS
from .bodies import in_its_time, json_reply, read_json_object
from .delivery import Exchange, answer
from .event_stream import stream_subscription
from .history import Draft, Library, find_history, keep
from .state import CONVERSATION_LOCKS, REQUEST_LOG, STORE


async def create_response(request: web.Request) -> web.StreamResponse:
    body = await read_json_object(request)
    with ExitStack() as held:
        draft = await begin_draft(request, body, held)
        parsed = draft.request
        if parsed.echo["background"]:
            return await _in_background(request, draft, held)
        exchange = Exchange(
            parsed.turn, draft.owner, draft.builder, partial(keep, request, draft, request[REQUEST_LOG])
        )
        return await answer(request, exchange, encode_typed, stream=parsed.stream, comments=True)


async def begin_draft(request: web.Request, body: JsonObject, held: ExitStack, library: Library | None = None) -> Draft:
    """The Response that `body` asks for, not begun yet. What it continues is found in `library`, else in the store.

    `held` is to be closed when the Response is over: a conversation has one at a time. Raises `RequestError`.
    """
    wanted, owner = lookups(body), owner_of(request)
    claim = None
    if wanted.conversation is not None:
        locks = request.app[CONVERSATION_LOCKS]
        claim = await locks.take(owner, wanted.conversation)
        held.callback(locks.let_go, claim)
    history = await find_history(request, wanted, library)

    def read() -> tuple[ResponsesRequest, tuple[WireObject, ...]]:
        parsed = parse_responses_request(body, history, wanted)
        return parsed, stored_input(parsed.input, history.referred)

    parsed, kept = await in_its_time(request, read, body, history.items)
    return Draft(owner, parsed, ResponsesBuilder(parsed), kept, claim)


async def _in_background(request: web.Request, draft: Draft, held: ExitStack) -> web.StreamResponse:
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
    job, queued = await request.app[BACKGROUND_JOBS].start(request.app, draft, request[REQUEST_LOG], held.pop_all())
    return await stream_subscription(request, job.subscribe(-1)) if stream else json_reply(queued)
