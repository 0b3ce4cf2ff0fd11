"""Turn events to the events of a Realtime response, in text, and to what it adds to its conversation.

    response.created
      message  output_item.added, (item added,) content_part.added, text.delta*, text.done, content_part.done,
               (item done,) output_item.done
      call     output_item.added, (item added,) function_call_arguments.delta+, .done, (item done,) output_item.done
    response.done       completed | incomplete | failed | cancelled

Events in brackets are about the conversation, for a response that belongs to it. The names are those of GA or
beta. Reasoning is not told. Source: OpenAI's client 3.57, `types/realtime` and `types/beta/realtime`.
"""

from __future__ import annotations

from ...contracts import Usage
from ...errors import ApiError
from ...ids import MintId, mint_id
from ..builder import WireEvent
from ..json_body import JsonObject, JsonValue
from ..output import ItemStatus, OutputBuilder, OutputItem
from .items import Items
from .versions import Words


def realtime_usage(usage: Usage) -> WireEvent:
    """`usage` of a response, in tokens; none of them of audio."""
    cached = {"text_tokens": usage.cached_tokens, "audio_tokens": 0, "image_tokens": 0}
    return {
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "input_token_details": {
            "text_tokens": usage.input_tokens,
            "audio_tokens": 0,
            "image_tokens": 0,
            "cached_tokens": usage.cached_tokens,
            "cached_tokens_details": cached,
        },
        "output_token_details": {"text_tokens": usage.output_tokens, "audio_tokens": 0},
    }


def _item_object(item: OutputItem, status: ItemStatus, words: Words) -> JsonObject:
    """In progress it holds nothing yet."""
    begun = status == "in_progress"
    head: JsonObject = {"id": item.id, "object": "realtime.item", "status": status}
    if item.is_call:
        called: JsonObject = {"call_id": item.call_id, "name": item.name, "arguments": "" if begun else item.text}
        return {**head, "type": "function_call", **called}
    content: list[JsonValue] = [] if begun else [{"type": words.part, "text": item.text}]
    return {**head, "type": "message", "role": "assistant", "content": content}


def _told(type: str, item: JsonObject, conversation: Items) -> WireEvent:
    """What is told of the conversation."""
    return {"type": type, "previous_item_id": conversation.before(item["id"]), "item": item}


class RealtimeBuilder(OutputBuilder):
    """Builds one response. `conversation` is what it joins, None when it joins none."""

    def __init__(self, words: Words, head: WireEvent, conversation: Items | None, *, mint: MintId = mint_id) -> None:
        super().__init__(mint, {"message": "item", "function_call": "item"})
        self._words = words
        self._conversation = conversation
        self.id = mint("resp")
        self._head: WireEvent = {"object": "realtime.response", "id": self.id, words.modalities: ["text"], **head}
        self.response = self._snapshot("in_progress")

    @property
    def body(self) -> WireEvent:
        return self.response

    def start(self) -> list[WireEvent]:
        return [{"type": "response.created", "response": self.response}]

    def pulse(self) -> list[WireEvent]:
        """Pings keep a WebSocket alive."""
        return []

    def cancel(self) -> list[WireEvent]:
        """Its client wants no more of it; what there is of it stays."""
        return [*self._close("incomplete"), self._end("cancelled", reason="client_cancelled")]

    # Items

    def _item_opened(self, item: OutputItem) -> list[WireEvent]:
        opened = _item_object(item, "in_progress", self._words)
        events = [self._event("response.output_item.added", item, item=opened)]
        if self._conversation is not None:
            self._conversation.add(opened)
            events.append(_told(self._words.added, opened, self._conversation))
        return events

    def _part_opened(self, item: OutputItem, part: int) -> list[WireEvent]:
        return [self._part_event("response.content_part.added", item, part={"type": "text", "text": ""})]

    def _text_grew(self, item: OutputItem, part: int, text: str) -> list[WireEvent]:
        return [self._event(f"{self._words.text}.delta", item, item_id=item.id, content_index=0, delta=text)]

    def _part_closed(self, item: OutputItem, part: int, text: str) -> list[WireEvent]:
        return [
            self._part_event(f"{self._words.text}.done", item, text=text),
            self._part_event("response.content_part.done", item, part={"type": "text", "text": text}),
        ]

    def _arguments_grew(self, call: OutputItem, text: str) -> list[WireEvent]:
        return [self._call_event("response.function_call_arguments.delta", call, delta=text)]

    def _item_closed(self, item: OutputItem) -> list[WireEvent]:
        events: list[WireEvent] = []
        if item.is_call and item.status == "completed":
            events.append(self._call_event("response.function_call_arguments.done", item, arguments=item.text))
        closed = _item_object(item, item.status, self._words)
        if self._conversation is not None:
            self._conversation.replace(closed)
            if self._words.done is not None:
                events.append(_told(self._words.done, closed, self._conversation))
        return [*events, self._event("response.output_item.done", item, item=closed)]

    # Ends

    def _finished(self, usage: Usage, incomplete: str | None) -> list[WireEvent]:
        if incomplete:
            return [self._end("incomplete", usage, reason=incomplete)]
        return [self._end("completed", usage)]

    def _failed(self, error: ApiError) -> list[WireEvent]:
        return [self._end("failed", error={"type": error.type, "code": error.code, "message": error.message})]

    def _end(self, status: str, usage: Usage | None = None, **details: object) -> WireEvent:
        self.response = self._snapshot(status, {"type": status, **details} if details else None, usage)
        return {"type": "response.done", "response": self.response}

    # Events and snapshots

    def _event(self, type: str, item: OutputItem, /, **members: object) -> WireEvent:
        return {"type": type, "response_id": self.id, "output_index": item.index, **members}

    def _call_event(self, type: str, call: OutputItem, **members: object) -> WireEvent:
        return self._event(type, call, item_id=call.id, call_id=call.call_id, name=call.name, **members)

    def _part_event(self, type: str, message: OutputItem, **members: object) -> WireEvent:
        return self._event(type, message, item_id=message.id, content_index=0, **members)

    def _snapshot(self, status: str, details: WireEvent | None = None, usage: Usage | None = None) -> WireEvent:
        return {
            **self._head,
            "status": status,
            "status_details": details,
            "output": [_item_object(item, item.status, self._words) for item in self._items],
            "usage": None if usage is None else realtime_usage(usage),
        }
