"""A stored Response, the one that continues it, and a conversation."""

from __future__ import annotations

from msgspec.structs import replace

from proxy.contracts import StoredConversation, StoredResponse, WireObject
from proxy.ingress.history import Library

RESPONSE = StoredResponse(
    id="resp_1",
    previous=None,
    owner="me",
    created_at=1_000,
    input=({"id": "msg_1", "type": "message", "role": "user", "content": "h\u00e9llo"},),
    response={"id": "resp_1", "status": "completed", "output": [{"id": "msg_2", "type": "message", "content": []}]},
)
SECOND = replace(
    RESPONSE, id="resp_2", previous="resp_1", response={"id": "resp_2", "status": "completed", "output": []}, input=()
)
CONVERSATION = StoredConversation("conv_1", "me", 1_000, {"topic": "beans"})
ITEMS = tuple({"id": f"msg_c{number}", "type": "message"} for number in range(3))


async def find_item(library: Library, item_id: str, owner: str) -> WireObject | None:
    return (await library.find_items([item_id], owner)).get(item_id)
