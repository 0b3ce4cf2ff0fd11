"""Bodies of /v1/conversations."""

from __future__ import annotations

from typing import get_args

from ...contracts import StoredConversation, WireObject
from ...errors import RequestError
from ..json_body import JsonObject
from ..output import ItemStatus
from ..reader import Reader, wrong_prefix
from .input_items import CALL_NOUNS, OUTPUTS, History, check_added, referred_id
from .stored_items import ID_PREFIXES, stored_input

# Items that one request may add.
MAX_ADDED = 20

# Kinds whose ids OpenAI is known to hold to their prefix.
PREFIXED = ("message", "function_call")

# Kinds whose status is one of these. Others have more, as `failed`.
WITH_USUAL_STATUS = ("message", *CALL_NOUNS, *OUTPUTS)
STATUSES = get_args(ItemStatus)


def added_items(body: JsonObject, history: History) -> tuple[JsonObject, ...]:
    """`items` of a request, checked and as they are kept; `history` is what stands before them.

    Raises `RequestError`. A call may be added before its output.
    """
    request = Reader(body)
    standing = {item.get("id") for item in history.items}
    for item in request.objects("items", max_length=MAX_ADDED):
        _check_id(item, standing)
        _check_status(item)
    check_added(request, history, max_length=MAX_ADDED)
    return stored_input(body.get("items"), history.referred)


def _check_id(item: Reader, standing: set[object]) -> None:
    """`standing` are the ids of the items that the conversation has."""
    if not (identifier := item.string("id")):
        return
    kind = item.string("type") or "message"
    if kind in PREFIXED and referred_id(item.raw) is None and not identifier.startswith(ID_PREFIXES[kind]):
        raise wrong_prefix(item.at("id"), identifier, ID_PREFIXES[kind])
    if identifier in standing:
        raise RequestError("Item already in conversation", code="item_already_in_conversation", param="items")


def _check_status(item: Reader) -> None:
    if (item.string("type") or "message") in WITH_USUAL_STATUS:
        item.choice("status", STATUSES)
    else:
        item.string("status")


def conversation_object(conversation: StoredConversation) -> WireObject:
    return {
        "id": conversation.id,
        "object": "conversation",
        "created_at": conversation.created_at,
        "metadata": conversation.metadata,
    }
