"""/v1/conversations: items that a client keeps here and continues by an id."""

from __future__ import annotations

import time

from aiohttp import web

from ..contracts import StoredConversation, WireObject
from ..errors import RequestError
from ..ids import mint_id
from ..wire.json_body import JsonObject
from ..wire.parameters import parse_metadata
from ..wire.reader import Reader, missing
from ..wire.responses.conversations import added_items, conversation_object
from ..wire.responses.input_items import History, referred_ids
from ..wire.responses.pages import check_include, item_list, item_page, parse_page
from .admission import owner_of
from .bodies import json_reply, read_json_object
from .history import conversation_not_found
from .state import CONVERSATION_LOCKS, STORE


def _item_not_found(item_id: str) -> RequestError:
    return RequestError(f"Item with id '{item_id[:80]}' not found.", status=404)


async def _load(request: web.Request, conversation_id: str) -> StoredConversation:
    conversation = await request.app[STORE].load_conversation(conversation_id, owner_of(request))
    if conversation is None:
        raise conversation_not_found(conversation_id)
    return conversation


async def _items(request: web.Request, conversation_id: str) -> tuple[WireObject, ...]:
    items = await request.app[STORE].items(conversation_id, owner_of(request))
    if items is None:
        raise conversation_not_found(conversation_id)
    return items


async def _added(request: web.Request, body: JsonObject, before: tuple[WireObject, ...] = ()) -> tuple[JsonObject, ...]:
    referred = await request.app[STORE].find_items(referred_ids(body.get("items")), owner_of(request))
    return added_items(body, History(before, referred))


async def create_conversation(request: web.Request) -> web.StreamResponse:
    if not request.app[STORE].keeps:
        raise RequestError(
            "This server keeps no conversations (--store none): send the whole conversation in 'input'.",
            code="unsupported_parameter",
        )
    body = await read_json_object(request) if request.can_read_body else {}
    metadata = parse_metadata(Reader(body))
    items = await _added(request, body)
    conversation = StoredConversation(mint_id("conv"), owner_of(request), int(time.time()), metadata)
    await request.app[STORE].save_conversation(conversation, items)
    return json_reply(conversation_object(conversation))


async def get_conversation(request: web.Request, conversation_id: str) -> web.StreamResponse:
    return json_reply(conversation_object(await _load(request, conversation_id)))


async def update_conversation(request: web.Request, conversation_id: str) -> web.StreamResponse:
    reader = Reader(await read_json_object(request))
    if "metadata" not in reader.raw:  # it would clear what there is
        raise missing("metadata")
    metadata = parse_metadata(reader)
    conversation = await request.app[STORE].update_conversation(conversation_id, owner_of(request), metadata)
    if conversation is None:
        raise conversation_not_found(conversation_id)
    return json_reply(conversation_object(conversation))


async def delete_conversation(request: web.Request, conversation_id: str) -> web.StreamResponse:
    if not await request.app[STORE].delete_conversation(conversation_id, owner_of(request)):
        raise conversation_not_found(conversation_id)
    return json_reply({"id": conversation_id, "object": "conversation.deleted", "deleted": True})


async def list_items(request: web.Request, conversation_id: str) -> web.StreamResponse:
    page = parse_page(request.query)
    check_include(request.query.items())
    return json_reply(item_page(await _items(request, conversation_id), page))


async def add_items(request: web.Request, conversation_id: str) -> web.StreamResponse:
    check_include(request.query.items())
    body = await read_json_object(request)
    Reader(body).require("items")
    owner = owner_of(request)
    async with request.app[CONVERSATION_LOCKS].lock(owner, conversation_id):
        items = await _added(request, body, await _items(request, conversation_id))
        if not await request.app[STORE].add_items(conversation_id, owner, items):
            raise conversation_not_found(conversation_id)
    return json_reply(item_list(items))


async def get_item(request: web.Request, conversation_id: str, item_id: str) -> web.StreamResponse:
    check_include(request.query.items())
    for item in await _items(request, conversation_id):
        if item["id"] == item_id:
            return json_reply(item)
    raise _item_not_found(item_id)


async def delete_item(request: web.Request, conversation_id: str, item_id: str) -> web.StreamResponse:
    """Answers with the conversation, as OpenAI does."""
    conversation = await _load(request, conversation_id)
    if not await request.app[STORE].delete_item(conversation_id, item_id, owner_of(request)):
        raise _item_not_found(item_id)
    return json_reply(conversation_object(conversation))
