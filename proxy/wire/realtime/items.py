"""The items of a Realtime conversation: in an order that clients can insert into, each with an id.

Unlike `input` of the Responses API nothing has to pair: a call may wait for its result while the user goes
on, and a deleted call leaves its result without a meaning.
"""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from prompts import AssistantText, Entry, Guidance, PastCall, ToolResult, UserTurn

from ...errors import RequestError
from ...ids import MintId, mint_id, shown_id
from ..content import joined_text, parse_parts
from ..json_body import JsonObject, JsonValue
from ..parameters import MAX_ITEMS
from ..reader import Reader, missing, shown, wrong_value

# What the items of one conversation may weigh: bytes of JSON.
MAX_CONVERSATION_BYTES = 32 << 20

# Of messages.
ITEM_ROLES = ("assistant", "system", "user")

# What clients can create.
CREATABLE_KINDS = ("message", "function_call", "function_call_output")


def _not_found(item_id: str, param: str) -> RequestError:
    return RequestError(
        f"Item with id '{shown(item_id)}' not found in conversation.", code="item_not_found", param=param
    )


class Items:
    """A conversation. What is wrong raises `RequestError`, and changes nothing."""

    def __init__(self, mint: MintId = mint_id) -> None:
        self._mint = mint
        self._items: dict[str, JsonObject] = {}
        self._order: list[str] = []
        self._bytes = 0

    def __iter__(self) -> Iterator[JsonObject]:
        return (self._items[item_id] for item_id in self._order)

    # What clients ask for

    def create(self, item: Reader, after: str | None = None) -> JsonObject:
        """Adds a client's item, behind the one with the id `after`; behind all when that is None.

        `root` is the place before the first.
        """
        made = self._made(item)
        place = len(self._order)
        if after == "root":
            place = 0
        elif after is not None:
            if after not in self._items:
                raise _not_found(after, "previous_item_id")
            place = self._order.index(after) + 1
        size = len(orjson.dumps(made))
        if len(self._order) >= MAX_ITEMS or self._bytes + size > MAX_CONVERSATION_BYTES:
            raise RequestError(
                f"The conversation is full: it may have {MAX_ITEMS} items with {MAX_CONVERSATION_BYTES >> 20} MiB. "
                "Delete some.",
                code="conversation_too_large",
            )
        self.add(made, place)
        return made

    def get(self, item_id: str, param: str = "item_id") -> JsonObject:
        """The item that a client named in `param`."""
        if item_id not in self._items:
            raise _not_found(item_id, param)
        return self._items[item_id]

    def delete(self, item_id: str) -> None:
        self._bytes -= len(orjson.dumps(self.get(item_id)))
        del self._items[item_id]
        self._order.remove(item_id)

    def truncate(self, item_id: str, content_index: int) -> None:
        """Takes the text out of a part of an assistant's message: the user has not taken note of it."""
        item = self.get(item_id)
        content = item.get("content")
        if item.get("role") != "assistant" or not isinstance(content, list):
            raise RequestError(
                "Only messages of the assistant can be truncated.", code="invalid_value", param="item_id"
            )
        if not 0 <= content_index < len(content):
            raise RequestError(
                f"Item '{shown(item_id)}' has no content part {content_index}.",
                code="invalid_value",
                param="content_index",
            )
        part = content[content_index]
        assert isinstance(part, dict)  # noqa: S101 -- checked when it was made
        self.replace(
            {**item, "content": [*content[:content_index], {**part, "text": ""}, *content[content_index + 1 :]]}
        )

    # What responses do

    def add(self, item: JsonObject, place: int | None = None) -> None:
        item_id = str(item["id"])
        self._bytes += len(orjson.dumps(item))
        self._items[item_id] = item
        self._order.insert(len(self._order) if place is None else place, item_id)

    def replace(self, item: JsonObject) -> None:
        """Puts `item` in the place of the one with its id; one that was deleted stays so."""
        item_id = str(item["id"])
        if item_id in self._items:
            self._bytes += len(orjson.dumps(item)) - len(orjson.dumps(self._items[item_id]))
            self._items[item_id] = item

    def before(self, item_id: JsonValue) -> str | None:
        """The id of the item before the one with this id."""
        place = self._order.index(str(item_id)) if item_id in self._items else 0
        return self._order[place - 1] if place else None

    # What the model is shown

    @property
    def end_with_results(self) -> bool:
        """Whether results came after the user's last message."""
        ended = False
        for item in self:
            if item["type"] == "function_call_output":
                ended = True
            elif item.get("role") == "user":
                ended = False
        return ended

    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._entries())

    def _entries(self) -> Iterator[Entry]:
        waiting: set[str] = set()
        for item in self:
            reader = Reader(item)
            match item["type"], item.get("role"):
                case "message", "user":
                    yield UserTurn(parse_parts(reader, "content"))
                case "message", "assistant":
                    if text := joined_text(parse_parts(reader, "content")):
                        yield AssistantText(text)
                case "message", _:
                    yield Guidance(joined_text(parse_parts(reader, "content")))
                case "function_call", _ if item["status"] == "completed":
                    waiting.add(call_id := shown_id(reader.required_string("call_id")))
                    yield PastCall(call_id, reader.required_string("name"), reader.string("arguments") or "{}")
                case "function_call_output", _ if (call_id := shown_id(reader.required_string("call_id"))) in waiting:
                    waiting.discard(call_id)
                    yield ToolResult(call_id, parse_parts(reader, "output"))
                case _:
                    pass

    # Reading

    def _made(self, item: Reader) -> JsonObject:
        """A client's item in the form that it is kept and shown in."""
        item_id = item.string("id", max_length=64) or self._mint("item")
        if item_id in self._items:
            raise RequestError(
                f"An item with id '{item_id}' exists already.", code="invalid_value", param=item.at("id")
            )
        head: JsonObject = {"id": item_id, "object": "realtime.item", "type": item.required_string("type")}
        head["status"] = "completed"
        match kind := head["type"]:
            case "message":
                return {**head, **_message(item)}
            case "function_call":
                call_id = item.required_string("call_id") if item.get("call_id") is not None else self._mint("call")
                if self._has("function_call", call_id):
                    raise RequestError(
                        f"Duplicate function call found with call_id {shown(call_id)}.",
                        code="invalid_value",
                        param=item.at("call_id"),
                    )
                arguments = item.string("arguments") or "{}"
                return {**head, "call_id": call_id, "name": item.required_string("name"), "arguments": arguments}
            case "function_call_output":
                return {**head, **self._output(item)}
            case _:
                raise wrong_value(item.at("type"), str(kind), CREATABLE_KINDS)

    def _output(self, item: Reader) -> JsonObject:
        call_id = item.required_string("call_id")
        item.require("output")
        output = item.string("output") or ""
        if not self._has("function_call", call_id):
            raise RequestError(
                f"Tool call ID '{shown(call_id)}' not found in conversation.",
                code="invalid_tool_call_id",
                param=item.at("call_id"),
            )
        if self._has("function_call_output", call_id):
            raise RequestError(
                f"Tool call ID '{shown(call_id)}' has its output already.",
                code="invalid_value",
                param=item.at("call_id"),
            )
        return {"call_id": call_id, "output": output}

    def _has(self, kind: str, call_id: str) -> bool:
        return any(item["type"] == kind and item.get("call_id") == call_id for item in self)


def _message(item: Reader) -> JsonObject:
    role = item.required_string("role")
    if role not in ITEM_ROLES:
        raise wrong_value(item.at("role"), role, ITEM_ROLES)
    if "content" not in item.raw:
        raise missing(item.at("content"))
    parse_parts(item, "content")
    content = item.get("content")
    if isinstance(content, str):
        kind = "output_text" if role == "assistant" else "input_text"
        content = [{"type": kind, "text": content}]
    return {"role": role, "content": content}


def chosen_items(conversation: Items, wanted: Reader) -> Items:
    """The items in `input` of a response: new ones, and references to those of the conversation."""
    chosen = Items()
    for item in wanted.objects("input", max_length=MAX_ITEMS):
        if item.get("type") == "item_reference":
            found = conversation.get(item.required_string("id"), item.at("id"))
            chosen.create(Reader(found, item.path))
        else:
            chosen.create(item)
    return chosen
