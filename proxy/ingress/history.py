"""The conversation that a request continues, and what becomes of its own answer."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import partial
from typing import Protocol

import structlog
from aiohttp import web
from msgspec import Struct
from structlog.typing import FilteringBoundLogger

from prompts import Deferred

from ..contracts import Claim, StoredResponse, WireObject
from ..errors import ApiError, RequestError, StoreError
from ..ids import MintId, mint_id, tag_of
from ..wire.json_body import JsonObject
from ..wire.reader import shown
from ..wire.responses.input_items import History
from ..wire.responses.request import Lookups, ResponsesRequest, parse_responses_request
from ..wire.responses.responses_builder import ResponsesBuilder
from ..wire.responses.stored_items import stored_input
from .admission import owner_of
from .bodies import beside_if, is_long
from .locks import LEASE, lock_lost
from .metrics import METRICS
from .request_log import RequestLog
from .state import CONVERSATION_LOCKS, LOST, STORE, STRICT_HISTORY

# A chain of Responses that is longer than this is not followed further back, and cannot be continued. A long loop of
# an agent has a Response for each step.
MAX_CHAIN = 10_000

# What an error says of the cause where nothing can be found, ever.
KEEPS_NOTHING = "This server keeps nothing (--store none): send the whole conversation in 'input', with 'store' false."

# How a client is warned that nobody will find its answer.
NOT_STORED = "not stored"

# Responses that can be continued.
CONTINUABLE = frozenset({"completed", "incomplete"})

log: FilteringBoundLogger = structlog.get_logger(__name__)


class Library(Protocol):
    """What a request may refer to: a `ResponseStore`, or one with more in front of it."""

    async def load(self, response_id: str, owner: str) -> StoredResponse | None: ...

    async def find_items(self, item_ids: Sequence[str], owner: str) -> dict[str, WireObject]: ...

    async def items(self, conversation_id: str, owner: str) -> tuple[WireObject, ...] | None: ...


async def find_chain(store: Library, owner: str, response_id: str) -> list[StoredResponse]:
    """A Response and those it continues, oldest first, as far back as they are still there."""
    chain: list[StoredResponse] = []
    step: str | None = response_id
    while step is not None and len(chain) < MAX_CHAIN and (stored := await store.load(step, owner)) is not None:
        chain.append(stored)
        step = stored.previous
    return chain[::-1]


def said(chain: list[StoredResponse]) -> tuple[WireObject, ...]:
    """The items of a chain, input and output."""
    return tuple(item for stored in chain for item in (*stored.input, *stored.output))


def conversation_not_found(conversation_id: str) -> RequestError:
    return RequestError(f"Conversation with id '{conversation_id[:80]}' not found.", status=404)


async def find_history(request: web.Request, wanted: Lookups) -> History:
    """What a request refers to. Raises `RequestError` for what is not there."""
    return await _history(request.app, owner_of(request), wanted, request.app[STORE])


async def _history(app: web.Application, owner: str, wanted: Lookups, store: Library) -> History:
    strict = app[STRICT_HISTORY]
    why = "" if app[STORE].keeps else f" {KEEPS_NOTHING}"
    referred = await store.find_items(wanted.referred, owner) if wanted.referred else {}
    if why and (lost := next((item_id for item_id in wanted.referred if item_id not in referred), None)) is not None:
        raise RequestError(f"Item with id '{shown(lost)}' not found.{why}", status=404, param="input")
    if wanted.conversation is not None:
        items = await store.items(wanted.conversation, owner)
        if items is None:
            raise conversation_not_found(wanted.conversation)
        return History(items, referred, strict)
    if wanted.previous_response_id is None:
        return History((), referred, strict)
    chain = await find_chain(store, owner, wanted.previous_response_id)
    # A chain with a hole in it, or without its beginning, would be another conversation.
    if len(chain) == MAX_CHAIN and chain[0].previous is not None:
        raise RequestError(
            f"Previous response with id '{wanted.previous_response_id[:80]}' continues more than {MAX_CHAIN - 1:,} "
            "others: send the conversation, or a summary of it, in 'input'.",
            code="invalid_value",
            param="previous_response_id",
        )
    if not chain or chain[0].previous is not None:
        missing = chain[0].previous if chain else wanted.previous_response_id
        if str(missing) in app[LOST]:
            raise ApiError(
                f"Previous response with id '{str(missing)[:80]}' could not be stored when it was made: send the whole "
                "conversation in 'input'.",
                status=503,
                code="store_unavailable",
                param="previous_response_id",
                retryable=False,
            )
        raise RequestError(
            f"Previous response with id '{str(missing)[:80]}' not found.{why}",
            code="previous_response_not_found",
            param="previous_response_id",
        )
    if (status := chain[-1].response["status"]) not in CONTINUABLE:
        raise RequestError(
            f"Previous response with id '{wanted.previous_response_id[:80]}' cannot be continued: it is {status}.",
            code="previous_response_not_completed",
            param="previous_response_id",
        )
    return History(said(chain), referred, strict)


class Draft(Struct, frozen=True):
    """A Response that is being made. `input` are the request's own items, as they are kept, and `claim` is what it has
    on its conversation.
    """

    owner: str
    request: ResponsesRequest
    builder: ResponsesBuilder
    input: Sequence[WireObject]
    claim: Claim | None

    @property
    def conversation(self) -> str | None:
        """The conversation that the answer joins."""
        conversation = self.request.echo.get("conversation")
        return None if conversation is None else str(conversation["id"])

    @property
    def mint(self) -> MintId:
        """Makes ids that are known as this Response's, and as those of what it continues and of what continues it."""
        return partial(mint_id, tag=tag_of(self.builder.id))

    def stored(self) -> StoredResponse:
        """The Response as it is now."""
        return StoredResponse(
            id=self.builder.id,
            previous=self.request.echo["previous_response_id"],
            owner=self.owner,
            created_at=self.builder.created_at,
            input=tuple(self.input),
            response=self.builder.response,
        )


async def make_draft(
    app: web.Application,
    owner: str,
    body: JsonObject,
    wanted: Lookups,
    claim: Claim | None,
    *,
    long: bool,
    library: Library | None = None,
    begun: StoredResponse | None = None,
    chain: str = "",
) -> Draft:
    """The Response that `body` asks for, not begun yet; with `begun` that one again. What is `wanted` for it is found
    in `library`, else in the store; `chain` is the tag of a conversation that begins. `long`: it takes long to read it.
    Raises `RequestError`.
    """
    history = await _history(app, owner, wanted, library or app[STORE])
    long = long or is_long(history.items)

    def read() -> tuple[ResponsesRequest, Sequence[WireObject]]:
        parsed = parse_responses_request(body, history, wanted)
        parsed.echo["store"] &= app[STORE].keeps
        if begun is not None:
            return parsed, begun.input
        # What goes on from a stored one may say what stands there already.
        whole = wanted.previous_response_id is None and wanted.conversation is None
        kept = Deferred(partial(stored_input, parsed.input, history.referred, None if whole else mint_id))
        if long and (parsed.echo["store"] or wanted.conversation is not None or library is not None):
            len(kept)  # will be looked at, so it is made here, where it holds up nobody
        return parsed, kept

    parsed, kept = await beside_if(long, app, owner, read)
    tag = tag_of(wanted.previous_response_id or "") or chain if begun is None else tag_of(begun.id)
    builder = ResponsesBuilder(parsed, mint=partial(mint_id, tag=tag or secrets.token_hex(4)), begun=begun)
    return Draft(owner, parsed, builder, kept, claim)


async def keep(request: web.Request, draft: Draft, entry: RequestLog) -> None:
    """Stores a Response that is over, before its last event leaves. A store that fails does not fail the answer: its
    client is warned. Raises `RequestError` when its conversation is another request's by now.
    """
    kept = True
    store, whole = request.app[STORE], bool(draft.request.echo["store"])
    try:
        if whole:
            kept = await store.save(draft.stored(), append_to=draft.conversation, claim=draft.claim)
        elif draft.conversation is not None:
            stored = draft.stored()
            items = [*stored.input, *stored.output]
            if not await store.add_items(draft.conversation, draft.owner, items, claim=draft.claim):
                # It was deleted, which is no fault of the answer, or it is another request's.
                kept = draft.claim is None or await store.renew_claim(draft.claim, LEASE)
    except StoreError as error:
        entry.turn.warn(NOT_STORED)
        request.app[METRICS].not_stored("response" if whole else "items")
        log.warning("not_stored", response=draft.builder.id, error=error.message)
        if whole:
            request.app[LOST].append(draft.builder.id)
    if draft.claim is not None:
        # Its client may go on with the conversation as soon as it has the last event, in another process.
        await request.app[CONVERSATION_LOCKS].release(draft.claim)
    if not kept:
        draft.builder.take_back()
        raise lock_lost()
